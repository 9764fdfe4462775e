"""The attention backend that knows verify and draft steps, on a CPU without AMX.

SGLang's "intel_amx" backend calls two operators, which the stand-in has. Without AMX in the
processor it is swapped for "torch_native", which can't verify; so here that name means it too.
"""

from collections.abc import Callable
from typing import Any

from . import targets


def register() -> None:
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

    ATTENTION_BACKENDS["torch_native"] = ATTENTION_BACKENDS["intel_amx"]
    targets.wrap(
        _draft_backend,
        "sglang.srt.speculative.draft_utils.DraftBackendFactory._create_backend",
        everywhere=True,
    )


def _draft_backend(
    original: Callable[..., Any],
    factory: Any,
    backend_name: str,
    backend_map: dict[str, Any],
    *arguments: Any,
    **named: Any,
) -> Any:
    backends = {**backend_map, "torch_native": backend_map["intel_amx"]}
    return original(factory, backend_name, backends, *arguments, **named)
