"""Attention over paged memory against the formula, one query and one head at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.layers.attention import Attention
from slotscope.engine.layers.norm import Norm
from slotscope.engine.layers.plan import Plan
from slotscope.engine.layers.rotary import Rotary
from slotscope.engine.layers.workspace import Workspace
from slotscope.engine.memory import Memory, Shape
from slotscope.instrument.event import Kind

HEADS, KV_HEADS, SIZE, HIDDEN = 6, 2, 8, 10
NEW = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")
WORKSPACE = Workspace()
ROTARY = Rotary.of(100.0, 4, torch.float64, CPU)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=NEW, dtype=torch.float64)


BOTH = HEADS + KV_HEADS
BIAS = random((BOTH + KV_HEADS + HEADS) * SIZE)
OUTPUT_BIAS = random(HIDDEN)
NORM = Norm.centered(random(BOTH, SIZE), 1e-6)
LAYER = Attention(
    project=random((BOTH + KV_HEADS + HEADS) * SIZE, HIDDEN),
    bias=BIAS,
    norm=NORM,
    output=random(HIDDEN, HEADS * SIZE),
    output_bias=OUTPUT_BIAS,
    layer=1,
    heads=HEADS,
    kv_heads=KV_HEADS,
    head_size=SIZE,
    scale=SIZE**-0.5,
    gated=True,
)


def memory() -> Memory:
    """All NaN."""
    shape = Shape(2, KV_HEADS, SIZE, 0, 1, 1, 1, 1, 1)
    made = Memory.allocate(
        shape, tokens=40, slots=1, rows=1, draft_tokens=1, dtype=torch.float64, device=CPU
    )
    made.keys.fill_(float("nan"))
    made.values.fill_(float("nan"))
    return made


def batch(kind: Kind, rows: list[list[int]], new: int) -> Forward:
    """The last `new` locations of each row are its new tokens'."""
    width = max(map(len, rows))
    contexts = [len(row) - new for row in rows]
    return Forward(
        kind=kind,
        tokens=torch.zeros(new * len(rows), dtype=torch.int64),
        positions=torch.tensor([c + d for c in contexts for d in range(new)]),
        lengths=[new] * len(rows),
        contexts=torch.tensor(contexts),
        locations=torch.tensor([place for row in rows for place in row[-new:]]),
        table=torch.tensor([row + [0] * (width - len(row)) for row in rows]),
        slots=torch.zeros(len(rows), dtype=torch.int64),
    )


def formula(x: Tensor) -> Tensor:
    """The whole sequence [T, hidden] at once, dense and causal."""
    total = len(x)
    parts = (x @ LAYER.project.T + BIAS).split(
        (HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE, HEADS * SIZE), -1
    )
    query, key, value, gate = (part.view(total, -1, SIZE) for part in parts)
    angles = ROTARY.angles(torch.arange(total), torch.float64)
    query = angles.rotate(Norm(NORM.scale[:HEADS], 1e-6)(query))
    key = angles.rotate(Norm(NORM.scale[HEADS:], 1e-6)(key))
    seen = torch.empty(total, HEADS, SIZE, dtype=torch.float64)
    for head in range(HEADS):
        group = head // (HEADS // KV_HEADS)
        for t in range(total):
            score = key[: t + 1, group] @ query[t, head] / SIZE**0.5
            seen[t, head] = score.softmax(0) @ value[: t + 1, group]
    gated: Tensor = (seen * gate.sigmoid()).flatten(1)
    return gated @ LAYER.output.T + OUTPUT_BIAS


@pytest.mark.parametrize(
    ("kind", "new"), [(Kind.PREFILL, 4), (Kind.VERIFY, 4), (Kind.VERIFY, 2), (Kind.DECODE, 1)]
)
def test_paged_attention_equals_the_formula(kind: Kind, new: int) -> None:
    """Two rows of 8 and 5 tokens at scattered locations; the context was prefilled."""
    rows = [[7, 31, 2, 18, 9, 25, 3, 11], [39, 1, 22, 5, 30]]
    inputs = [random(len(row), HIDDEN) for row in rows]
    kept = memory()
    for row, x in zip(rows, inputs, strict=True):
        before = len(row) - new
        plan = Plan.of(
            batch(Kind.PREFILL, [row[:before]], before), ROTARY, torch.float64, WORKSPACE
        )
        LAYER(x[:before], plan, kept)
    plan = Plan.of(batch(kind, rows, new), ROTARY, torch.float64, WORKSPACE)
    result = LAYER(torch.cat([x[-new:] for x in inputs]), plan, kept)
    expected = torch.cat([formula(x)[-new:] for x in inputs])
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
    assert kept.keys[0].isnan().all()  # the other layer's
