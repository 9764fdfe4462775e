"""Folders that load, and folders that are refused with a reason."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

from slotscope.engine.models.base import Model
from slotscope.engine.models.driver import Driver
from slotscope.engine.models.error import ModelConfigError, UnknownModelError, WeightsError
from slotscope.engine.models.load import load
from slotscope.engine.models.testing import SMALL, make_checkpoint

CPU = torch.device("cpu")
TOKENS = random.Random(1).choices(range(SMALL["vocab_size"]), k=70)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_checkpoint(tmp_path / "model", full_attention_interval=2)


def read(folder: Path) -> Model:
    return load(folder, torch.float32, CPU)


def logits(model: Model) -> Tensor:
    driver = Driver(model, torch.float32)
    driver.begin(1)
    return model.logits(driver.prefill({1: TOKENS}))


def edit(path: Path, **fields: Any) -> None:
    """Change fields of a JSON file; None removes one."""
    merged = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({k: v for k, v in merged.items() if v is not None}))


@pytest.mark.parametrize("shard", ["10GB", "100KB"], ids=["one file", "shards"])
def test_what_transformers_saves_is_read(tmp_path: Path, shard: str) -> None:
    torch.manual_seed(0)
    theirs = Qwen3NextForCausalLM(Qwen3NextConfig(**SMALL, eos_token_id=[3, 7]))
    theirs.save_pretrained(tmp_path, max_shard_size=shard)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard == "100KB")
    ours = read(tmp_path)
    with torch.inference_mode():
        expected = theirs(torch.tensor([TOKENS])).logits[0]
    torch.testing.assert_close(logits(ours), expected, rtol=0, atol=1e-4)
    assert ours.eos_ids == (3, 7)
    assert ours.vocab_size == SMALL["vocab_size"]
    assert ours.context_max == SMALL["max_position_embeddings"]
    assert not ours.has_draft


def test_stacked_experts_are_read_like_single_ones(folder: Path) -> None:
    expected = logits(read(folder))
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for layer in range(SMALL["num_hidden_layers"]):
        name = f"model.layers.{layer}.mlp.experts"
        gate, up, down = (
            torch.stack(
                [tensors.pop(f"{name}.{n}.{part}_proj.weight") for n in range(SMALL["num_experts"])]
            )
            for part in ("gate", "up", "down")
        )
        tensors[f"{name}.gate_up_proj"] = torch.cat((gate, up), 1)
        tensors[f"{name}.down_proj"] = down
    save_file(tensors, path)
    assert torch.equal(logits(read(folder)), expected)


def test_old_and_new_spellings_of_rotary_positions_agree(folder: Path) -> None:
    config = folder / "config.json"
    edit(config, rope_theta=5e5, partial_rotary_factor=0.5, rope_scaling=None)
    old = logits(read(folder))
    rope = {"rope_type": "default", "rope_theta": 5e5, "partial_rotary_factor": 0.5}
    edit(config, rope_theta=None, partial_rotary_factor=None, rope_parameters=rope)
    assert torch.equal(logits(read(folder)), old)
    edit(config, rope_parameters=None)
    assert not torch.allclose(logits(read(folder)), old, atol=1e-3)


def test_generation_config_names_the_end_tokens(folder: Path) -> None:
    edit(folder / "config.json", eos_token_id=5)
    assert read(folder).eos_ids == (5,)
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 9]}')
    assert read(folder).eos_ids == (5, 9)


def test_shape_names_what_memory_is_needed(folder: Path) -> None:
    shape = read(folder).shape()
    assert (shape.attention_layers, shape.recurrent_layers) == (3, 2)  # the MTP layer attends
    assert (shape.kv_heads, shape.head_dim) == (2, 32)
    assert (shape.conv_channels, shape.conv_window) == (2 * 32 + 96, 3)
    assert (shape.state_heads, shape.key_dim, shape.value_dim) == (4, 16, 24)


def test_an_unknown_model_type_is_refused_with_the_known_ones(folder: Path) -> None:
    edit(folder / "config.json", model_type="mystery")
    with pytest.raises(UnknownModelError, match="'mystery'.*It knows: .*qwen3_next"):
        read(folder)


def test_missing_weights_are_named(folder: Path) -> None:
    path = folder / "model.safetensors"
    kept = {k: v for k, v in load_file(path).items() if ".self_attn." not in k}
    del kept["lm_head.weight"]
    save_file(kept, path)
    # Two layers of the trunk and the MTP head's have 6 tensors each.
    with pytest.raises(WeightsError, match=r"lacks 19 weights: lm_head\.weight, .* and 11 more\."):
        read(folder)


def test_weights_of_another_shape_are_named(folder: Path) -> None:
    edit(folder / "config.json", vocab_size=130)
    with pytest.raises(WeightsError, match=r"embed_tokens.weight is \[128, 64\], not \[130, 64\]"):
        read(folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(WeightsError, match=r"lacks 1 of 2 shards.*model-2\.safetensors"):
        read(folder)


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"weight_map": 3}'])
def test_a_broken_index_is_refused(folder: Path, text: str) -> None:
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(WeightsError, match="no index of safetensors shards"):
        read(folder)


def test_a_cut_file_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(WeightsError, match=r"model\.safetensors can't be read"):
        read(folder)


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"no \*\.safetensors file"):
        read(folder)


def test_a_folder_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigError, match=r"config\.json isn't there"):
        read(tmp_path)


@pytest.mark.parametrize("text", ["{", "[1]", '"qwen3_next"', "\xff"])
def test_a_malformed_config_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(ModelConfigError, match=r"config\.json"):
        read(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", "64"),
        ("hidden_size", 0),
        ("hidden_size", True),
        ("vocab_size", 128.0),
        ("rms_norm_eps", "small"),
        ("hidden_act", "gelu"),
        ("num_attention_heads", 3),
        ("linear_num_value_heads", 5),
        ("linear_conv_kernel_dim", 1),
        ("num_experts_per_tok", 5),
        ("num_experts", -1),
        ("full_attention_interval", 0),
        ("layer_types", ["linear_attention"]),
        ("layer_types", ["linear_attention", "full_attention", "sliding", "full_attention"]),
        ("mlp_only_layers", "0"),
        ("eos_token_id", "end"),
        ("rope_theta", -1.0),
        ("partial_rotary_factor", 1.5),
        ("quantization_config", {"quant_method": "fp8"}),
    ],
)
def test_a_bad_field_is_named(folder: Path, field: str, value: object) -> None:
    edit(folder / "config.json", **{field: value})
    with pytest.raises(ModelConfigError, match=field):
        read(folder)


def test_scaled_positions_are_refused(folder: Path) -> None:
    edit(folder / "config.json", rope_scaling={"type": "yarn", "factor": 4.0})
    with pytest.raises(ModelConfigError, match="'yarn', but must be 'default'"):
        read(folder)
