"""A recurrent layer fed in all ways, against what its formula gives for the whole sequence."""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.layers.plan import Plan
from slotscope.engine.layers.workspace import Workspace
from slotscope.engine.memory import Memory, Shape
from slotscope.engine.models.hybrid import Mixer
from slotscope.instrument.event import Kind

TOKENS, CHANNEL_TAPS = 70, 4
_NEW = torch.Generator().manual_seed(0)


def random(*shape: int) -> Tensor:
    """Float64 numbers of variance one."""
    return torch.randn(shape, generator=_NEW, dtype=torch.float64)


def check_against(
    layer: Mixer, x: Tensor, shape: Shape, outputs: Tensor, window: Tensor, state: Tensor
) -> None:
    """Prefill 66 tokens, decode one, verify the rest; the formula gives the same."""
    memory = Memory.allocate(
        shape,
        tokens=1,
        slots=4,
        rows=2,
        draft_tokens=3,
        dtype=torch.float64,
        device=torch.device("cpu"),
    )
    parts = [
        _feed(layer, x, Kind.PREFILL, 0, 66, memory),
        _feed(layer, x, Kind.DECODE, 66, 67, memory),
        _feed(layer, x, Kind.VERIFY, 67, TOKENS, memory),
    ]
    for ours, theirs in (
        (torch.cat(parts), outputs),
        (memory.conv_steps[0, 1, 2], window),
        (memory.ssm_steps[0, 1, 2], state),
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


def _feed(layer: Mixer, x: Tensor, kind: Kind, start: int, end: int, memory: Memory) -> Tensor:
    """Tokens start:end for slot 2, and scratch row 1."""
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
    return layer(x[start:end], Plan.of(batch, None, torch.float64, Workspace()), memory)
