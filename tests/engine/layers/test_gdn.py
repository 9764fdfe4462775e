"""The gated delta net against its formula, one token and one head at a time."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu, softplus

from slotscope.engine.forward import Forward
from slotscope.engine.layers.gdn import GDN, GatedDeltaNet
from slotscope.engine.layers.norm import GatedNorm
from slotscope.engine.layers.plan import Plan
from slotscope.engine.layers.recurrence import Recurrence
from slotscope.engine.layers.rotary import Rotary
from slotscope.engine.layers.workspace import Workspace
from slotscope.engine.memory import Memory, Shape
from slotscope.instrument.event import Kind

KEY_HEADS, KEY_DIM, VALUE_HEADS, VALUE_DIM, HIDDEN, TAPS, TOKENS = 2, 6, 4, 5, 10, 4, 70
KEYS, VALUES = KEY_HEADS * KEY_DIM, VALUE_HEADS * VALUE_DIM
CHANNELS = 2 * KEYS + VALUES
NEW = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")
ROTARY = Rotary.of(100.0, 2, torch.float64, CPU)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=NEW, dtype=torch.float64)


LAYER = GatedDeltaNet(
    project=random(CHANNELS + VALUES + 2 * VALUE_HEADS, HIDDEN),
    recurrence=Recurrence(GDN, random(CHANNELS, TAPS), None, layer=0),
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
    window = torch.zeros(CHANNELS, TAPS - 1, dtype=torch.float64)
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


def feed(kind: Kind, start: int, end: int, memory: Memory) -> Tensor:
    """Tokens start:end for slot 2."""
    count = end - start
    zeros = torch.zeros(count, dtype=torch.int64)
    batch = Forward(
        kind=kind,
        tokens=zeros,
        positions=zeros,
        lengths=[count],
        contexts=torch.tensor([start]),
        locations=zeros,
        table=torch.zeros(1, end, dtype=torch.int64),
        slots=torch.tensor([2]),
        scratch=torch.tensor([1]) if kind is Kind.VERIFY else None,
    )
    plan = Plan.of(batch, ROTARY, torch.float64, Workspace())
    return LAYER(X[start:end], plan, memory)


def test_prefill_decode_and_verify_equal_the_formula() -> None:
    shape = Shape(0, 1, 1, 1, CHANNELS, TAPS - 1, VALUE_HEADS, KEY_DIM, VALUE_DIM)
    memory = Memory.allocate(
        shape, tokens=1, slots=4, rows=2, draft_tokens=3, dtype=torch.float64, device=CPU
    )
    outputs, window, state = formula()
    parts = [feed(Kind.PREFILL, 0, 66, memory), feed(Kind.DECODE, 66, 67, memory)]
    parts.append(feed(Kind.VERIFY, 67, TOKENS, memory))
    for ours, theirs in (
        (torch.cat(parts), outputs),
        (memory.conv_steps[0, 1, 2], window),
        (memory.ssm_steps[0, 1, 2], state),
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)
