"""Release: which SGLang is installed, and whether the table of hooks was read against it."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

Number = tuple[int, int, int]

FIRST: Number = (0, 5, 17)
LAST: Number = (0, 5, 23)


def installed() -> str | None:
    """SGLang's version as its package names it; None where it is not installed."""
    try:
        return version("sglang")
    except PackageNotFoundError:
        return None


def number(text: str) -> Number | None:
    """(major, minor, patch) of a version, so `0.5.23.post1` is (0, 5, 23). None if it has none."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


def known(release: Number | None) -> bool:
    """Whether the table of hooks was read against this release."""
    return release is not None and FIRST <= release <= LAST


def spelled(release: Number) -> str:
    """`0.5.23`"""
    return ".".join(map(str, release))
