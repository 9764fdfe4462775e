"""How fast states move: the Triton kernels on a GPU where there is one, else their references.

Every operator is first compared with its reference; a difference ends the run. Its figure is the
bytes that it must read and write, over its time; beside it stands a plain copy of a large tensor
in the same run. Shapes are Qwen3-Next's (36 recurrent layers, 32 value heads of 128 x 128), and
small ones on a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from table import Table
from torch import Tensor

from slotscope.kernels import conv, gdn, state
from slotscope.kernels.conv import reference as conv_reference
from slotscope.kernels.gdn import reference as gdn_reference
from slotscope.kernels.state import reference as state_reference
from slotscope.kernels.testing import assert_close, conv_inputs, gdn_inputs


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
    key_heads: int
    heads: int
    head: int


SMALL = Sizes(2, 20, 8, 4, 4, 256, 256, 2, 4, 32)
QWEN3_NEXT = Sizes(36, 40, 128, 16, 4, 8192, 8192, 16, 32, 128)
TAPS = 4


@dataclass(frozen=True, slots=True)
class Case:
    """One operator on given tensors."""

    name: str
    bytes: int  # that it must read and write
    run: Callable[[], object]
    check: Callable[[], None]  # raises AssertionError where it differs from its reference


def size(*tensors: Tensor) -> int:
    """Their bytes."""
    return sum(x.numel() * x.itemsize for x in tensors)


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


def gdn_cases(sizes: Sizes, device: torch.device) -> Iterator[Case]:
    """The recurrence of one layer: bfloat16 inputs, float32 states."""
    n, drafts = sizes.rows, sizes.drafts
    heads = sizes.key_heads, sizes.heads, sizes.head, sizes.head
    memory = torch.randn(n + 1, sizes.heads, sizes.head, sizes.head, device=device)
    steps = memory.new_empty(n, drafts, *memory.shape[1:])
    slots, rows = torch.randperm(n, device=device) + 1, torch.randperm(n, device=device)
    token = gdn_inputs((n,), *heads, dtype=torch.bfloat16, device=device)
    chain = gdn_inputs((n, drafts), *heads, dtype=torch.bfloat16, device=device)

    def check_step() -> None:
        expected_memory = memory.clone()
        expected = gdn_reference.gdn_step(*token, expected_memory, slots)
        assert_close(gdn.gdn_step(*token, memory, slots), expected)
        assert_close(memory, expected_memory)

    def check_verify() -> None:
        expected_steps = torch.empty_like(steps)
        expected = gdn_reference.gdn_verify(*chain, memory, slots, expected_steps, rows)
        assert_close(gdn.gdn_verify(*chain, memory, slots, steps, rows), expected)
        assert_close(steps, expected_steps)

    yield Case(
        "gdn.step",
        2 * size(memory[1:]) + size(*token, token.v),
        lambda: gdn.gdn_step(*token, memory, slots),
        check_step,
    )
    yield Case(
        "gdn.verify",
        size(memory[1:], steps) + size(*chain, chain.v),
        lambda: gdn.gdn_verify(*chain, memory, slots, steps, rows),
        check_verify,
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


def seconds(run: Callable[[], object], device: torch.device, *, graph: bool = True) -> float:
    """Median time of a call, after a first one.

    On a GPU it is replayed as a CUDA graph, since Python takes longer to launch a small kernel
    than that takes to run; and the cache is flushed before each call.
    """
    run()
    if device.type == "cuda":
        from triton.testing import do_bench

        if graph:
            recorded = torch.cuda.CUDAGraph()
            with torch.cuda.graph(recorded):
                run()
            run = recorded.replay
        return float(do_bench(run, return_mode="median")) / 1e3
    times = []
    for _ in range(20):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def copy_bandwidth(device: torch.device) -> float:
    """Bytes read and written in a second by a copy that fits in no cache.

    It isn't replayed as a graph, whose copy nodes reach two thirds of this on an H200.
    """
    source = torch.ones(2**30 if device.type == "cuda" else 2**25, device=device)
    target = torch.ones_like(source)
    return 2 * size(source) / seconds(lambda: target.copy_(source), device, graph=False)


def run() -> Table:
    """Check and measure every operator."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    sizes = QWEN3_NEXT if device.type == "cuda" else SMALL
    torch.manual_seed(0)
    where = torch.cuda.get_device_name() if device.type == "cuda" else "the CPU's references"
    table = Table(f"kernel_bandwidth_{device.type}", f"Kernels: {where}", notes=[str(sizes)])
    anchor = copy_bandwidth(device) / 1e9
    for cases in (move_cases, gdn_cases, conv_cases):
        for case in cases(sizes, device):
            case.check()
            took_s = seconds(case.run, device)
            rate = case.bytes / took_s / 1e9
            table.add(case.name, "GB/s", rate, anchor, "copy of a large tensor")
            table.add(f"{case.name}, a call", "us", took_s * 1e6)
    return table
