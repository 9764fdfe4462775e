"""Plugin: SGLang's entry point. Off, and imports nothing, unless a trace directory is set."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

from slotscope.instrument import probe

from . import reach, release
from .hook import Hook, Watch

log = logging.getLogger(__name__)


def register() -> None:
    """Called by SGLang in each of its processes, before it starts anything.

    Never raises: SGLang would log the failure and go on, and a trace that can't be written is no
    reason for a server not to start.
    """
    if not os.environ.get(probe.ENVIRONMENT):
        return
    try:
        probe.start_from_environment()
        attach()
    except probe.ProbeError as error:
        log.error("slotscope: not traced. %s", error)
    except Exception:
        log.exception("slotscope: not traced, by a fault of its own")


def attach() -> Watch:
    """Hook what the installed release has, and say what can't be seen. Once in a process.

    Returns:
        What counts the failures of hooks.
    """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from .scene import Scene
    from .table import HOOKS

    installed = release.installed() or ""
    _introduce(installed, known := release.known(release.number(installed)))
    hooks = reach.belonging(HOOKS, installed)
    watch = Watch(Scene(), hooks)
    for hook in announce(hooks, strict=known):
        HookRegistry.register(hook.at, watch.wrap(hook), HookType(hook.when.value))
    return watch


def announce(hooks: Sequence[Hook], *, strict: bool = True) -> list[Hook]:
    """Say which hooks are live. An operation is only as live as all the hooks that it needs.

    Args:
        strict: each hook must be there. An unknown release may have one place of several that
            tell the same: there an operation is dead if none of them is left.

    Returns:
        The hooks whose place is there.
    """
    found = reach.of(hooks, strict=strict)
    for hook in found.absent:
        probe.hook(hook.at, hook.ops, live=False)
        log.warning("slotscope: %s is not there, so this is not seen: %s", hook.at, hook.says)
    for hook in found.present:
        probe.hook(hook.at, [op for op in hook.ops if op not in found.dead], live=True)
    return found.present


def _introduce(installed: str, known: bool) -> None:
    probe.note("engine.name", "sglang")
    probe.note("engine.version", installed)
    probe.note("sglang.release_known", known)
    if not known:
        first, last = release.spelled(release.FIRST), release.spelled(release.LAST)
        log.warning(
            "slotscope: SGLang %s is not among the releases that were read (%s to %s). What still "
            "works is used; `slotscope doctor` tells what is not seen.",
            installed or "of an unknown version",
            first,
            last,
        )
