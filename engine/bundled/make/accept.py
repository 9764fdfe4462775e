"""How many tokens a verify accepts: the draft head against the text that the trunk writes."""

from __future__ import annotations

import torch
from torch import Tensor

from .model import Model


@torch.inference_mode()
def write(model: Model, prompts: Tensor, count: int) -> Tensor:
    """Greedy continuation, recomputed in full for each token: slow, and needs no cache.

    Args:
        prompts: [B, P] int64.
    Returns:
        [B, P + count], prompts included.
    """
    tokens = prompts
    for _ in range(count):
        padded = torch.nn.functional.pad(tokens, (0, -tokens.shape[1] % 64))
        hidden = model.model(padded)[:, tokens.shape[1] - 1]
        tokens = torch.cat([tokens, model.logits(hidden).argmax(-1, keepdim=True)], dim=1)
    return tokens


@torch.inference_mode()
def lengths(model: Model, tokens: Tensor, prompt: int, steps: int) -> list[int]:
    """Accept lengths of chain drafting over greedy texts, the fed root counted (1 to steps + 1).

    A draft is accepted as long as it equals the text, and until its first miss a chain that feeds
    its own drafts is the chain that feeds the text. So one parallel pass gives every chain.

    Args:
        tokens: [B, N] int64, prompts of length `prompt` and what the trunk wrote after them.
    """
    size = (tokens.shape[1] - 2) // 64 * 64
    if size < prompt:
        raise ValueError(f"{tokens.shape[1]} tokens leave no text after a prompt of {prompt}")
    hidden = model.model(tokens[:, :size])
    embedded = model.model.embed_tokens(tokens[:, 1 : size + 1])
    drafted = model.mtp.unroll(hidden, embedded, steps)
    targets = tokens[:, 2 : size + 2]
    hits = [(model.logits(out).argmax(-1) == targets).tolist() for out in drafted]
    found = []
    for row in range(tokens.shape[0]):
        place = prompt - 1  # the last prompt token gave the first written one, the first root
        while place + steps <= size:
            run = 0
            while run < steps and hits[run][row][place + run]:
                run += 1
            found.append(run + 1)
            place += run + 1
    return found
