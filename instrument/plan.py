"""Plan: how the calls of one call site become records. Worked out once, then only looked up."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
from numpy import ndarray

from . import layout
from .layout import COUNT_MAX, Column, shape_word, tag_word

PLANS_MAX = 4096
"""Call sites are few; arguments made up at run time would be many. Then all is planned anew."""
FORMS_MAX = 64

Pack = Callable[..., bytes]
Pick = Callable[[Any], tuple[Any, ...]]

_NULLS = {"i": layout.NULL32, "q": layout.NULL64}
_ZEROS = b"\0" * layout.ALIGN
PLANS: dict[tuple[str, ...], Plan] = {}
"""By arguments in the order they are given: one for each call site. Filled by `plan`."""


class RecordError(ValueError):
    """Arguments of a call that can't be stored."""


class Form:
    """How calls of one site are stored whose values have certain types."""

    __slots__ = (
        "arrays",
        "columns",
        "dtypes",
        "lists",
        "many",
        "ones",
        "pack",
        "single",
        "size",
        "width",
    )

    def __init__(self, columns: tuple[Column, ...], values: tuple[Any, ...]) -> None:
        given = [(i, c, values[i]) for i, c in enumerate(columns) if values[i] is not None]
        ones = [(i, c) for i, c, v in given if isinstance(v, (int, np.integer))]
        lists = [(i, c) for i, c, v in given if not isinstance(v, (int, np.integer))]
        for _, column in lists:
            if not column.listable:
                raise RecordError(f"{column.argument} takes one value for the whole call")
        self.ones = sum(c.bit for _, c in ones)
        self.lists = sum(c.bit for _, c in lists)
        self.columns = tuple(c for _, c in lists)
        self.dtypes = [c.dtype for _, c in lists]
        self.arrays = all(type(v) is ndarray for _, c, v in given if c.bit & self.lists)
        self.width = sum(c.dtype.itemsize for _, c in lists)
        self.single = _picker([i for i, _ in ones])
        self.many = _picker([i for i, _ in lists])
        self.pack, self.size = _packer(tuple(c for _, c in ones))

    def record(
        self, values: tuple[Any, ...], op: int, seq: int, order: int, time_ns: int
    ) -> tuple[bytes, int]:
        """The record of a call, its checksum still zero, and its number of events.

        Raises:
            RecordError, TypeError, OverflowError, struct.error, BufferError: values that can't be
            stored.
        """
        size, n = self.size, 1
        columns = self.many(values)
        if columns:
            if not self.arrays or [v.dtype for v in columns] != self.dtypes:
                columns = tuple(map(_packed, columns, self.columns))
            counts = [*map(len, columns)]
            n = counts[0]
            if counts.count(n) != len(counts) or n > COUNT_MAX:
                raise RecordError(
                    f"lists of {sorted(counts)} values; all of a call's lists are as long as "
                    f"`slots`, and have {COUNT_MAX} at most"
                )
            size += n * self.width
        padding = -size % 8
        size += padding
        shape = shape_word(self.ones, self.lists, n)
        head = self.pack(tag_word(size, op), seq, order, time_ns, shape, *self.single(values))
        try:
            record = b"".join((head, *columns, _ZEROS[:padding]))
        except TypeError:  # A column with a stride is no bytes-like object to `join`.
            record = b"".join((head, *map(bytes, columns), _ZEROS[:padding]))
        if len(record) != size:
            raise RecordError("a column with more than one dimension")
        return record, n


class Plan:
    """How the calls that give certain arguments, in a certain order, are stored."""

    __slots__ = (
        "_forms",
        "columns",
        "form",
        "mask",
        "pack",
        "pick",
        "shape",
        "single",
        "size",
        "tags",
        "whole",
    )

    def __init__(self, arguments: tuple[str, ...]) -> None:
        unknown = [a for a in arguments if a not in layout.BY_ARGUMENT]
        if unknown:
            raise RecordError(f"probe.emit has no argument {', '.join(unknown)}")
        self.columns = tuple(c for c in layout.COLUMNS if c.argument in arguments)
        self.mask = sum(c.bit for c in self.columns)
        self.pick = _picker([c.argument for c in self.columns])
        self.pack, self.size = _packer(self.columns)
        self.tags = [tag_word(self.size, op) for op in range(layout.OP_CODES)]
        self.shape = shape_word(self.mask, 0, 1)
        self._forms: dict[tuple[type, ...], Form] = {}
        # What the latest call was like. The next one most likely is, or else it will not fit.
        self.single = True
        self.whole = True  # It had no null: a value in that place would fit, and be left out.
        self.form = Form(self.columns, (0,) * len(self.columns))

    def learn(self, values: tuple[Any, ...]) -> None:
        """From now on expect values of these types.

        Raises:
            RecordError: they can't be stored.
        """
        types = (*map(type, values),)
        form = self._forms.get(types)
        if form is None:
            if len(self._forms) == FORMS_MAX:
                self._forms.clear()
            form = self._forms[types] = Form(self.columns, values)
        self.form = form
        self.single = form.ones == self.mask
        self.whole = form.ones | form.lists == self.mask


def plan(arguments: tuple[str, ...]) -> Plan:
    """The plan for calls with these arguments.

    Raises:
        RecordError: `probe.emit` has no such argument.
    """
    found = PLANS.get(arguments)
    if found is None:
        if len(PLANS) == PLANS_MAX:
            PLANS.clear()
        found = PLANS[arguments] = Plan(arguments)
    return found


def _picker(keys: list[Any]) -> Pick:
    """From a mapping or a sequence, the values of some keys as a tuple."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda values: tuple(values[key] for key in keys)


def _packer(columns: tuple[Column, ...]) -> tuple[Pack, int]:
    """What packs a header and the single values of some columns, and the size of that in bytes."""
    codes = "".join(c.code for c in columns)
    size = struct.calcsize(layout.HEADER + codes)
    padding = -size % layout.ALIGN
    return struct.Struct(f"{layout.HEADER}{codes}{padding}x").pack, size + padding


def _packed(values: Any, column: Column) -> Any:
    """Values as a contiguous buffer of the column's type. Tensors on a device are refused: to read
    them would wait for the device."""
    if type(values) is ndarray and values.dtype is column.dtype:
        return values
    if type(values) is list or type(values) is tuple:
        try:
            return array(column.code, values)
        except TypeError:  # A null among them.
            null = _NULLS[column.code]
            return array(column.code, [null if v is None else v for v in values])
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iub":
        raise RecordError(f"{column.argument} has shape {found.shape} and dtype {found.dtype}")
    packed = np.ascontiguousarray(found, column.dtype)
    if found.dtype.itemsize >= column.dtype.itemsize and not np.array_equal(packed, found):
        raise RecordError(f"{column.argument} has a value that does not fit {column.dtype}")
    return packed
