from __future__ import annotations

import pytest
import torch
from torch import Tensor

from slotscope.kernels import state as operators
from slotscope.kernels.state import moves, reference
from slotscope.kernels.testing import assert_untouched, memory, shuffled

DTYPES = [torch.float64, torch.float32, torch.bfloat16]
SHAPES = [
    (2, 3, (5, 3), (2, 4, 3)),
    pytest.param((5, 33, (60, 3), (6, 60, 100)), marks=pytest.mark.gpu),
    pytest.param((3, 64, (8192, 3), (32, 128, 128)), marks=pytest.mark.gpu),
]
Shape = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@pytest.fixture(autouse=True)
def _several_programs_for_small_states(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.cuda.is_available():
        monkeypatch.setattr(moves, "BLOCK", 16)


def states(shape: Shape, dtype: torch.dtype, device: torch.device, slots: int) -> list[Tensor]:
    layers, _, *components = shape
    kind = {"dtype": dtype, "device": device}
    return [memory(layers, slots, *size, pads=0, layered=True, **kind) for size in components]


def same(left: Tensor, right: Tensor) -> bool:
    """Equal to the last bit."""
    return torch.equal(left.view(torch.uint8), right.view(torch.uint8))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copy_equals_its_reference(shape: Shape, dtype: torch.dtype, device: torch.device) -> None:
    rows = shape[1]
    components = states(shape, dtype, device, 2 * rows + 4)
    numbers = shuffled(2 * rows, 2 * rows + 4, device)
    source, target = numbers[:rows].clone(), numbers[rows:]  # the last target is 0
    source[0] = 0
    before, expected = ([x.clone() for x in components] for _ in "be")
    reference.copy(expected, source, target)

    moves.copy(components, source, target)

    for old, new, wanted in zip(before, components, expected, strict=True):
        assert same(new, wanted)
        assert_untouched(old, new, target[1:-1], dim=1)


def test_copied_slots_equal_their_sources() -> None:
    components = states((2, 3, (5, 3), (2, 4, 3)), torch.float32, torch.device("cpu"), 9)
    operators.copy(components, torch.tensor([3, 5, 0, 2]), torch.tensor([7, 1, 4, 0]))
    for state in components:
        assert torch.equal(state[:, 7], state[:, 3])
        assert torch.equal(state[:, 1], state[:, 5])
        assert state[:, 4].isfinite().all()
        assert state[:, 0].isnan().all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_clear_equals_its_reference(shape: Shape, dtype: torch.dtype, device: torch.device) -> None:
    components = states(shape, dtype, device, shape[1] + 4)
    slots = shuffled(shape[1], shape[1] + 4, device)
    before, expected = ([x.clone() for x in components] for _ in "be")
    reference.clear(expected, slots)

    moves.clear(components, slots)

    for old, new, wanted in zip(before, components, expected, strict=True):
        assert same(new, wanted)
        assert new[:, slots[:-1]].eq(0).all()
        assert_untouched(old, new, slots[:-1], dim=1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scatter_equals_its_reference(
    shape: Shape, dtype: torch.dtype, device: torch.device
) -> None:
    layers, rows, *sizes = shape
    conv, ssm = states(shape, dtype, device, rows + 4)
    kind = {"dtype": dtype, "device": device, "layered": True}
    conv_steps, ssm_steps = (memory(layers, rows + 2, 3, *x, pads=slice(0), **kind) for x in sizes)
    slots, scratch = shuffled(rows, rows + 4, device), shuffled(rows, rows + 2, device)
    steps = torch.randint(0, 3, (rows,)).to(device)
    steps[0], steps[-1] = -1, 2  # masked by its step, and by its slot
    before, expected = ([x.clone() for x in (conv, ssm)] for _ in "be")
    pairs = list(zip(expected, (conv_steps, ssm_steps), strict=True))
    reference.scatter(pairs, scratch, steps, slots)

    moves.scatter(((conv, conv_steps), (ssm, ssm_steps)), scratch, steps, slots)

    for old, new, wanted in zip(before, (conv, ssm), expected, strict=True):
        assert same(new, wanted)
        assert_untouched(old, new, slots[1:-1], dim=1)


def test_scatter_moves_every_component_of_the_chosen_step() -> None:
    conv, ssm = states((2, 0, (5, 3), (2, 4, 3)), torch.float32, torch.device("cpu"), 6)
    before = conv.clone(), ssm.clone()
    conv_steps, ssm_steps = torch.randn(2, 4, 3, 5, 3), torch.randn(2, 4, 3, 2, 4, 3)
    rows, steps, slots = torch.tensor([[2, 0, 1, 3], [0, 2, -1, 1], [4, 1, 2, 0]])

    operators.scatter(conv, ssm, conv_steps, ssm_steps, rows, steps, slots)

    for state, old, stepped in ((conv, before[0], conv_steps), (ssm, before[1], ssm_steps)):
        assert torch.equal(state[:, 4], stepped[:, 2, 0])
        assert torch.equal(state[:, 1], stepped[:, 0, 2])
        assert_untouched(old, state, torch.tensor([4, 1]), dim=1)


def test_no_slots_are_no_work(device: torch.device) -> None:
    components = states((2, 0, (5, 3), (2, 4, 3)), torch.float32, device, 3)
    before, none = [x.clone() for x in components], torch.empty(0, dtype=torch.int64, device=device)
    for module in (moves, reference):
        module.copy(components, none, none)
        module.clear(components, none)
    assert all(same(old, new) for old, new in zip(before, components, strict=True))
