"""Kimi-Linear folders: what transformers saves is read, and what isn't built is refused by name."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import KimiLinearForCausalLM

from slotscope.engine.models.base import Model
from slotscope.engine.models.config import FULL
from slotscope.engine.models.driver import Driver
from slotscope.engine.models.error import ModelConfigError, WeightsError
from slotscope.engine.models.kimi_linear_config import KimiLinearConfig
from slotscope.engine.models.load import load
from slotscope.engine.models.testing import make_checkpoint
from slotscope.engine.models.testing.kimi_linear import SMALL

CPU = torch.device("cpu")
TOKENS = random.Random(1).choices(range(SMALL["vocab_size"]), k=70)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_checkpoint(tmp_path / "model", family="kimi_linear")


def read(folder: Path) -> Model:
    return load(folder, torch.float32, CPU)


def logits(model: Model) -> Tensor:
    driver = Driver(model, torch.float32)
    driver.begin(1)
    return model.logits(driver.prefill({1: TOKENS}))


def test_what_transformers_saves_is_read(folder: Path, tmp_path: Path) -> None:
    """It spells the first layer, which is dense, and some fields otherwise than the Hub does."""
    KimiLinearForCausalLM.from_pretrained(folder).save_pretrained(tmp_path / "saved")
    saved, ours = logits(read(tmp_path / "saved")), logits(read(folder))
    torch.testing.assert_close(saved, ours, rtol=0, atol=1e-5)


def test_one_latent_is_kept_for_all_heads(folder: Path) -> None:
    model = read(folder)
    shape = model.shape()
    assert (shape.attention_layers, shape.recurrent_layers) == (2, 2)
    assert (shape.kv_heads, shape.head_dim, shape.has_values) == (1, 24 + 8, False)
    assert (shape.conv_channels, shape.conv_window) == (3 * 48, 3)
    assert (shape.state_heads, shape.key_dim, shape.value_dim) == (3, 16, 16)
    assert Driver(model, torch.float32).memory.values.numel() == 0
    assert (model.context_max, model.eos_ids, model.has_draft) == (4096, (2,), False)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("q_lora_rank", 16),
        ("mla_use_nope", False),
        ("attention_bias", True),
        ("tie_word_embeddings", True),
        ("hidden_act", "gelu"),
        ("moe_router_activation_func", "softmax"),
        ("num_nextn_predict_layers", 1),
        ("num_key_value_heads", 2),
        ("num_expert_group", 3),
        ("num_expert_group", 8),
        ("topk_group", 5),
        ("num_experts_per_token", 5),
        ("kv_lora_rank", 0),
        ("linear_attn_config", []),
        ("linear_attn_config", {"kda_layers": [1, 2], "full_attn_layers": [2, 4]}),
        ("linear_attn_config", {"head_dim": "16"}),
        ("linear_attn_config", {"gate_lower_bound": -5.0}),
        ("routed_expert_hidden_size", 32),
        ("layer_types", ["linear_attention"]),
        ("mlp_layer_types", ["dense", "sparse", "sparse", "thin"]),
        ("quantization_config", {"quant_method": "fp8"}),
    ],
)
def test_a_field_that_is_not_built_is_named(folder: Path, field: str, value: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    renamed = {
        "num_expert_group": "n_group",
        "num_experts_per_token": "num_experts_per_tok",
    }
    with pytest.raises(ModelConfigError, match=renamed.get(field, field)):
        read(folder)


def test_the_config_of_the_published_model_is_read() -> None:
    full = [4, 8, 12, 16, 20, 24, 27]
    config = KimiLinearConfig.read(
        {
            "model_type": "kimi_linear",
            "vocab_size": 163840,
            "hidden_size": 2304,
            "head_dim": 72,
            "num_hidden_layers": 27,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "linear_attn_config": {
                "full_attn_layers": full,
                "kda_layers": sorted(set(range(1, 28)) - set(full)),
                "head_dim": 128,
                "num_heads": 32,
                "short_conv_kernel_size": 4,
            },
            "first_k_dense_replace": 1,
            "mla_use_nope": True,
            "q_lora_rank": None,
            "model_max_length": 1048576,
            "num_experts": 256,
            "num_experts_per_token": 8,
            "num_expert_group": 1,
            "topk_group": 1,
            "moe_layer_freq": 1,
            "moe_renormalize": True,
            "moe_router_activation_func": "sigmoid",
            "num_nextn_predict_layers": 0,
            "use_grouped_topk": True,
            "rope_scaling": None,
            "tie_word_embeddings": False,
        }
    )
    assert [n for n, kind in enumerate(config.layer_types, 1) if kind == FULL] == full
    assert config.mlp_layer_types.count("sparse") == 26
    assert (config.linear_num_heads, config.linear_head_dim) == (32, 128)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "model", family="kimi_linear")
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "first_k_dense_replace": 0}))
    with pytest.raises(WeightsError, match=r"layers\.0\.block_sparse_moe\.gate\.weight"):
        read(folder)
