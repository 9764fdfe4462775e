"""Latent attention against its formula, which makes each head's keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.layers.mla import LatentAttention
from slotscope.engine.layers.norm import Norm
from slotscope.engine.layers.plan import Plan
from slotscope.engine.layers.workspace import Workspace
from slotscope.engine.memory import Memory, Shape
from slotscope.instrument.event import Kind

HEADS, SIZE, SHARED, VALUE, RANK, HIDDEN = 3, 5, 4, 6, 7, 10
LOCATIONS = [7, 31, 2, 18, 9, 25, 3, 11]
NEW = torch.Generator().manual_seed(0)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=NEW, dtype=torch.float64)


LAYER = LatentAttention(
    query=random(HEADS * (SIZE + SHARED), HIDDEN),
    latent=random(RANK + SHARED, HIDDEN),
    norm=Norm(random(RANK), 1e-6),
    k_up=random(HEADS, SIZE, RANK),
    v_up=random(HEADS, VALUE, RANK),
    output=random(HIDDEN, HEADS * VALUE),
    layer=1,
)


def formula(x: Tensor) -> Tensor:
    """The whole sequence [T, hidden], dense and causal, query by query and head by head."""
    query = (x @ LAYER.query.T).view(len(x), HEADS, -1)
    latent, shared = (x @ LAYER.latent.T).split((RANK, SHARED), -1)
    latent = LAYER.norm(latent)
    seen = torch.empty(len(x), HEADS, VALUE, dtype=torch.float64)
    for head in range(HEADS):
        key = torch.cat((latent @ LAYER.k_up[head].T, shared), -1)
        value = latent @ LAYER.v_up[head].T
        for t in range(len(x)):
            score = key[: t + 1] @ query[t, head] / (SIZE + SHARED) ** 0.5
            seen[t, head] = score.softmax(0) @ value[: t + 1]
    return seen.flatten(1) @ LAYER.output.T


def feed(x: Tensor, kind: Kind, start: int, end: int, memory: Memory) -> Tensor:
    batch = Forward(
        kind=kind,
        tokens=torch.zeros(end - start, dtype=torch.int64),
        positions=torch.arange(start, end),
        lengths=[end - start],
        contexts=torch.tensor([start]),
        locations=torch.tensor(LOCATIONS[start:end]),
        table=torch.tensor([LOCATIONS]),
        slots=torch.tensor([0]),
    )
    return LAYER(x[start:end], Plan.of(batch, None, torch.float64, Workspace()), memory)


def test_one_latent_serves_all_heads() -> None:
    shape = Shape(2, 1, RANK + SHARED, 0, 1, 1, 1, 1, 1, has_values=False)
    memory = Memory.allocate(
        shape,
        tokens=40,
        slots=1,
        rows=1,
        draft_tokens=1,
        dtype=torch.float64,
        device=torch.device("cpu"),
    )
    memory.keys.fill_(float("nan"))
    x = random(len(LOCATIONS), HIDDEN)
    parts = [
        feed(x, Kind.PREFILL, 0, 3, memory),
        feed(x, Kind.PREFILL, 3, 5, memory),
        feed(x, Kind.DECODE, 5, 6, memory),
        feed(x, Kind.VERIFY, 6, 8, memory),
    ]
    torch.testing.assert_close(torch.cat(parts), formula(x), rtol=0, atol=1e-11)
    assert memory.keys[0].isnan().all()  # the other layer's
