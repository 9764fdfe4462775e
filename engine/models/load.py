"""From a Hugging Face folder to a model that can be run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from . import granitemoehybrid, kimi_linear, qwen3_next
from .base import Model
from .error import ModelConfigError, UnknownModelError
from .weights import Weights

Build = Callable[[dict[str, Any], Weights], Model]

MODELS: dict[str, Build] = {
    "granitemoehybrid": granitemoehybrid.build,
    "kimi_linear": kimi_linear.build,
    "qwen3_next": qwen3_next.build,
}
"""What can be loaded, by config.json's `model_type`."""


def load(path: Path, dtype: torch.dtype, device: torch.device) -> Model:
    """The model in folder `path`: config.json and *.safetensors, sharded or not.

    Raises:
        UnknownModelError: no model here has the folder's `model_type`.
        ModelConfigError: config.json is missing, malformed, or asks for what isn't built.
        WeightsError: weights are missing, unreadable, or of the wrong shape.
    """
    config = read_json(path / "config.json")
    model_type = config.get("model_type")
    if model_type not in MODELS:
        raise UnknownModelError(
            f"{path / 'config.json'} has model_type {model_type!r}, which this engine doesn't "
            f"know. It knows: {', '.join(sorted(MODELS))}."
        )
    # generation_config.json may name more end tokens than config.json, and generation obeys it.
    generation = path / "generation_config.json"
    if generation.exists():
        eos = read_json(generation).get("eos_token_id")
        config = config if eos is None else {**config, "eos_token_id": eos}
    weights = Weights(path, dtype, device)
    model = MODELS[model_type](config, weights)
    weights.check()
    return model


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise ModelConfigError(
            f"{path} isn't there, so the model's kind and sizes are unknown. "
            "Give the path of a Hugging Face model folder."
        ) from error
    except (OSError, ValueError) as error:
        raise ModelConfigError(
            f"{path} can't be read as JSON: {error}. The model can't be loaded. Repair the file."
        ) from error
    if not isinstance(value, dict):
        raise ModelConfigError(
            f"{path} holds a JSON {type(value).__name__}, not an object. Repair the file."
        )
    return value
