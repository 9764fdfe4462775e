"""Random tensors under a checkpoint's names."""

from __future__ import annotations

import torch
from torch import Tensor

MATRICES = ("gate_proj", "up_proj", "down_proj")


class RandomWeights:
    """Fills `tensors`, all float32, from one generator."""

    def __init__(self, generator: torch.Generator) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._generator = generator

    def embeddings(self, vocab: int, hidden: int, *, tied: bool) -> None:
        """Embedding and unembedding."""
        # Trunk and MTP head agree where the last token decides. Larger, it would hide the state.
        self.tensors["model.embed_tokens.weight"] = 2 * self.normal(vocab, hidden)
        if not tied:
            self.linear("lm_head", vocab, hidden)

    def decay(self, rate: str, bias: str, heads: int, channels: int = 1) -> None:
        """A_log and dt_bias of heads that fade by 0.97 to 0.998 a token, unless the input says
        otherwise: the decay is exp(-exp(A_log) softplus(input + dt_bias))."""
        steps = torch.linspace(0, 1, heads)
        self.tensors[rate] = steps - 1
        self.tensors[bias] = (-5 + 2 * steps).repeat_interleave(channels)

    def mlp(
        self, name: str, hidden: int, inner: int, names: tuple[str, str, str] = MATRICES
    ) -> None:
        """A gated block."""
        gate, up, down = names
        self.linear(f"{name}.{gate}", inner, hidden)
        self.linear(f"{name}.{up}", inner, hidden)
        self.linear(f"{name}.{down}", hidden, inner)

    def linear(self, name: str, rows: int, columns: int, biased: bool = False) -> None:
        """Outputs as large as inputs."""
        self.tensors[f"{name}.weight"] = self.normal(rows, columns) / columns**0.5
        if biased:
            self.tensors[f"{name}.bias"] = 0.1 * self.normal(rows)

    def norm(self, name: str, size: int, *, center: float = 1.0) -> None:
        """A norm's weight around `center`."""
        self.tensors[f"{name}.weight"] = center + 0.1 * self.normal(size)

    def normal(self, *shape: int) -> Tensor:
        """Numbers of variance one."""
        return torch.randn(shape, generator=self._generator)
