"""Fault: a bug that others had, what it replaces here, and who must find it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from slotscope.engine.config import ConfigError


@dataclass(frozen=True, slots=True)
class Fault:
    """`replaces` maps parts of the engine to the classes that break them: the object that checks
    is replaced, so that its own checks don't stop the corruption that a detector must see."""

    kind: str  # of bug, K1 to K12, see docs/faults.md
    upstream: str  # who had it
    breaks: str  # what goes wrong, a clause in the present tense
    detector: str  # that must answer
    replaces: Mapping[type, type]
    load: str  # that brings it out, see loads.py
    flags: Mapping[str, Any] = field(default_factory=dict)  # under which it can be had


@cache
def known() -> dict[str, Fault]:
    """All of them: `unlock-twice` is the FAULT of library/unlock_twice.py."""
    library = import_module(".library", __package__)
    names = sorted(module.name for module in iter_modules(library.__path__))
    return {
        name.replace("_", "-"): import_module(f".library.{name}", __package__).FAULT
        for name in names
    }


def named(names: Iterable[str]) -> list[Fault]:
    """The faults of these names. Raises ConfigError for a name that is none."""
    faults, asked = known(), list(names)
    if unknown := sorted(set(asked) - faults.keys()):
        raise ConfigError(
            f"no fault is called {', '.join(unknown)}. The faults are: {', '.join(faults)}."
        )
    return [faults[name] for name in asked]
