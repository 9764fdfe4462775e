"""The MTP head against one put together from transformers' own decoder layer, which has no MTP."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import Qwen3NextConfig
from transformers.models.qwen3_next import modeling_qwen3_next as theirs

from slotscope.engine.models.base import Model
from slotscope.engine.models.driver import Driver
from slotscope.engine.models.error import ModelError
from slotscope.engine.models.load import load
from slotscope.engine.models.testing import SMALL, make_checkpoint
from slotscope.instrument.event import Kind

CPU = torch.device("cpu")
NEXT = random.Random(3).choices(range(SMALL["vocab_size"]), k=90)
HIDDEN = torch.randn(90, SMALL["hidden_size"], generator=torch.Generator().manual_seed(4))
close = partial(torch.testing.assert_close, rtol=0, atol=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load(folder, torch.float32, CPU)


@pytest.fixture
def driver(model: Model) -> Driver:
    driver = Driver(model, torch.float32)
    driver.begin(1, 2)
    return driver


@pytest.fixture(scope="module")
def expected(folder: Path) -> Tensor:
    """Hidden [90, H]: norm(layer(fc(norm(embedding), norm(hidden)))) with transformers' modules."""
    tensors = load_file(folder / "model.safetensors")
    config = Qwen3NextConfig(**{**SMALL, "num_hidden_layers": 1, "full_attention_interval": 1})
    config._attn_implementation = "eager"

    def norm(name: str, x: Tensor) -> Tensor:
        module = theirs.Qwen3NextRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        module.weight.data = tensors[f"mtp.{name}.weight"]
        return module(x)  # type: ignore[no-any-return]

    with torch.inference_mode():
        embedded = tensors["model.embed_tokens.weight"][NEXT]
        pair = (norm("pre_fc_norm_embedding", embedded), norm("pre_fc_norm_hidden", HIDDEN))
        x = (torch.cat(pair, -1) @ tensors["mtp.fc.weight"].T)[None]
        layer = theirs.Qwen3NextDecoderLayer(config, 0).eval()
        layer.load_state_dict(_stacked(tensors, config.num_experts))
        length = x.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)[None, None]
        rotary = theirs.Qwen3NextRotaryEmbedding(config)(x, torch.arange(length)[None])
        return norm("norm", layer(x, position_embeddings=rotary, attention_mask=mask)[0])


def _stacked(tensors: dict[str, Tensor], experts: int) -> dict[str, Any]:
    """The MTP layer's tensors under transformers' names: its experts are one tensor."""
    prefix = "mtp.layers.0."
    names = [name for name in tensors if name.startswith(prefix) and ".experts." not in name]
    state = {name.removeprefix(prefix): tensors[name] for name in names}

    def all_of(part: str) -> Tensor:
        each = [tensors[f"{prefix}mlp.experts.{n}.{part}_proj.weight"] for n in range(experts)]
        return torch.stack(each)

    state["mlp.experts.gate_up_proj"] = torch.cat((all_of("gate"), all_of("up")), 1)
    state["mlp.experts.down_proj"] = all_of("down")
    return state


def draft(driver: Driver, kind: Kind, tokens: dict[int, list[int]], hidden: Tensor) -> Tensor:
    return driver.model.draft(driver.batch(kind, tokens), driver.memory, hidden)


def test_draft_equals_transformers_layer(driver: Driver, expected: Tensor) -> None:
    close(draft(driver, Kind.PREFILL, {1: NEXT}, HIDDEN), expected)


def test_draft_in_chunks_steps_and_chains(driver: Driver, expected: Tensor) -> None:
    chunks = (
        draft(driver, Kind.PREFILL, {1: NEXT[:33]}, HIDDEN[:33]),
        draft(driver, Kind.PREFILL, {1: NEXT[33:80]}, HIDDEN[33:80]),
        draft(driver, Kind.VERIFY, {1: NEXT[80:84]}, HIDDEN[80:84]),
        *(draft(driver, Kind.DECODE, {1: [NEXT[n]]}, HIDDEN[n : n + 1]) for n in range(84, 90)),
    )
    close(torch.cat(chunks), expected)


def test_draft_touches_only_its_own_memory(driver: Driver) -> None:
    before = [driver.state(slot) for slot in (1, 2)]
    draft(driver, Kind.PREFILL, {1: NEXT[:64], 2: NEXT[:7]}, HIDDEN[:71])
    assert driver.memory.keys[:-1].isnan().all()
    assert driver.memory.keys[-1].isfinite().any()
    for slot, kept in zip((1, 2), before, strict=True):
        for now, then in zip(driver.state(slot), kept, strict=True):
            assert torch.equal(now, then)


def test_logits_of_a_draft_predict_the_token_after_next(driver: Driver, model: Model) -> None:
    """Test checkpoints promise it: some of their drafts are what the trunk says then."""
    driver.prefill({1: NEXT})
    tokens, hidden = [5], []
    for _ in range(64):
        hidden.append(driver.decode({1: tokens[-1]}))
        tokens.append(int(model.logits(hidden[-1]).argmax()))
    drafted = draft(driver, Kind.PREFILL, {2: tokens[1:]}, torch.cat(hidden))
    guesses = model.logits(drafted).argmax(-1).tolist()
    hits = sum(guess == token for guess, token in zip(guesses, tokens[2:], strict=False))
    assert 8 <= hits <= 48


def test_a_folder_without_a_head_has_no_draft(tmp_path: Path) -> None:
    model = load(make_checkpoint(tmp_path, head=False), torch.float32, CPU)
    assert not model.has_draft
    driver = Driver(model, torch.float32)
    driver.begin(1)
    assert driver.memory.keys.shape[0] == 2
    with pytest.raises(ModelError, match=r"no mtp\.\* weights"):
        draft(driver, Kind.DECODE, {1: [5]}, HIDDEN[:1])
