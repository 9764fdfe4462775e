"""Each family against transformers, on the same random weights in float32."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from slotscope.engine.models.driver import Driver
from slotscope.engine.models.load import load
from slotscope.engine.models.testing import SMALL, make_checkpoint

CPU = torch.device("cpu")
close = partial(torch.testing.assert_close, rtol=0, atol=1e-4)
TOKENS = random.Random(1).choices(range(SMALL["vocab_size"]), k=150)
CONFIGS: dict[str, dict[str, Any]] = {
    "qwen3_next, every second layer attends": {"full_attention_interval": 2},
    "qwen3_next, every fourth layer attends": {"full_attention_interval": 4},
    "qwen3_next, dense layers, tied, biased": {
        "full_attention_interval": 2,
        "mlp_only_layers": [0],
        "decoder_sparse_step": 3,
        "tie_word_embeddings": True,
        "attention_bias": True,
        "norm_topk_prob": False,
        "num_key_value_heads": 4,
        "linear_num_value_heads": 2,
    },
    "kimi_linear, groups of experts": {},
    "kimi_linear, one group, mixtures alone": {
        "num_expert_group": 1,
        "topk_group": 1,
        "num_experts_per_token": 3,
        "num_shared_experts": 1,
        "moe_renormalize": False,
        "first_k_dense_replace": 0,
        "linear_attn_config": {
            "kda_layers": [1, 2, 3],
            "full_attn_layers": [4],
            "num_heads": 2,
            "head_dim": 32,
            "short_conv_kernel_size": 3,
        },
    },
    "kimi_linear, as transformers spells it": {
        "linear_attn_config": {},
        "layer_types": ["full_attention", "linear_attention"] * 2,
        "mlp_layer_types": ["sparse", "dense"] * 2,
        "linear_num_heads": 2,
        "linear_head_dim": 24,
        "linear_conv_kernel_dim": 4,
    },
    "granitemoehybrid, experts, no positions": {},
    "granitemoehybrid, dense, positions, tied, biased": {
        "layer_types": ["linear_attention", "full_attention"] * 2,
        "num_local_experts": 0,
        "position_embedding_type": "rope",
        "rope_theta": 5e4,
        "tie_word_embeddings": True,
        "logits_scaling": 8.0,  # else they spread by 30, and rounding with them
        "attention_bias": True,
        "mamba_proj_bias": True,
        "mamba_conv_bias": False,
        "mamba_n_groups": 1,
        "mamba_d_conv": 3,
        "mamba_d_head": "auto",
        "num_key_value_heads": 4,
    },
}


class Pair:
    """One folder: our model, and the logits and states that transformers gives for TOKENS."""

    def __init__(self, family: str, folder: Path) -> None:
        self.ours = load(folder, torch.float32, CPU)
        theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        with torch.inference_mode():
            result = theirs(torch.tensor([TOKENS]), use_cache=True)
        self.logits: Tensor = result.logits[0]
        layers = [n for n, t in enumerate(theirs.config.layer_types) if t == "linear_attention"]
        self.ssm = torch.stack([result.cache.get_recurrent_state(n)[0] for n in layers])
        if family == "granitemoehybrid":
            self.ssm = self.ssm.mT  # there a state is [head size, state size]
        self.conv = torch.stack([result.cache.get_conv_state(n)[0] for n in layers])


@pytest.fixture(scope="module", params=[*CONFIGS.items()], ids=[*CONFIGS])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    name, config = request.param
    family = name.split(",")[0]
    folder = make_checkpoint(tmp_path_factory.mktemp("model"), family=family, **config)
    return Pair(family, folder)


def cut(tokens: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(tokens), size):
        yield tokens[start : start + size]


def test_prefill_equals_transformers(pair: Pair) -> None:
    driver = Driver(pair.ours, torch.float32)
    driver.begin(3)
    close(pair.ours.logits(driver.prefill({3: TOKENS})), pair.logits)
    conv, ssm = driver.state(3)
    close(ssm, pair.ssm)
    # transformers may keep the whole kernel's window; the last inputs are what counts.
    close(conv, pair.conv[..., -conv.shape[-1] :])


@pytest.mark.parametrize("size", [7, 63, 65, 128])
def test_chunked_prefill_equals_transformers(pair: Pair, size: int) -> None:
    driver = Driver(pair.ours, torch.float32)
    driver.begin(3)
    hidden = torch.cat([driver.prefill({3: chunk}) for chunk in cut(TOKENS, size)])
    close(pair.ours.logits(hidden), pair.logits)
    close(driver.state(3)[1], pair.ssm)


def test_decode_equals_transformers(pair: Pair) -> None:
    driver = Driver(pair.ours, torch.float32)
    driver.begin(3)
    hidden = [driver.prefill({3: TOKENS[:100]})]
    hidden += [driver.decode({3: token}) for token in TOKENS[100:]]
    close(pair.ours.logits(torch.cat(hidden)), pair.logits)
    close(driver.state(3)[1], pair.ssm)


def test_verify_equals_transformers(pair: Pair) -> None:
    driver = Driver(pair.ours, torch.float32)
    driver.begin(3)
    driver.prefill({3: TOKENS[:146]})
    hidden = driver.verify({3: TOKENS[146:]})
    close(pair.ours.logits(hidden[0]), pair.logits[146:])
    close(driver.memory.ssm_steps[:, 0, 3], pair.ssm)
