"""Small checkpoints with random weights whose recurrent state shows in the tokens.

SGLang's dummy weights are so small that a wrong state changes no token. Here every weight has the
scale that keeps activations near one, decays are slow and keys are wide, so that a state remembers
some hundred tokens: a wrong checkpoint still shows after a page of tokens has been computed on it.
The reference is Hugging Face's model on the same weights: greedy, recomputed for every token, so
no cache of anybody's is involved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

PLACE = Path(__file__).parents[1] / "build/sglang/checkpoints"
VOCABULARY = 512
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "full_attention_interval": 2,
    "linear_conv_kernel_dim": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 16,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
QWEN3_NEXT = COMMON | {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "num_hidden_layers": 4,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],  # SGLang makes every layer a mixture of experts
    "num_experts": 2,
    "num_experts_per_tok": 1,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "norm_topk_prob": True,
    "partial_rotary_factor": 0.25,
    "rope_theta": 10000000,
}
QWEN3_5 = COMMON | {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "num_hidden_layers": 8,
    "layer_types": ["linear_attention", "full_attention"] * 4,
    "attn_output_gate": True,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000000,
        "partial_rotary_factor": 0.25,
    },
}


@dataclass(frozen=True)
class Checkpoint:
    """A folder that serves, and the tokens that are right for it."""

    folder: Path

    def reference(self, prompt: Sequence[int], count: int) -> list[int]:
        """The next `count` tokens, greedy. Kept beside the weights, since each takes a pass."""
        digest = hashlib.sha256(repr(tuple(prompt)).encode()).hexdigest()[:16]
        kept = self.folder / f"reference-{digest}.json"
        tokens: list[int] = json.loads(kept.read_text()) if kept.exists() else []
        if len(tokens) < count:
            tokens = self._continue(list(prompt), tokens, count)
            kept.write_text(json.dumps(tokens))
        return tokens[:count]

    def logprobs(self, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """Natural log of each token's probability behind the prompt, in one pass."""
        with torch.inference_mode():
            logits = self._model(torch.tensor([[*prompt, *tokens]])).logits[0]
        behind = logits[len(prompt) - 1 : -1].log_softmax(-1)
        values: list[float] = behind[torch.arange(len(tokens)), list(tokens)].tolist()
        return values

    def _continue(self, prompt: list[int], tokens: list[int], count: int) -> list[int]:
        with torch.inference_mode():
            while len(tokens) < count:
                logits = self._model(torch.tensor([prompt + tokens])).logits[0, -1]
                tokens = [*tokens, int(logits.argmax())]
        return tokens

    @cached_property
    def _model(self) -> Any:
        return _model(json.loads((self.folder / "config.json").read_text()))


def qwen3_next() -> Checkpoint:
    """Four layers, every second one linear, two experts, and a draft layer (NEXTN)."""
    return _made("qwen3_next", QWEN3_NEXT)


def qwen3_5() -> Checkpoint:
    """Eight dense layers and a draft layer: the hybrid that SGLang cuts into pipeline stages."""
    return _made("qwen3_5", QWEN3_5)


def _made(name: str, config: dict[str, Any]) -> Checkpoint:
    recipe = json.dumps(config, sort_keys=True) + Path(__file__).read_text()
    folder = PLACE / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        weights = _as_sglang_names_them(_model(config).state_dict(), config)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config, indent=1))  # last: it is made
    return Checkpoint(folder)


def _model(config: dict[str, Any]) -> Any:
    """Hugging Face's model with the weights of this recipe, always the same."""
    import transformers

    torch.set_num_threads(1)
    settings = {key: value for key, value in config.items() if key != "architectures"}
    if config["model_type"] == "qwen3_next":
        kind, of = transformers.Qwen3NextForCausalLM, transformers.Qwen3NextConfig
    else:
        kind, of = transformers.Qwen3_5ForCausalLM, transformers.Qwen3_5TextConfig
    model = kind(of(**settings)).float().eval()
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2 or "A_log" in name or "dt_bias" in name:
                parameter.copy_(_weight(name, parameter.shape, draw))
    return model


def _weight(name: str, shape: torch.Size, draw: torch.Generator) -> Tensor:
    if "A_log" in name:
        return torch.log(torch.rand(shape, generator=draw) * 0.02 + 0.001)
    if "dt_bias" in name:
        return torch.randn(shape, generator=draw) * 0.5 - 1
    scale = 0.5 if "conv1d" in name else 1.0 if "embed" in name else shape[-1] ** -0.5
    return torch.randn(shape, generator=draw) * scale


def _as_sglang_names_them(weights: dict[str, Tensor], config: dict[str, Any]) -> dict[str, Tensor]:
    """One matrix an expert, as published checkpoints have them, and a draft layer.

    The draft layer is a copy of layer 1 (full attention) behind a projection that passes the
    target's hidden state on, so some of its drafts are accepted and most are not.
    """
    named: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if name.endswith("experts.gate_up_proj"):
            for i, expert in enumerate(weight):
                gate, up = expert.chunk(2)
                named[name.replace("gate_up_proj", f"{i}.gate_proj.weight")] = gate
                named[name.replace("gate_up_proj", f"{i}.up_proj.weight")] = up
        elif name.endswith("experts.down_proj"):
            for i, expert in enumerate(weight):
                named[name.replace("down_proj", f"{i}.down_proj.weight")] = expert
        else:
            named[name] = weight
    for name in list(named):
        if name.startswith("model.layers.1."):
            named[name.replace("model.layers.1.", "mtp.layers.0.")] = named[name]
    size = config["hidden_size"]
    draw = torch.Generator().manual_seed(2)
    mix = torch.randn(size, 2 * size, generator=draw) * (2 * size) ** -0.5
    mix[:, size:] += torch.eye(size)
    named["mtp.fc.weight"] = mix
    for norm in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        named[f"mtp.{norm}.weight"] = torch.zeros(size)
    return {name: weight.contiguous().clone() for name, weight in named.items()}
