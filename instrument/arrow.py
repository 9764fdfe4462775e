"""Arrow: the schema of events and of the other tables, and the batches in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .event import ENUMS, Op, op_name
from .expand import Events, is_absent, null
from .layout import EVENT_COLUMNS

SQL_TYPES = {"uint8": "UTINYINT", "int32": "INTEGER", "int64": "BIGINT"}


def enum_names(column: str) -> list[str]:
    """How SQL spells the values of a column that holds a code, in the order of the codes."""
    return [op_name(v) if isinstance(v, Op) else v.name.lower() for v in ENUMS[column]]


def enum_type(column: str) -> str:
    """The SQL type of such a column."""
    return f"{column}_name"


def events_table(events: Events) -> pa.Table:
    """Events as Arrow columns; codes become dictionaries of names, nulls become nulls."""
    arrays = [_array(name, events[name], null(dtype)) for name, dtype, _ in EVENT_COLUMNS]
    return pa.table(arrays, names=[name for name, _, _ in EVENT_COLUMNS])


def _array(name: str, values: np.ndarray[Any, Any], absent: int) -> pa.Array:
    if name not in ENUMS:
        kind = pa.from_numpy_dtype(values.dtype)
        return (
            pa.nulls(len(values), kind)
            if is_absent(values)
            else _masked(kind, values, values != absent)
        )
    indices = _masked(pa.int8(), _PLACES[name][values], values != absent)
    return pa.DictionaryArray.from_arrays(indices, pa.array(enum_names(name)), safe=False)


def _masked(
    kind: pa.DataType, values: np.ndarray[Any, Any], known: np.ndarray[Any, Any]
) -> pa.Array:
    """Values where they are known. Takes the memory of `values` as it is: ten times as fast as
    `pa.array` with a mask."""
    buffers = [pa.py_buffer(np.packbits(known, bitorder="little")), pa.py_buffer(values)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _places(column: str) -> np.ndarray[Any, Any]:
    """Code -> index among the names. Codes have holes; a dictionary has none."""
    places = np.zeros(256, np.int8)
    places[[int(code) for code in ENUMS[column]]] = np.arange(len(ENUMS[column]))
    return places


_PLACES = {column: _places(column) for column in ENUMS}


def enum_ddl() -> list[str]:
    """Statements that make the types of `events`."""
    return [
        f"CREATE TYPE {enum_type(name)} AS ENUM ({', '.join(map(repr, enum_names(name)))})"
        for name in ENUMS
    ]


def events_ddl() -> list[str]:
    """Statements that make the `events` table, with its column comments."""
    types = {n: enum_type(n) if n in ENUMS else SQL_TYPES[d.name] for n, d, _ in EVENT_COLUMNS}
    body = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
    comments = [
        f"COMMENT ON COLUMN events.\"{name}\" IS '{meaning.replace(chr(39), chr(39) * 2)}'"
        for name, _, meaning in EVENT_COLUMNS
    ]
    return [f"CREATE TABLE events ({body})", *comments]
