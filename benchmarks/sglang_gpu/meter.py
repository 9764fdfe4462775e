"""Meter: the time of slotscope's hooks in the scheduler's thread, without what they look at.

It stands around each hook, and its own clock reads count as the hook's. What SGLang's registry
takes to call a hook is outside of it, so windows with all hooks taken off are compared too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pkgutil import resolve_name
from time import perf_counter_ns
from typing import Any

import torch

RANGE = "slotscope"
"""Name of a hook's range in a profile."""


class Meter:
    """One for a process; the scheduler's thread alone moves it."""

    def __init__(self) -> None:
        self.ns = 0
        self.calls = 0
        self.strict = False  # a hook that synchronises raises, and is counted by `Watch`
        self.marking = False  # hooks are ranges of the profile that runs
        self.watch: Any = None
        self._ranges: list[AbstractContextManager[Any]] = []

    def enter(self) -> int:
        """A hook's own code begins."""
        if self.marking:
            self._ranges.append(torch.profiler.record_function(RANGE))
            self._ranges[-1].__enter__()
        if self.strict:
            torch.cuda.set_sync_debug_mode("error")
        return perf_counter_ns()

    def leave(self, since: int) -> None:
        """A hook's own code has ended."""
        self.ns += perf_counter_ns() - since
        if self.strict:
            torch.cuda.set_sync_debug_mode("default")
        if self._ranges:
            self._ranges.pop().__exit__(None, None, None)


METER = Meter()


def install() -> None:
    """Stand around every hook that slotscope registers from now on."""
    from slotscope.instrument.sglang.hook import Watch, When

    bare = Watch.wrap

    def wrap(watch: Watch, hook: Any) -> Callable[..., Any]:
        METER.watch = watch
        looked = bare(watch, hook)
        return _around(looked) if hook.when is When.AROUND else _beside(looked)

    Watch.wrap = wrap  # type: ignore[method-assign]


def _beside(looked: Callable[..., Any]) -> Callable[..., None]:
    def metered(*args: Any, **kwargs: Any) -> None:
        since = METER.enter()
        looked(*args, **kwargs)
        METER.leave(since)
        METER.calls += 1

    return metered


def _around(looked: Callable[..., Any]) -> Callable[..., Any]:
    def metered(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        since = METER.enter()

        def unmetered(*args: Any, **kwargs: Any) -> Any:
            nonlocal since
            METER.leave(since)
            try:
                return original(*args, **kwargs)
            finally:
                since = METER.enter()

        METER.calls += 1
        try:
            return looked(unmetered, *args, **kwargs)
        finally:
            METER.leave(since)

    return metered


class Switch:
    """Takes slotscope's wrappers off SGLang, and puts them on again."""

    def __init__(self) -> None:
        self._places: list[tuple[Any, str, Any, Any]] = []  # owner, name, watched, bare
        self.on = True

    def turn(self, on: bool) -> None:
        """Only while the scheduler is idle: a call that is under way ends as it began."""
        if not self._places:
            self._find()
        for owner, name, watched, bare in self._places:
            setattr(owner, name, watched if on else bare)
        self.on = on

    def _find(self) -> None:
        from sglang.srt.plugins.hook_registry import HookRegistry

        for target, hooks in HookRegistry._hooks.items():
            ours = sum(hook.__module__ == __name__ for _, hook, _ in hooks)
            path, name = target.rsplit(".", 1)
            owner = resolve_name(path)
            watched = bare = getattr(owner, name)
            for _ in range(ours):
                bare = bare.__wrapped__
            if not ours:
                continue
            self._places.append((owner, name, watched, bare))
            if not isinstance(owner, type):
                for module in list(sys.modules.values()):
                    if module is not owner and getattr(module, "__dict__", {}).get(name) is watched:
                        self._places.append((module, name, watched, bare))
