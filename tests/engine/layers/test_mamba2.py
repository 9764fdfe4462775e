"""Mamba2 against its formula, one token and one head at a time."""

from __future__ import annotations

import torch
from layer_feeding import CHANNEL_TAPS, TOKENS, check_against, random
from torch import Tensor
from torch.nn.functional import silu, softplus

from slotscope.engine.layers.mamba2 import MAMBA2, Mamba2
from slotscope.engine.layers.norm import GroupedGatedNorm
from slotscope.engine.layers.recurrence import Recurrence
from slotscope.engine.memory import Shape

HEADS, HEAD_SIZE, GROUPS, STATE, HIDDEN = 4, 5, 2, 3, 10
INNER, SHARED = HEADS * HEAD_SIZE, GROUPS * STATE
CHANNELS = INNER + 2 * SHARED
BIAS, STEP_BIAS, SKIP = random(CHANNELS), random(HEADS) - 3, random(HEADS, 1)
PROJECT_BIAS, OUTPUT_BIAS = random(INNER + CHANNELS + HEADS), random(HIDDEN)
LAYER = Mamba2(
    project=random(INNER + CHANNELS + HEADS, HIDDEN),
    bias=PROJECT_BIAS,
    recurrence=Recurrence(MAMBA2, random(CHANNELS, CHANNEL_TAPS), BIAS, layer=0, skip=SKIP),
    rate=-random(HEADS).exp(),
    step_bias=STEP_BIAS,
    norm=GroupedGatedNorm(random(GROUPS, INNER // GROUPS), 1e-6),
    output=random(HIDDEN, INNER),
    output_bias=OUTPUT_BIAS,
    heads=HEADS,
    head_size=HEAD_SIZE,
    groups=GROUPS,
    state_size=STATE,
)
X = random(TOKENS, HIDDEN)


def formula() -> tuple[Tensor, Tensor, Tensor]:
    """Outputs [T, hidden], and the window and the states that an empty slot ends with."""
    gate, mixed, steps = (X @ LAYER.project.T + PROJECT_BIAS).split((INNER, CHANNELS, HEADS), -1)
    window = torch.zeros(CHANNELS, CHANNEL_TAPS - 1, dtype=torch.float64)
    state = torch.zeros(HEADS, STATE, HEAD_SIZE, dtype=torch.float64)
    outputs = []
    for t in range(TOKENS):
        inputs = torch.cat((window, mixed[t][:, None]), 1)
        window = inputs[:, 1:]
        y = silu((inputs * LAYER.recurrence.taps).sum(1) + BIAS)
        x = y[:INNER].view(HEADS, HEAD_SIZE)
        b, c = y[INNER:].view(2, GROUPS, STATE)
        seen = torch.empty(HEADS, HEAD_SIZE, dtype=torch.float64)
        for head in range(HEADS):
            group = head // (HEADS // GROUPS)
            dt = softplus(steps[t, head] + STEP_BIAS[head])
            decay = (dt * LAYER.rate[head]).exp()
            state[head] = decay * state[head] + dt * torch.outer(b[group], x[head])
            seen[head] = c[group] @ state[head] + SKIP[head] * x[head]
        gated = (seen.flatten() * silu(gate[t])).view(GROUPS, -1)
        normed = gated / (gated.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * LAYER.norm.weight
        outputs.append(LAYER.output @ normed.flatten() + OUTPUT_BIAS)
    return torch.stack(outputs), window, state


def test_prefill_decode_and_verify_equal_the_formula() -> None:
    shape = Shape(0, 1, 1, 1, CHANNELS, CHANNEL_TAPS - 1, HEADS, STATE, HEAD_SIZE)
    check_against(LAYER, X, shape, *formula())
