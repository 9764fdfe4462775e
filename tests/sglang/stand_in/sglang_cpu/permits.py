"""Configurations that SGLang allows on GPUs alone, and that run here all the same.

The scheduler, the caches and the order of the overlap loop are the real ones. A CPU has one
stream, so the races that overlap can have on a GPU don't exist here.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from . import targets

HOOKS = "sglang.srt.arg_groups"
ALLOWS = f"{HOOKS}.mamba_hook._platform_supports_mamba_cache_extra_buffer"  # from 0.5.22 on
EARLY = "sglang.srt.server_args.ServerArgs._validate_mamba_extra_buffer"  # up to 0.5.18


def register() -> None:
    if targets.exists(ALLOWS):
        targets.replace(lambda: True, ALLOWS)
    elif targets.exists(EARLY):
        targets.wrap(_as_if(mock.patch("sglang.srt.server_args.is_hip", return_value=True)), EARLY)
    else:
        gpu = mock.Mock(is_hip=True)
        platform = mock.patch(f"{HOOKS}.mamba_hook.get_platform", return_value=gpu)
        validate = f"{HOOKS}.mamba_hook.validate_mamba_extra_buffer"
        targets.wrap(_as_if(platform), validate, everywhere=True)
    targets.replace(
        lambda server_args: None, f"{HOOKS}.speculative_hook._disable_overlap_schedule_for_cpu"
    )


def _as_if(pretence: AbstractContextManager[Any]) -> Callable[..., Any]:
    """Validate within the pretence: the check asks for the platform by a name of its module."""

    def validate(original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with pretence:
            return original(*arguments, **named)

    return validate
