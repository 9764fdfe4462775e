"""Weights: the named tensors of a Hugging Face folder, read when asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from slotscope.engine.layers.norm import Norm
from slotscope.engine.layers.precision import wide

from .error import WeightsError

INDEX = "model.safetensors.index.json"
SHOWN = 8
"""Names that a message lists before it says how many more there are."""


class Weights:
    """Tensors by name, from one file or from shards.

    `take` notes a missing or misshapen tensor and goes on with an empty one of the right shape, so
    that `check`, called when the model is built, names them together.
    """

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype, self.device = dtype, device
        self.wide = wide(dtype)  # of norms and gates
        self._folder = folder
        self._files: dict[str, Any] = {}
        self._missing: list[str] = []
        self._misshapen: list[str] = []
        for path in _paths(folder):
            try:
                file = safe_open(path, framework="pt", device=str(device))
            except (OSError, SafetensorError) as error:
                raise WeightsError(
                    f"{path} can't be read as safetensors: {error}. "
                    "The model can't be loaded. Download the file again."
                ) from error
            self._files.update(dict.fromkeys(file.keys(), file))

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def take(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """The tensor `name`, which must have this shape, in `dtype` or the model's."""
        to = dtype or self.dtype
        if name not in self._files:
            self._missing.append(name)
            return torch.empty(shape, dtype=to, device=self.device)
        tensor: Tensor = self._files[name].get_tensor(name)
        if tensor.shape != shape:
            self._misshapen.append(f"{name} is {list(tensor.shape)}, not {list(shape)}")
            return torch.empty(shape, dtype=to, device=self.device)
        return tensor.to(to)

    def matrix(self, name: str, rows: int, columns: int) -> Tensor:
        """The weight [rows, columns] of linear layer `name`."""
        return self.take(f"{name}.weight", rows, columns)

    def norm(self, name: str, size: int, eps: float) -> Norm:
        """A norm whose weight is stored as it is applied."""
        return Norm(self.take(f"{name}.weight", size, dtype=self.wide), eps)

    def check(self) -> None:
        """Raise WeightsError if something that was taken wasn't there."""
        if self._missing:
            raise WeightsError(
                f"{self._folder} lacks {len(self._missing)} weights: {_listed(self._missing)}. "
                "The model can't be loaded. Check that config.json belongs to these files and "
                "that all shards are there."
            )
        if self._misshapen:
            raise WeightsError(
                f"{self._folder} has {len(self._misshapen)} weights of a shape that config.json "
                f"doesn't ask for: {_listed(self._misshapen)}. The model can't be loaded. "
                "Quantized checkpoints aren't supported; else check that config.json belongs here."
            )


def _paths(folder: Path) -> list[Path]:
    """The files that hold the folder's weights: those that an index names, else all."""
    index = folder / INDEX
    if not index.exists():
        found = sorted(folder.glob("*.safetensors"))
        if not found:
            raise WeightsError(
                f"{folder} has no *.safetensors file, so there are no weights to load. "
                "Save the model with save_pretrained, or download its safetensors files."
            )
        return found
    try:
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise WeightsError(
            f"{index} is no index of safetensors shards ({error!r}): it needs a `weight_map` from "
            "tensor to file name. The model can't be loaded. Download the file again."
        ) from error
    absent = [name for name in names if not (folder / name).is_file()]
    if absent:
        raise WeightsError(
            f"{folder} lacks {len(absent)} of {len(names)} shards that {INDEX} names: "
            f"{_listed(absent)}. The model can't be loaded. Download them."
        )
    return [folder / name for name in names]


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
