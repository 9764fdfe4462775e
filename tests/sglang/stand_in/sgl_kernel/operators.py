"""The operators that SGLang looks up as `torch.ops.sgl_kernel.NAME`."""

import torch

from . import attention, gates, recurrence

OPERATORS = (
    attention.decode_attention_cpu,
    attention.extend_attention_cpu,
    gates.fused_gdn_gating_cpu,
    gates.fused_qk_gemma_rmsnorm_cpu,
    gates.fused_qk_gemma_rmsnorm_with_gate_cpu,
    gates.fused_qkvzba_split_reshape_cat_contiguous_cpu,
    gates.fused_sigmoid_mul_cpu,
    recurrence.fused_sigmoid_gating_delta_rule_update_cpu,
)


def publish() -> None:
    """Set each as an attribute of the namespace, a plain function under its own name.

    They go past torch's dispatcher on purpose: nothing traces them here, and a plain function
    takes whichever arguments a release passes, where a registered schema would fix one form.
    """
    for operator in OPERATORS:
        setattr(torch.ops.sgl_kernel, operator.__name__, operator)
