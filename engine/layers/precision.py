"""Which dtype to compute in where rounding would show."""

from __future__ import annotations

import torch


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype of norms, gates, routers and states beside activations of `dtype`.

    float32, as transformers does, except beside float64: there nothing may be narrower, so that a
    recomputed state can be told from a wrong one.
    """
    return torch.float64 if dtype == torch.float64 else torch.float32
