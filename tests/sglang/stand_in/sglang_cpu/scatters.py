"""Commits of verified states, in torch: SGLang's Triton kernels take GPU tensors alone."""

import torch
from torch import Tensor

from . import targets

HOMES = (
    "sglang.kernels.ops.mamba.mamba_state_scatter_triton",
    "sglang.srt.layers.attention.mamba.mamba_state_scatter_triton",  # up to 0.5.18
)


def register() -> None:
    dense = [f"{home}.fused_mamba_state_scatter_with_mask" for home in HOMES]
    windows = [f"{home}.fused_conv_window_scatter_with_mask" for home in HOMES]
    targets.replace(scatter, *dense, everywhere=True)
    targets.replace(scatter, *windows)


def scatter(
    dst: Tensor,
    src: Tensor,
    dst_indices_raw: Tensor,
    step_indices_raw: Tensor,
    src_indices_raw: Tensor | None = None,
) -> None:
    """dst[:, d[i]] = src[:, r[i], step[i]] for each i whose step is not negative.

    As in the kernels, an index outside its tensor drops the copy.

    Args:
        dst: [layers, slots, ..]. src: [layers, rows, steps, ..].
        dst_indices_raw, step_indices_raw: [N]. src_indices_raw: [N] rows, or 0, 1, 2...
    """
    steps, slots = step_indices_raw.long(), dst_indices_raw[: len(step_indices_raw)].long()
    rows = torch.arange(len(steps)) if src_indices_raw is None else src_indices_raw.long()
    inside = (steps >= 0) & (steps < src.shape[2]) & (slots >= 0) & (slots < dst.shape[1])
    inside &= (rows >= 0) & (rows < src.shape[1])
    dst[:, slots[inside]] = src[:, rows[inside], steps[inside]].to(dst.dtype)
