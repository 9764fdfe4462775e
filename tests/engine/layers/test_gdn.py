"""The gated delta net against its formula, one token and one head at a time."""

from __future__ import annotations

import torch
from layer_feeding import CHANNEL_TAPS, TOKENS, check_against, random
from torch import Tensor
from torch.nn.functional import silu, softplus

from slotscope.engine.layers.gdn import GDN, GatedDeltaNet
from slotscope.engine.layers.norm import GatedNorm
from slotscope.engine.layers.recurrence import Recurrence
from slotscope.engine.memory import Shape

KEY_HEADS, KEY_DIM, VALUE_HEADS, VALUE_DIM, HIDDEN = 2, 6, 4, 5, 10
KEYS, VALUES = KEY_HEADS * KEY_DIM, VALUE_HEADS * VALUE_DIM
CHANNELS = 2 * KEYS + VALUES
LAYER = GatedDeltaNet(
    project=random(CHANNELS + VALUES + 2 * VALUE_HEADS, HIDDEN),
    recurrence=Recurrence(GDN, random(CHANNELS, CHANNEL_TAPS), None, layer=0),
    rate=-random(VALUE_HEADS).exp(),
    rate_bias=random(VALUE_HEADS) - 4,
    norm=GatedNorm(random(VALUE_DIM), 1e-6),
    output=random(HIDDEN, VALUES),
    key_heads=KEY_HEADS,
    key_dim=KEY_DIM,
    value_heads=VALUE_HEADS,
    value_dim=VALUE_DIM,
)
X = random(TOKENS, HIDDEN)


def formula() -> tuple[Tensor, Tensor, Tensor]:
    """Outputs [T, hidden], and the window and the states that an empty slot ends with."""
    mixed, gate, b, a = (X @ LAYER.project.T).split(
        (CHANNELS, VALUES, VALUE_HEADS, VALUE_HEADS), -1
    )
    window = torch.zeros(CHANNELS, CHANNEL_TAPS - 1, dtype=torch.float64)
    state = torch.zeros(VALUE_HEADS, KEY_DIM, VALUE_DIM, dtype=torch.float64)
    outputs = []
    for t in range(TOKENS):
        inputs = torch.cat((window, mixed[t][:, None]), 1)
        window = inputs[:, 1:]
        y = silu((inputs * LAYER.recurrence.taps).sum(1))
        seen = torch.empty(VALUE_HEADS, VALUE_DIM, dtype=torch.float64)
        for head in range(VALUE_HEADS):
            at = head // (VALUE_HEADS // KEY_HEADS) * KEY_DIM
            query, key = y[at : at + KEY_DIM], y[KEYS + at : KEYS + at + KEY_DIM]
            query, key = (v / (v @ v + 1e-6).sqrt() for v in (query, key))
            value = y[2 * KEYS + head * VALUE_DIM :][:VALUE_DIM]
            decayed = (
                state[head]
                * (LAYER.rate[head] * softplus(a[t, head] + LAYER.rate_bias[head])).exp()
            )
            error = b[t, head].sigmoid() * (value - key @ decayed)
            state[head] = decayed + torch.outer(key, error)
            seen[head] = query @ state[head] / KEY_DIM**0.5
        gated = LAYER.norm(seen, gate[t].view(VALUE_HEADS, VALUE_DIM), torch.float64)
        outputs.append(LAYER.output @ gated.flatten())
    return torch.stack(outputs), window, state


def test_prefill_decode_and_verify_equal_the_formula() -> None:
    shape = Shape(0, 1, 1, 1, CHANNELS, CHANNEL_TAPS - 1, VALUE_HEADS, KEY_DIM, VALUE_DIM)
    check_against(LAYER, X, shape, *formula())
