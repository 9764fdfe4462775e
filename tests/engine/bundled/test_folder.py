"""The folder: a Qwen3-Next checkpoint that others load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from slotscope.engine.bundled import PATH
from slotscope.engine.bundled.make import folder
from slotscope.engine.bundled.make.config import Sizes, hugging_face
from slotscope.engine.bundled.make.model import Model

WEIGHT_BYTES_MAX = 8 * 10**6


def test_weights_are_small_bfloat16() -> None:
    assert sum(path.stat().st_size for path in PATH.glob("*.safetensors")) < WEIGHT_BYTES_MAX
    stored = load_file(PATH / "model.safetensors")
    assert {value.dtype for value in stored.values()} == {torch.bfloat16}
    assert all(value.isfinite().all() for value in stored.values())


def test_transformers_finds_all_its_weights_and_leaves_the_head(theirs: Any) -> None:
    stored = load_file(PATH / "model.safetensors")
    heads = {name.split(".")[0] for name in stored}
    assert heads == {"model", "mtp"}
    assert "mtp.layers.0.mlp.experts.3.down_proj.weight" in stored
    ours = sum(value.numel() for name, value in stored.items() if name.startswith("model."))
    assert ours == sum(value.numel() for value in theirs.parameters())


def test_logits_equal_transformers(model: Model, theirs: Any, prompts: Tensor) -> None:
    with torch.inference_mode():
        expected = theirs(prompts).logits
        got = model.logits(model.model(prompts))
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-3)  # logits reach 25


def test_config_is_the_one_that_the_script_writes() -> None:
    assert json.loads((PATH / "config.json").read_text()) == hugging_face(Sizes())


def test_saved_model_comes_back(tmp_path: Path) -> None:
    torch.manual_seed(3)
    made = Model(Sizes(hidden_size=64, moe_intermediate_size=32, num_experts=3))
    folder.save(made, tmp_path)
    back = folder.load(tmp_path, made.sizes).state_dict()
    for name, value in made.state_dict().items():
        assert torch.equal(back[name], value.to(torch.bfloat16).float()), name


def test_card_tells_the_figures_as_printed() -> None:
    card = (PATH / "README.md").read_text()
    figures = json.loads((PATH / "figures.json").read_text())
    for name in ("parameters", "steps", "held_out_nats_per_byte", "accept_length_mean"):
        assert str(figures[name]) in card, name
