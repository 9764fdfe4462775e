"""How fast states move: the Triton kernels on a GPU where there is one, else their references.

Every operator is first compared with its reference; a difference ends the run. Its figure is the
bytes that it must read and write, over its time; beside it stands a plain copy of a large tensor
in the same run. Shapes are Qwen3-Next's (36 recurrent layers, 32 value heads of 128 x 128), and
small ones on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from support.timing import copy_bandwidth, seconds, size
from table import Table

from slotscope.kernels import conv, state
from slotscope.kernels.conv import reference as conv_reference
from slotscope.kernels.state import reference as state_reference
from slotscope.kernels.testing import assert_close, conv_inputs


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is moved: a model's state, and how many rows of it."""

    layers: int
    slots: int
    rows: int
    moved: int  # slots in one copy, clear, scatter, digest
    drafts: int
    tokens: int
    channels: int
    heads: int
    head: int


SMALL = Sizes(2, 20, 8, 4, 4, 256, 256, 4, 32)
QWEN3_NEXT = Sizes(36, 40, 128, 16, 4, 8192, 8192, 32, 128)
TAPS = 4


@dataclass(frozen=True, slots=True)
class Case:
    """One operator on given tensors."""

    name: str
    bytes: int  # that it must read and write
    run: Callable[[], object]
    check: Callable[[], None]  # raises AssertionError where it differs from its reference


def move_cases(sizes: Sizes, device: torch.device) -> Iterator[Case]:
    """Work on whole states: all layers, convolution in bfloat16 and states in float32."""
    layers, slots, drafts, n = sizes.layers, sizes.slots, sizes.drafts, sizes.moved
    shapes = (
        ((sizes.channels, TAPS - 1), torch.bfloat16),
        ((sizes.heads, sizes.head, sizes.head), torch.float32),
    )
    states = [torch.randn(layers, slots, *x, device=device).to(dtype) for x, dtype in shapes]
    steps = [torch.randn(layers, n, drafts, *x, device=device).to(dtype) for x, dtype in shapes]
    (conv_state, ssm_state), (conv_steps, ssm_steps) = states, steps
    pairs = list(zip(states, steps, strict=True))
    source, target = torch.randperm(slots - 1, device=device)[: 2 * n].add(1).split(n)
    rows = torch.randperm(n, device=device)
    chosen = torch.randint(0, drafts, (n,), device=device)
    one = size(*(x[:, 0] for x in states))

    def moved(operator: Callable[[], None], reference: Callable[[], None]) -> Callable[[], None]:
        def check() -> None:
            before = [x[:, target].clone() for x in states]
            operator()
            found = [x[:, target].clone() for x in states]
            for x, old in zip(states, before, strict=True):
                x[:, target] = old
            reference()
            assert all(torch.equal(a, x[:, target]) for a, x in zip(found, states, strict=True))

        return check

    def check_digest() -> None:
        expected = state_reference.digest(states, source[:2])  # it takes eight times their bytes
        assert torch.equal(state.digest(conv_state, ssm_state, source)[:2], expected)

    def copy() -> None:
        state.copy(states, source, target)

    def clear() -> None:
        state.clear(states, target)

    def scatter() -> None:
        state.scatter(conv_state, ssm_state, conv_steps, ssm_steps, rows, chosen, target)

    yield Case(
        "state.copy",
        2 * n * one,
        copy,
        moved(copy, lambda: state_reference.copy(states, source, target)),
    )
    yield Case(
        "state.scatter",
        2 * n * one,
        scatter,
        moved(scatter, lambda: state_reference.scatter(pairs, rows, chosen, target)),
    )
    yield Case(
        "state.digest",
        n * one,
        lambda: state.digest(conv_state, ssm_state, source),
        check_digest,
    )
    yield Case(
        "state.clear",
        n * one,
        clear,
        moved(clear, lambda: state_reference.clear(states, target)),
    )


def conv_cases(sizes: Sizes, device: torch.device) -> Iterator[Case]:
    """The convolution of one layer, in bfloat16."""
    n, drafts, channels = sizes.rows, sizes.drafts, sizes.channels
    kind: dict[str, Any] = {"dtype": torch.bfloat16, "device": device}
    memory = torch.randn(n + 1, channels, TAPS - 1).to(**kind)
    windows = memory.new_empty(n, drafts, channels, TAPS - 1)
    slots, rows = torch.randperm(n, device=device) + 1, torch.randperm(n, device=device)
    token, weight, bias = conv_inputs((n,), channels, TAPS, **kind)
    chain, *_ = conv_inputs((n, drafts), channels, TAPS, **kind)
    prompt, *_ = conv_inputs((sizes.tokens,), channels, TAPS, **kind)

    def check_update() -> None:
        expected_memory = memory.clone()
        expected = conv_reference.conv_update(token, expected_memory, weight, bias, slots)
        assert_close(conv.conv_update(token, memory, weight, bias, slots), expected)
        assert torch.equal(memory, expected_memory)

    def check_verify() -> None:
        wanted = torch.empty_like(windows)
        expected = conv_reference.conv_verify(chain, memory, weight, bias, slots, wanted, rows)
        found = conv.conv_verify(chain, memory, weight, bias, slots, windows, rows)
        assert_close(found, expected)
        assert torch.equal(windows, wanted)

    def check_prefill() -> None:
        expected = conv_reference.conv_prefill(prompt, memory[1], weight, bias)
        assert_close(conv.conv_prefill(prompt, memory[1], weight, bias)[0], expected)

    yield Case(
        "conv.update",
        2 * size(memory[1:], token),
        lambda: conv.conv_update(token, memory, weight, bias, slots),
        check_update,
    )
    yield Case(
        "conv.verify",
        size(memory[1:], windows) + 2 * size(chain),
        lambda: conv.conv_verify(chain, memory, weight, bias, slots, windows, rows),
        check_verify,
    )
    yield Case(
        "conv.prefill",
        2 * size(prompt),
        lambda: conv.conv_prefill(prompt, memory[1], weight, bias),
        check_prefill,
    )


def run() -> Table:
    """Check and measure every operator."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    sizes = QWEN3_NEXT if device.type == "cuda" else SMALL
    torch.manual_seed(0)
    where = torch.cuda.get_device_name() if device.type == "cuda" else "the CPU's references"
    table = Table(f"kernel_bandwidth_{device.type}", f"Kernels: {where}", notes=[str(sizes)])
    anchor = copy_bandwidth(device) / 1e9
    for cases in (move_cases, conv_cases):
        for case in cases(sizes, device):
            case.check()
            took_s = seconds(case.run, device)
            rate = case.bytes / took_s / 1e9
            table.add(case.name, "GB/s", rate, anchor, "copy of a large tensor")
            table.add(f"{case.name}, a call", "us", took_s * 1e6)
    return table
