"""Releases up to 0.5.18: scratch on "cuda" by name, and CPU attention that misses the drafts.

Their CPU backend works out how many tokens a verify and a draft step attend to, and then reads the
batch's own lengths instead, so the newest tokens stay unseen: every logprob of a verify is off by
about 0.01. That is a fault of the CPU path alone, repaired in 0.5.19, and would blur what is
watched here.
"""

import importlib.metadata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from . import targets

BACKEND = "sglang.srt.layers.attention.intel_amx_backend.IntelAMXAttnBackend"
SEES_DRAFTS = (0, 5, 19)


def register() -> None:
    targets.wrap(
        _on_the_cpu,
        "sglang.srt.mem_cache.memory_pool.MambaPool.__init__",
        everywhere=True,
    )
    release = importlib.metadata.version("sglang").split(".")[:3]
    if tuple(int(part) for part in release) < SEES_DRAFTS:
        targets.wrap(_extend_over_drafts, f"{BACKEND}.forward_extend", everywhere=True)
        targets.wrap(_decode_over_drafts, f"{BACKEND}.forward_decode", everywhere=True)


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


def _extend_over_drafts(
    original: Callable[..., Any],
    backend: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    layer: Any,
    forward_batch: Any,
    *arguments: Any,
    **named: Any,
) -> Any:
    with _lengths(forward_batch, backend.extend_metadata):
        return original(backend, q, k, v, layer, forward_batch, *arguments, **named)


def _decode_over_drafts(
    original: Callable[..., Any],
    backend: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    layer: Any,
    forward_batch: Any,
    *arguments: Any,
    **named: Any,
) -> Any:
    table_rows_then_lengths = backend.draft_decode_metadata
    lengths = table_rows_then_lengths and table_rows_then_lengths[1:]
    with _lengths(forward_batch, lengths):
        return original(backend, q, k, v, layer, forward_batch, *arguments, **named)


@contextmanager
def _lengths(forward_batch: Any, lengths_first: tuple[Tensor, ...] | None) -> Iterator[None]:
    """The batch with the lengths that the backend worked out, where it did."""
    own = forward_batch.seq_lens
    if lengths_first is not None:
        forward_batch.seq_lens = lengths_first[0]
    try:
        yield
    finally:
        forward_batch.seq_lens = own
