"""Sampler: logits to tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .request import SamplingParams


class Sampler:
    """Chooses a token for each position; greedy where the temperature is 0."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._generator = torch.Generator(device=device).manual_seed(seed)

    def choose(self, logits: Tensor, params: Sequence[SamplingParams]) -> tuple[Tensor, Tensor]:
        """Tokens and their log-probabilities under temperature 1.

        Args:
            logits: [B, S, vocab]; row b is sampled as params[b] says.
        Returns:
            tokens [B, S] int64 and logprobs [B, S], in the logits' dtype.
        """
        tokens = logits.argmax(-1)
        for row, asked in enumerate(params):
            if asked.temperature > 0:
                tokens[row] = self._draw(logits[row], asked)
        logprobs = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        return tokens, logprobs

    def _draw(self, logits: Tensor, asked: SamplingParams) -> Tensor:
        """[S, vocab] to [S]: temperature, then the k likeliest, then the smallest set of mass p."""
        generator = self._generator
        if asked.seed is not None:
            generator = torch.Generator(device=logits.device).manual_seed(asked.seed)
        ordered, index = (logits.float() / asked.temperature).sort(-1, descending=True)
        probs = ordered.softmax(-1)
        keep = probs.cumsum(-1) - probs < asked.top_p
        if asked.top_k > 0:
            keep[:, asked.top_k :] = False
        drawn = torch.multinomial(probs * keep, 1, generator=generator)
        return index.gather(-1, drawn)[:, 0]
