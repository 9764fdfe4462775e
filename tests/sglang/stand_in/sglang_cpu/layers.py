"""Two layers in torch, for speed alone: interpreted, they take three quarters of a step.

Every other Triton kernel of the model, the ones that track states among them, is SGLang's own,
run by Triton's interpreter.
"""

from collections.abc import Callable
from typing import Any

import torch
from sgl_kernel.gates import rms_norm_times_silu
from torch import Tensor

from . import targets

FLA = "sglang.kernels.ops.attention.fla"
EARLY_FLA = "sglang.srt.layers.attention.fla"
SILU = ("swish", "silu")


def register() -> None:
    targets.replace(
        add_gated_expert, "sglang.kernels.ops.elementwise.elementwise.fused_gate_sigmoid_mul_add"
    )
    for home in (FLA, EARLY_FLA):
        targets.wrap(_norm_gated, f"{home}.fused_norm_gate.rms_norm_gated")
        targets.wrap(_layer_norm_gated, f"{home}.layernorm_gated.rms_norm_gated")


def add_gated_expert(
    hidden_states: Tensor, gate_weight: Tensor, shared_output: Tensor, final_hidden_states: Tensor
) -> None:
    """final += sigmoid(hidden . gate) * shared, in place: the shared expert's share. All [T, E]."""
    gate = torch.sigmoid((hidden_states.float() * gate_weight.float()).sum(-1, keepdim=True))
    final_hidden_states += (gate * shared_output.float()).to(final_hidden_states.dtype)


def _norm_gated(
    original: Callable[..., Any],
    x: Tensor,
    g: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    activation: str = "swish",
    residual: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    eps: float = 1e-6,
) -> Any:
    if bias is None and residual is None and not prenorm and activation in SILU:
        return rms_norm_times_silu(x, g, weight, eps)
    return original(x, g, weight, bias, activation, residual, prenorm, residual_in_fp32, eps)


def _layer_norm_gated(original: Callable[..., Any], **named: Any) -> Any:
    x, gate = named["x"], named.get("z")
    plain = named.get("is_rms_norm") and named.get("norm_before_gate", True)
    whole = named.get("group_size") in (None, x.shape[-1])
    silu = named.get("activation", "swish") in SILU
    if gate is None or named.get("bias") is not None or not (plain and whole and silu):
        return original(**named)
    return rms_norm_times_silu(x, gate.reshape(x.shape), named["weight"], named.get("eps", 1e-6))
