"""The Hugging Face folder: weights, configs, tokenizer, written from a trained model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from slotscope.engine.bundled.corpus import END_OF_TEXT, IM_END
from slotscope.engine.bundled.corpus.special import MARKERS

from .config import CONTEXT_MAX, Sizes, hugging_face
from .model import Model

_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


def save(model: Model, folder: Path) -> None:
    """Write the whole folder but its README. Weights are rounded to bfloat16."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = checkpoint(model)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    _json(folder / "config.json", hugging_face(model.sizes))
    _json(
        folder / "generation_config.json",
        {"do_sample": False, "eos_token_id": [IM_END, END_OF_TEXT], "pad_token_id": END_OF_TEXT},
    )
    tokenizer().save(str(folder / "tokenizer.json"))
    _json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT_MAX,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": _TEMPLATE,
        },
    )


def load(folder: Path, sizes: Sizes | None = None) -> Model:
    """The training model with the folder's weights, float32."""
    model = Model(sizes or Sizes())
    stored = load_file(folder / "model.safetensors")
    model.load_state_dict({name: value.float() for name, value in _fused(stored).items()})
    return model.eval()


def checkpoint(model: Model) -> dict[str, Tensor]:
    """Tensors under the names of published Qwen3-Next checkpoints: one set per expert."""
    out: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        stem, _, leaf = name.rpartition(".experts.")
        if not stem:
            out[name] = value
            continue
        for expert, matrix in enumerate(value):
            here = f"{stem}.experts.{expert}"
            if leaf == "gate_up_proj":
                gate, up = matrix.chunk(2)
                out[f"{here}.gate_proj.weight"], out[f"{here}.up_proj.weight"] = gate, up
            else:
                out[f"{here}.down_proj.weight"] = matrix
    return {name: value.to("cpu", torch.bfloat16).contiguous() for name, value in out.items()}


def _fused(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `checkpoint`, but for the dtype."""
    out = {name: value for name, value in stored.items() if ".experts." not in name}
    for stem in {name.rpartition(".experts.")[0] for name in stored if ".experts." in name}:
        count = sum(
            name.startswith(f"{stem}.experts.") and name.endswith("down_proj.weight")
            for name in stored
        )
        parts = {
            leaf: torch.stack(
                [stored[f"{stem}.experts.{expert}.{leaf}.weight"] for expert in range(count)]
            )
            for leaf in ("gate_proj", "up_proj", "down_proj")
        }
        out[f"{stem}.experts.gate_up_proj"] = torch.cat(
            [parts["gate_proj"], parts["up_proj"]], dim=1
        )
        out[f"{stem}.experts.down_proj"] = parts["down_proj"]
    return out


def tokenizer() -> Tokenizer:
    """One token per byte, its id the byte's value, and the three markers."""
    # ByteLevel writes byte b as the printable character that GPT-2's table gives it.
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    letters = {byte: chr(byte) for byte in kept}
    letters |= {byte: chr(256 + place) for place, byte in enumerate(moved)}
    built = Tokenizer(models.BPE({letter: byte for byte, letter in letters.items()}, merges=[]))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    built.decoder = decoders.ByteLevel()
    markers = sorted(MARKERS, key=MARKERS.__getitem__)
    built.add_special_tokens([AddedToken(marker, special=True) for marker in markers])
    for marker, number in MARKERS.items():
        if built.token_to_id(marker) != number:
            raise ValueError(f"{marker} became {built.token_to_id(marker)}, not {number}")
    return built


def _json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")
