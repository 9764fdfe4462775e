"""Hook: one place in SGLang, what is said there, and how it is watched without harm.

A hook looks on: it returns nothing, raises nothing, and what goes wrong in it is counted and
reported, and makes blind what it would have said.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Op

from .release import Number
from .scene import Scene

log = logging.getLogger(__name__)


class When(Enum):
    """How an adapter is called; by the names of SGLang's HookType."""

    BEFORE = "before"  # adapter(scene, *arguments)
    AFTER = "after"  # adapter(scene, result, *arguments)
    AROUND = "around"  # a generator of (scene, *arguments): it yields once and gets the result


@dataclass(frozen=True, slots=True)
class Hook:
    """A row of the table."""

    at: str
    when: When
    emit: Callable[..., Any]
    ops: tuple[Op, ...]
    says: str
    since: Number | None = None  # first release that has the place; None: all that are known
    until: Number | None = None  # last one

    def belongs(self, release: Number | None) -> bool:
        """Whether a release has this place. An unknown one is asked for every place."""
        if release is None:
            return True
        return (self.since is None or self.since <= release) and (
            self.until is None or release <= self.until
        )

    @property
    def present(self) -> bool:
        """Whether the place is there, in the SGLang that is installed."""
        owner, _, name = self.at.rpartition(".")
        try:
            return hasattr(pkgutil.resolve_name(owner), name)
        except Exception:  # A module that can't be imported here raises what it likes.
            return False


class Watch:
    """Wraps adapters, and keeps count of what went wrong in them."""

    def __init__(self, scene: Scene, hooks: Sequence[Hook]) -> None:
        self.failures: dict[str, int] = {}
        self._scene = scene
        self._hooks = hooks
        self._blind: set[Op] = set()
        scene.blind = self.blind

    def wrap(self, hook: Hook) -> Callable[..., Any]:
        """What SGLang's registry is given."""
        return self._around(hook) if hook.when is When.AROUND else self._beside(hook)

    def _beside(self, hook: Hook) -> Callable[..., None]:
        scene, emit = self._scene, hook.emit

        def looked(*args: Any, **kwargs: Any) -> None:
            try:
                emit(scene, *args, **kwargs)
            except Exception as error:
                self.failed(hook, error)

        return looked

    def _around(self, hook: Hook) -> Callable[..., Any]:
        scene, emit = self._scene, hook.emit

        def looked(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            looking = None
            try:
                looking = emit(scene, *args, **kwargs)
                next(looking)
            except Exception as error:
                self.failed(hook, error)
                looking = None
            try:
                result = original(*args, **kwargs)
            except BaseException:
                if looking is not None:
                    self._close(hook, looking)
                raise
            if looking is not None:
                try:
                    looking.send(result)
                except StopIteration:
                    pass
                except Exception as error:
                    self.failed(hook, error)
            return result

        return looked

    def _close(self, hook: Hook, looking: Any) -> None:
        try:
            looking.close()
        except Exception as error:
            self.failed(hook, error)

    def failed(self, hook: Hook, error: Exception) -> None:
        """Count an adapter's failure. The first one makes its operations blind in this process."""
        count = self.failures[hook.at] = self.failures.get(hook.at, 0) + 1
        if count > 1:
            return
        log.error("slotscope: the hook on %s failed", hook.at, exc_info=error)
        probe.note(f"sglang.failed.{hook.at}", f"{type(error).__name__}: {error}")
        self.blind(hook.ops, f"the hook on {hook.at} failed")

    def blind(self, ops: Sequence[Op], why: str) -> None:
        """Say that some operations can't be told in full from now on. Once for each."""
        fresh = set(ops) - self._blind
        if not fresh:
            return
        self._blind |= fresh
        probe.note(f"sglang.blind.{','.join(sorted(op.name.lower() for op in fresh))}", why)
        for hook in self._hooks:
            lost = [op for op in hook.ops if op in fresh]
            if lost:
                probe.hook(hook.at, lost, live=False)
