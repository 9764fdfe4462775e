"""Fields: a JSON object of a call, read strictly, field by field."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from .errors import ApiError

_INTEGER_BITS = 63


class Fields:
    """Takes fields out of an object; what is left over when it is closed is an error.

    A null is the same as a field left out. Each reader raises ApiError for a wrong type.
    """

    def __init__(self, values: Mapping[str, Any], place: str = "the body") -> None:
        """Read `values`, which errors call `place`."""
        self._values = dict(values)
        self._known: list[str] = []
        self._place = place

    def take(self, name: str) -> Any:
        """The value as it came; None if left out."""
        self._known.append(name)
        return self._values.pop(name, None)

    def text(self, name: str) -> str | None:
        """A string that UTF-8 can carry."""
        value = self.take(name)
        return None if value is None else self.as_text(name, value)

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, value, "true or false")
        return value

    def integer(self, name: str) -> int | None:
        """An integer of 64 bits; a float without a fraction is none."""
        value = self.take(name)
        return None if value is None else self.as_integer(name, value)

    def number(self, name: str) -> float | None:
        """A finite number."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, value, "a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong(name, value, "a finite number")
        return number

    def texts(self, name: str) -> tuple[str, ...]:
        """A string or a list of strings; empty if left out."""
        value = self.take(name)
        if value is None:
            return ()
        entries = value if isinstance(value, list) else [value]
        return tuple(self.as_text(name, entry) for entry in entries)

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of integers; empty if left out."""
        value = self.take(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.wrong(name, value, "a list of integers")
        return tuple(self.as_integer(name, entry) for entry in value)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object; empty if left out."""
        value = self.take(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(name, value, "an object")
        return value

    def inert(self, neutral: Mapping[str, tuple[Any, ...]]) -> None:
        """Accept fields that this server doesn't act on, as long as they ask for nothing.

        Args:
            neutral: values, beside null, that ask for nothing, by field.
        """
        for name, values in neutral.items():
            value = self.take(name)
            # A list, since `1 == True` and JSON's objects don't hash.
            if value is None or any(type(value) is type(v) and value == v for v in values):
                continue
            cure = " or ".join(repr(v) for v in values)
            raise ApiError(
                f"{name} is {shown(value)} in {self._place}, which this server doesn't do. "
                f"Leave it out{f', or set it to {cure}' if cure else ''}.",
                param=name,
            )

    def close(self) -> None:
        """All fields have been read: any other is unknown, and would be ignored silently."""
        for name in self._values:
            near = difflib.get_close_matches(name, self._known, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise ApiError(
                f"{shown(name)} is an unknown field of {self._place}. "
                f"{hint}Known are {', '.join(sorted(self._known))}.",
                param=name[:80],
            )

    def as_text(self, name: str, value: Any) -> str:
        """Check one string."""
        if not isinstance(value, str):
            raise self.wrong(name, value, "a string")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ApiError(
                f"{name} holds a lone surrogate (U+{ord(value[error.start]):04X}) at character "
                f"{error.start}, which is no text. Send the pair, or leave it out.",
                param=name,
            ) from error
        return value

    def as_integer(self, name: str, value: Any) -> int:
        """Check one integer."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, value, "an integer")
        if value.bit_length() > _INTEGER_BITS:
            raise self.wrong(name, value, "an integer of 64 bits")
        return value

    def wrong(self, name: str, value: Any, wanted: str) -> ApiError:
        """The error for a value of the wrong kind."""
        return ApiError(
            f"{name} is {shown(value)} in {self._place}, but must be {wanted}.", param=name
        )


def shown(value: object) -> str:
    """A value as an error quotes it: not at any length."""
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
