"""Releases up to 0.5.18 allocate the scratch of a verify on "cuda" by name."""

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode

from . import targets


def register() -> None:
    targets.wrap(
        _on_the_cpu,
        "sglang.srt.mem_cache.memory_pool.MambaPool.__init__",
        everywhere=True,
    )


class CudaMeansCpu(TorchFunctionMode):
    """Within it, a call of torch that names the device "cuda" goes to the CPU."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        arguments: tuple[Any, ...] = (),
        named: dict[str, Any] | None = None,
    ) -> Any:
        named = dict(named or {})
        if named.get("device") == "cuda":
            named["device"] = "cpu"
        return function(*arguments, **named)


def _on_the_cpu(original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    with CudaMeansCpu():
        return original(*arguments, **named)
