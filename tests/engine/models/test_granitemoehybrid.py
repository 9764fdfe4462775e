"""GraniteMoeHybrid folders: what transformers saves is read, and what isn't built is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GraniteMoeHybridForCausalLM

from slotscope.engine.models.base import Model
from slotscope.engine.models.config import FULL
from slotscope.engine.models.driver import Driver
from slotscope.engine.models.error import ModelConfigError, WeightsError
from slotscope.engine.models.granitemoehybrid_config import GraniteMoeHybridConfig
from slotscope.engine.models.load import load
from slotscope.engine.models.testing import make_checkpoint
from slotscope.engine.models.testing.granitemoehybrid import SMALL

CPU = torch.device("cpu")
TOKENS = random.Random(1).choices(range(SMALL["vocab_size"]), k=70)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_checkpoint(tmp_path / "model", family="granitemoehybrid")


def read(folder: Path) -> Model:
    return load(folder, torch.float32, CPU)


def logits(model: Model) -> Tensor:
    driver = Driver(model, torch.float32)
    driver.begin(1)
    return model.logits(driver.prefill({1: TOKENS}))


def edit(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_what_transformers_saves_is_read(folder: Path, tmp_path: Path) -> None:
    """It spells the kinds of layers and an endless limit otherwise than the Hub does."""
    GraniteMoeHybridForCausalLM.from_pretrained(folder).save_pretrained(tmp_path / "saved")
    saved, ours = logits(read(tmp_path / "saved")), logits(read(folder))
    torch.testing.assert_close(saved, ours, rtol=0, atol=1e-5)


def test_shape_names_what_memory_is_needed(folder: Path) -> None:
    model = read(folder)
    shape = model.shape()
    assert (shape.attention_layers, shape.recurrent_layers) == (2, 2)
    assert (shape.kv_heads, shape.head_dim) == (2, 16)
    assert (shape.conv_channels, shape.conv_window) == (192 + 2 * 2 * 20, 3)
    assert (shape.state_heads, shape.key_dim, shape.value_dim) == (6, 20, 32)
    assert (model.context_max, model.eos_ids, model.has_draft) == (4096, (2,), False)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_act", "gelu"),
        ("position_embedding_type", "alibi"),
        ("time_step_limit", [0.001, 0.1]),
        ("num_attention_heads", 3),
        ("num_key_value_heads", 0),
        ("num_key_value_heads", "2"),
        ("mamba_d_head", 16),
        ("mamba_d_head", "automatic"),
        ("mamba_n_groups", 4),
        ("mamba_n_heads", 0),
        ("mamba_d_conv", 1),
        ("num_experts_per_tok", 5),
        ("num_local_experts", -1),
        ("logits_scaling", 0),
        ("residual_multiplier", "1"),
        ("layer_types", ["mamba", "attention"]),
        ("layer_types", ["mamba", "attention", "mamba", 7]),
        ("quantization_config", {"quant_method": "fp8"}),
    ],
)
def test_a_field_that_is_not_built_is_named(folder: Path, field: str, value: object) -> None:
    edit(folder, **{field: value})
    with pytest.raises(ModelConfigError, match=field):
        read(folder)


def test_the_config_of_a_published_model_is_read() -> None:
    """Granite 4.0 H 350M: no experts, no positions, and integers where fractions may stand."""
    full = [10, 13, 17, 27]
    config = GraniteMoeHybridConfig.read(
        {
            "model_type": "granitemoehybrid",
            "attention_multiplier": 0.015625,
            "embedding_multiplier": 12,
            "eos_token_id": 100257,
            "hidden_size": 768,
            "intermediate_size": 2048,
            "logits_scaling": 3,
            "layer_types": ["attention" if n in full else "mamba" for n in range(32)],
            "mamba_d_head": 32,
            "mamba_d_state": 128,
            "mamba_n_groups": 1,
            "mamba_n_heads": 48,
            "max_position_embeddings": 32768,
            "num_attention_heads": 12,
            "num_experts_per_tok": 0,
            "num_hidden_layers": 32,
            "num_key_value_heads": 4,
            "num_local_experts": 0,
            "position_embedding_type": "nope",
            "residual_multiplier": 0.246,
            "rms_norm_eps": 1e-05,
            "rope_theta": 10000,
            "shared_intermediate_size": 2048,
            "tie_word_embeddings": True,
            "vocab_size": 100352,
        }
    )
    assert [n for n, kind in enumerate(config.layer_types) if kind == FULL] == full
    assert (config.head_dim, config.mamba_d_head, config.rope_theta) == (64, 32, None)
    assert config.embedding_multiplier == 12.0


def test_scaled_positions_are_refused(folder: Path) -> None:
    edit(folder, position_embedding_type="rope", rope_scaling={"type": "yarn", "factor": 4.0})
    with pytest.raises(ModelConfigError, match="'yarn', but must be 'default'"):
        read(folder)


def test_missing_weights_are_named(folder: Path) -> None:
    edit(folder, mamba_proj_bias=True)
    with pytest.raises(WeightsError, match=r"lacks 4 weights: .*mamba\.in_proj\.bias"):
        read(folder)
