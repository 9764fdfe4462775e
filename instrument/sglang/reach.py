"""Reach: which hooks have their place in the SGLang that is installed, and what can't be seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slotscope.instrument.event import Op

from . import release
from .hook import Hook


@dataclass(frozen=True, slots=True)
class Reach:
    """Hooks by whether their place is there, and the operations that can't be told in full."""

    present: list[Hook]
    absent: list[Hook]
    dead: set[Op]


def of(hooks: Sequence[Hook], *, strict: bool) -> Reach:
    """Look for each hook's place, which imports SGLang's modules.

    Args:
        strict: each hook must be there. An unknown release may have one place of several that
            tell the same: there an operation is dead if none of them is left.
    """
    present = [hook for hook in hooks if hook.present]
    absent = [hook for hook in hooks if hook not in present]
    left = {op for hook in present for op in hook.ops}
    dead = {op for hook in absent for op in hook.ops if strict or op not in left}
    return Reach(present, absent, dead)


def belonging(hooks: Iterable[Hook], installed: str) -> list[Hook]:
    """The hooks that a release should have a place for; all of them for one that was not read.

    Args:
        installed: the version as SGLang's package names it, empty for none.
    """
    number = release.number(installed)
    return [hook for hook in hooks if hook.belongs(number if release.known(number) else None)]


def described(installed: str) -> list[str]:
    """What the plugin would see of the SGLang that is installed here, line by line."""
    from .table import HOOKS

    known = release.known(release.number(installed))
    hooks = belonging(HOOKS, installed)
    found = of(hooks, strict=known)
    first, last = release.spelled(release.FIRST), release.spelled(release.LAST)
    read = "is" if known else "is not"
    lines = [
        f"SGLang {installed} {read} among the releases that were read ({first} to {last}); "
        f"{len(found.present)} of {len(hooks)} hooks have their place."
    ]
    lines += [f"not there: {hook.at}: {hook.says}" for hook in found.absent]
    if found.dead:
        lines.append(f"not told in full: {', '.join(sorted(op.name.lower() for op in found.dead))}")
    return lines
