"""A recurrence's step and verify: GDN, KDA and Mamba2, beside SGLang's and fla's kernels.

One layer at a published model's sizes, bfloat16 inputs, float32 states. SGLang's kernel moves
states in place by slot, as ours does; fla's has one state for each row, in order, and makes a new
tensor of the last ones, so it stands beside the step alone. Both are measured where they can be
imported. Every operator is first compared with its reference, and a difference ends the run; the
share of the copy bandwidth counts the bytes that it must read and write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from support.timing import copy_bandwidth, seconds, size
from table import Table
from torch import Tensor

from slotscope.kernels import gdn, kda, mamba2
from slotscope.kernels.testing import (
    Inputs,
    assert_close,
    gdn_inputs,
    kda_inputs,
    mamba2_inputs,
)

DRAFTS = 4


@dataclass(frozen=True, slots=True)
class Kind:
    """A recurrence as one published model has it: HK, HV, K and V of its heads."""

    name: str
    model: str
    module: ModuleType
    inputs: Callable[..., Inputs]
    heads: tuple[int, int, int, int]


KINDS = (
    Kind("gdn", "Qwen3-Next-80B", gdn, gdn_inputs, (16, 32, 128, 128)),
    Kind("kda", "Kimi-Linear-48B", kda, kda_inputs, (32, 32, 128, 128)),
    Kind("mamba2", "Granite-4.0-H-Small", mamba2, mamba2_inputs, (1, 128, 128, 64)),
)


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch: inputs of one token and of `DRAFTS`, the states, and where each row's is."""

    token: Inputs
    drafts: Inputs
    state: Tensor  # [N + 1, HV, K, V]
    steps: Tensor  # [N, DRAFTS, HV, K, V]
    slots: Tensor  # [N] int64
    rows: Tensor  # [N] int64

    @staticmethod
    def of(kind: Kind, count: int, device: torch.device) -> Rows:
        """Random ones; slots and rows in random order."""
        asked: dict[str, Any] = {"dtype": torch.bfloat16, "device": device}
        _, *shape = kind.heads
        state = torch.randn(count + 1, *shape, device=device)
        return Rows(
            kind.inputs((count,), *kind.heads, **asked),
            kind.inputs((count, DRAFTS), *kind.heads, **asked),
            state,
            state.new_zeros(count, DRAFTS, *shape),
            torch.randperm(count, device=device) + 1,
            torch.randperm(count, device=device),
        )


def check(kind: Kind, rows: Rows) -> None:
    """Step and verify equal their references. Raises AssertionError."""
    reference = kind.module.reference
    state, steps = rows.state.clone(), torch.zeros_like(rows.steps)
    expected = _of(reference, kind, "verify")(*rows.drafts, state, rows.slots, steps, rows.rows)
    found = _of(kind.module, kind, "verify")(
        *rows.drafts, rows.state, rows.slots, rows.steps, rows.rows
    )
    assert_close(found, expected)
    assert_close(rows.steps, steps)
    expected = _of(reference, kind, "step")(*rows.token, state, rows.slots)
    assert_close(_of(kind.module, kind, "step")(*rows.token, rows.state, rows.slots), expected)
    assert_close(rows.state, state)


def sglang_gdn(rows: Rows) -> tuple[Callable[[], object], Callable[[], object]] | None:
    """SGLang's step and verify of GDN; None where it is not installed."""
    try:
        from sglang.kernels.ops.attention.fla.fused_recurrent import (
            fused_recurrent_gated_delta_rule_update as update,
        )
    except ImportError:
        return None
    # Its states lie as [V, K]. No correctness hangs on that here: K and V are equal.
    token = rows.token.each(lambda x: x[:, None])
    place = {"initial_state_source": rows.state, "initial_state_indices": rows.slots.int()}

    def verify() -> object:
        return update(
            *rows.drafts,
            scale=1.0,
            **place,
            disable_state_update=True,
            intermediate_states_buffer=rows.steps,
            intermediate_state_indices=rows.rows.int(),
            cache_steps=DRAFTS,
        )

    return lambda: update(*token, scale=1.0, **place), verify


def fla_step(kind: Kind, rows: Rows) -> Callable[[], object] | None:
    """fla's step; None where it is not installed or has none for this recurrence."""
    try:
        from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule
        from fla.ops.kda import fused_recurrent_kda
    except ImportError:
        return None
    if kind.name == "mamba2":
        return None
    operator = fused_recurrent_kda if kind.name == "kda" else fused_recurrent_gated_delta_rule
    q, k, v, g, beta = rows.token.each(lambda x: x[:, None])
    state = rows.state[1:]
    return lambda: operator(
        q, k, v, g=g, beta=beta, scale=1.0, initial_state=state, output_final_state=True
    )


@torch.inference_mode()
def run() -> Table:
    """Every recurrence and batch."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = (1, 32, 128, 256) if device.type == "cuda" else (1, 8)
    torch.manual_seed(0)
    where = torch.cuda.get_device_name() if device.type == "cuda" else "the CPU's references"
    table = Table(
        f"recurrence_{device.type}",
        f"A recurrence's step and verify of {DRAFTS}: {where}",
        notes=[f"{k.name}: {k.model}, {k.heads} key heads, heads, K, V" for k in KINDS],
    )
    copied = copy_bandwidth(device)
    for kind in KINDS:
        for count in batches:
            _measure(table, kind, Rows.of(kind, count, device), copied)
    return table


def _measure(table: Table, kind: Kind, rows: Rows, copied: float) -> None:
    check(kind, rows)
    device, count = rows.state.device, len(rows.slots)
    step, verify = (_of(kind.module, kind, name) for name in ("step", "verify"))
    ours = {
        "step": lambda: step(*rows.token, rows.state, rows.slots),
        "verify": lambda: verify(*rows.drafts, rows.state, rows.slots, rows.steps, rows.rows),
    }
    moved = {
        "step": 2 * size(rows.state[1:]) + size(*rows.token, rows.token.v),
        "verify": size(rows.state[1:], rows.steps) + size(*rows.drafts, rows.drafts.v),
    }
    anchors: list[tuple[str, str, Callable[[], object]]] = []
    if kind.name == "gdn" and (both := sglang_gdn(rows)):
        anchors += [("step", "SGLang", both[0]), ("verify", "SGLang", both[1])]
    if its := fla_step(kind, rows):
        anchors.append(("step", "fla", its))
    for name, call in ours.items():
        took = seconds(call, device)
        row = f"{kind.name}.{name}, {count} rows"
        table.add(row, "GB/s", moved[name] / took / 1e9, copied / 1e9, "copy of a large tensor")
        for of, whose, other in anchors:
            if of == name:
                table.add(row, "us", took * 1e6, seconds(other, device) * 1e6, whose)
        if not any(of == name for of, *_ in anchors):
            table.add(row, "us", took * 1e6)


def _of(module: Any, kind: Kind, name: str) -> Callable[..., Tensor]:
    operator: Callable[..., Tensor] = getattr(module, f"{kind.name}_{name}")
    return operator
