"""Weights: random ones, under which a wrong recurrent state shows in the next token.

SGLang's own dummy weights are so small that the state has no influence on the output.
"""

from __future__ import annotations

import zlib
from typing import Any

import torch

_BRANCHES = ("o_proj", "out_proj", "down_proj", "w2_weight")  # what a layer adds to the residual
_FLOATS = (torch.bfloat16, torch.float16, torch.float32)


def install() -> None:
    """Draw SGLang's dummy weights anew, right after it has drawn them."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    at = "sglang.srt.model_loader.loader.initialize_dummy_weights"
    HookRegistry.register(at, _drawn, HookType.AFTER)


def _drawn(_: Any, model: Any, *__: Any, **___: Any) -> None:
    for name, parameter in model.named_parameters():
        if parameter.dtype in _FLOATS:
            generator = torch.Generator(device=parameter.device)
            # Target and draft model share names but for the prefix, and so their weights.
            generator.manual_seed(zlib.crc32(name.replace("model.layers", "layers").encode()))
            _draw(name, parameter.data, generator)


def _draw(name: str, weight: torch.Tensor, generator: torch.Generator) -> None:
    if name.endswith("A_log"):
        weight.uniform_(-7.0, -3.0, generator=generator)  # decays slowly: the past matters
    elif name.endswith("linear_attn.norm.weight"):
        weight.fill_(1.0)
    elif weight.dim() == 1:
        weight.zero_()  # biases, and norms that multiply with 1 + weight
    elif "conv1d" in name:
        weight.normal_(0, 0.5, generator=generator)
    elif "embed_tokens" in name:
        weight.normal_(0, 1.0, generator=generator)
    elif name == "fc.weight":  # of the draft model: it starts from the token's embedding
        weight.zero_()
        width = weight.shape[0]
        weight[:, :width].copy_(torch.eye(width, dtype=weight.dtype, device=weight.device))
    else:
        scale = 0.5 if any(branch in name for branch in _BRANCHES) else 1.0
        weight.normal_(0, scale * weight.shape[-1] ** -0.5, generator=generator)
