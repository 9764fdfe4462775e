"""Kimi delta attention against its formula, one token and one head at a time."""

from __future__ import annotations

import torch
from layer_feeding import CHANNEL_TAPS, TOKENS, check_against, random
from torch import Tensor
from torch.nn.functional import silu, softplus

from slotscope.engine.layers.kda import KDA, KimiDeltaAttention
from slotscope.engine.layers.norm import GatedNorm
from slotscope.engine.layers.recurrence import Recurrence
from slotscope.engine.memory import Shape

HEADS, SIZE, HIDDEN = 3, 5, 10
INNER = HEADS * SIZE
LAYER = KimiDeltaAttention(
    project=random(3 * INNER + 2 * SIZE + HEADS, HIDDEN),
    recurrence=Recurrence(KDA, random(3 * INNER, CHANNEL_TAPS), None, layer=0),
    decay=random(INNER, SIZE),
    rate=-random(HEADS, 1).exp(),
    rate_bias=random(HEADS, SIZE) - 4,
    gate=random(INNER, SIZE),
    norm=GatedNorm(random(SIZE), 1e-6, torch.sigmoid),
    output=random(HIDDEN, INNER),
    heads=HEADS,
    size=SIZE,
)
X = random(TOKENS, HIDDEN)


def formula() -> tuple[Tensor, Tensor, Tensor]:
    """Outputs [T, hidden], and the window and the states that an empty slot ends with."""
    mixed, f, z, b = (X @ LAYER.project.T).split((3 * INNER, SIZE, SIZE, HEADS), -1)
    rate = (f @ LAYER.decay.T).view(TOKENS, HEADS, SIZE) + LAYER.rate_bias
    decay = (LAYER.rate * softplus(rate)).exp()
    gate = (z @ LAYER.gate.T).view(TOKENS, HEADS, SIZE)
    window = torch.zeros(3 * INNER, CHANNEL_TAPS - 1, dtype=torch.float64)
    state = torch.zeros(HEADS, SIZE, SIZE, dtype=torch.float64)
    outputs = []
    for t in range(TOKENS):
        inputs = torch.cat((window, mixed[t][:, None]), 1)
        window = inputs[:, 1:]
        y = silu((inputs * LAYER.recurrence.taps).sum(1)).view(3, HEADS, SIZE)
        seen = torch.empty(HEADS, SIZE, dtype=torch.float64)
        for head in range(HEADS):
            query, key = (v / (v @ v + 1e-6).sqrt() for v in (y[0, head], y[1, head]))
            decayed = decay[t, head][:, None] * state[head]
            error = b[t, head].sigmoid() * (y[2, head] - key @ decayed)
            state[head] = decayed + torch.outer(key, error)
            seen[head] = query @ state[head] / SIZE**0.5
        normed = seen / (seen.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * LAYER.norm.weight
        outputs.append(LAYER.output @ (normed * gate[t].sigmoid()).flatten())
    return torch.stack(outputs), window, state


def test_prefill_decode_and_verify_equal_the_formula() -> None:
    shape = Shape(0, 1, 1, 1, 3 * INNER, CHANNEL_TAPS - 1, HEADS, SIZE, SIZE)
    check_against(LAYER, X, shape, *formula())
