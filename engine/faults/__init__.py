"""Faults: further upstream bugs, each on a switch. One a file in `library/`."""

from __future__ import annotations

from .fault import Fault, known, named
from .install import install

__all__ = ["Fault", "install", "known", "named"]
