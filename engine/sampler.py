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

    def choose(
        self, logits: Tensor, params: Sequence[SamplingParams], positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Tokens and their log-probabilities under temperature 1.

        Args:
            logits: [B, S, vocab]; row b is sampled as params[b] says. Not a number: the greedy
                choice among what is left, with a log-probability that says so.
            positions: [B, S] int64, index of each chosen token in its row's text.
        Returns:
            tokens [B, S] int64 and logprobs [B, S], in the logits' dtype.
        """
        tokens = logits.nan_to_num(nan=-torch.inf).argmax(-1)
        for row, asked in enumerate(params):
            if asked.temperature > 0:
                probs, index = self._candidates(logits[row], asked)
                some = probs.sum(-1) > 0  # none where the logits are no numbers
                drawn = self._draw(probs[some], asked, positions[row, some])
                tokens[row, some] = index[some].gather(-1, drawn[:, None])[:, 0]
        logprobs = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        return tokens, logprobs

    def _candidates(self, logits: Tensor, asked: SamplingParams) -> tuple[Tensor, Tensor]:
        """[S, vocab] probabilities, the likeliest first, and whose they are: temperature, then the
        k likeliest, then the smallest set of mass p."""
        ordered, index = (logits.float() / asked.temperature).sort(-1, descending=True)
        probs = ordered.softmax(-1)
        keep = probs.cumsum(-1) - probs < asked.top_p
        if asked.top_k > 0:
            keep[:, asked.top_k :] = False
        return torch.where(keep, probs, 0), index

    def _draw(self, probs: Tensor, asked: SamplingParams, positions: Tensor) -> Tensor:
        """[S, vocab] at [S] to [S]. With a seed, the draw at a position is the same however the
        tokens before it came about: one by one, in a verify, alone or in a batch."""
        if not len(probs):
            return torch.empty(0, dtype=torch.int64, device=probs.device)
        if asked.seed is None:
            return torch.multinomial(probs, 1, generator=self._generator)[:, 0]
        noise = torch.empty_like(probs)
        for at, place in enumerate(positions.tolist()):
            generator = torch.Generator(device=probs.device)
            generator.manual_seed((asked.seed * 0x9E3779B97F4A7C15 + place) % (1 << 63))
            noise[at].exponential_(generator=generator)
        return (probs / noise).argmax(-1)
