"""Configurations that SGLang allows on GPUs alone, and that run here all the same.

The scheduler, the caches and the order of the overlap loop are the real ones. A CPU has one
stream, so the races that overlap can have on a GPU don't exist here.
"""

from collections.abc import Callable
from typing import Any
from unittest import mock

from . import targets


def register() -> None:
    targets.replace(
        lambda: True,
        "sglang.srt.arg_groups.mamba_hook._platform_supports_mamba_cache_extra_buffer",
    )
    targets.wrap(
        _validate_as_a_gpu, "sglang.srt.server_args.ServerArgs._validate_mamba_extra_buffer"
    )
    targets.replace(
        lambda server_args: None,
        "sglang.srt.arg_groups.speculative_hook._disable_overlap_schedule_for_cpu",
    )


def _validate_as_a_gpu(original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Up to 0.5.18 the check asks for the platform itself, by a name in its own module."""
    with mock.patch("sglang.srt.server_args.is_hip", return_value=True):
        return original(*arguments, **named)
