"""`sgl_kernel.mamba`: what SGLang's gated-delta backend imports by this path."""

from typing import Any

from torch import Tensor

from .convolution import causal_conv1d_fn_cpu, causal_conv1d_update_cpu
from .recurrence import chunk_gated_delta_rule

__all__ = ["causal_conv1d_fn_cpu", "causal_conv1d_update_cpu", "chunk_gated_delta_rule_cpu"]


def chunk_gated_delta_rule_cpu(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    initial_state: Tensor,
    cu_seqlens: Tensor,
    head_first: bool,
    use_qk_l2norm_in_kernel: bool,
    initial_state_indices: Tensor,
    **unknown: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """As `recurrence.chunk_gated_delta_rule`.

    The wheel's own CPU operator returns no chunk states. Releases keep them for `extra_buffer`,
    which they allow on GPUs alone, so here they are returned as the GPU's operator does.
    """
    if head_first or unknown:
        raise NotImplementedError(
            f"The CPU stand-in takes tokens before heads and nothing more; it got {head_first=} "
            f"and {sorted(unknown)}."
        )
    return chunk_gated_delta_rule(
        q,
        k,
        v,
        g,
        beta,
        initial_state,
        initial_state_indices,
        cu_seqlens,
        use_qk_l2norm_in_kernel,
    )
