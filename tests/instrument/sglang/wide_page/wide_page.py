"""An SGLang plugin for tests: a tree page that doesn't divide the track interval.

SGLang checks that the configured page does. With decode context parallelism the tree's page is that
page times the number of ranks, and nothing checks it. Here one rank is configured with the wide
page itself, and the check is stepped over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

PLACES = (
    "sglang.srt.arg_groups.mamba_hook.validate_mamba_extra_buffer",
    "sglang.srt.server_args.ServerArgs._validate_mamba_extra_buffer",  # up to 0.5.18
)


def register() -> None:
    import pkgutil

    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for place in PLACES:
        with contextlib.suppress(ImportError, AttributeError):
            pkgutil.resolve_name(place)
            HookRegistry.register(place, unchecked, HookType.AROUND)


def unchecked(original: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    """The validation, whatever it finds of the page."""
    with contextlib.suppress(AssertionError):
        original(*arguments, **named)
