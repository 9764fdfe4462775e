"""Places in SGLang to hook. They move between releases, so each is given by all its names."""

import pkgutil
from collections.abc import Callable
from typing import Any


class AbsentTarget(LookupError):
    """A place that every supported release has is missing: this release is a new one."""


def replace(hook: Callable[..., Any], *names: str, everywhere: bool = False) -> None:
    """Put `hook` in place of the function that this release has under one of `names`.

    Raises AbsentTarget where there is none and `everywhere` says that there must be.
    """
    _register(hook, "REPLACE", names, everywhere)


def wrap(hook: Callable[..., Any], *names: str, everywhere: bool = False) -> None:
    """Call `hook(original, *arguments)` in place of the function; as `replace` otherwise."""
    _register(hook, "AROUND", names, everywhere)


def _register(
    hook: Callable[..., Any], kind: str, names: tuple[str, ...], everywhere: bool
) -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    present = [name for name in names if exists(name)]
    if present:
        HookRegistry.register(present[0], hook, HookType[kind])
    elif everywhere:
        raise AbsentTarget(
            f"This SGLang has none of {', '.join(names)}, so it can't serve on a CPU. "
            "Find where the function went and add that name."
        )


def exists(name: str) -> bool:
    """Whether this release has the module and the attribute."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True
