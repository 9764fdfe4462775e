from __future__ import annotations

import struct

import pytest
import torch
from torch import Tensor

from slotscope.kernels.state import digest, digests, reference
from slotscope.kernels.testing import memory, shuffled

# The last two have layers that are no whole number of 32-bit words in bfloat16, or in int8.
SHAPES = [
    (2, (4, 3), (2, 4, 3)),
    (3, (5, 3), (1, 3, 7)),
    pytest.param((5, (60, 3), (6, 60, 100)), marks=pytest.mark.gpu),
    pytest.param((5, (61, 3), (3, 61, 101)), marks=pytest.mark.gpu),
]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.int8]
Shape = tuple[int, tuple[int, ...], tuple[int, ...]]


@pytest.fixture(autouse=True)
def _several_programs_for_small_states(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.cuda.is_available():
        monkeypatch.setattr(digests, "BLOCK", 16)


def states(shape: Shape, slots: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    layers, conv, ssm = shape
    wide = (
        memory(layers, slots, *x, pads=0, layered=True, dtype=torch.float64) for x in (conv, ssm)
    )
    if dtype == torch.int8:
        a, b = (x.nan_to_num().mul(50).to(dtype) for x in wide)
    else:
        a, b = (x.to(dtype) for x in wide)
    return a, b


def word_by_word(components: tuple[Tensor, ...], slot: int) -> int:
    """The definition in README.md, in Python's integers."""
    total = position = 0
    for state in components:
        for layer in state[:, slot]:
            data = bytes(layer.contiguous().flatten().view(torch.uint8).tolist())
            for (word,) in struct.iter_unpack("<I", data + bytes(-len(data) % 4)):
                x = (position << 32 | word) * 0x5851F42D4C957F2D % 2**64
                x = (x ^ x >> 32) * 0x2545F4914F6CDD1D % 2**64
                total += x ^ x >> 32
                position += 1
    return (total + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kernel_equals_its_reference(
    shape: Shape, dtype: torch.dtype, device: torch.device
) -> None:
    conv, ssm = states(shape, 9, dtype)
    slots = shuffled(5, 9)
    expected = reference.digest((conv, ssm), slots)

    found = digests.digest((conv.to(device), ssm.to(device)), slots.to(device))

    assert torch.equal(found.cpu(), expected)
    assert found[-1] == 0
    assert len(set(found.tolist())) == 5


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reference_equals_the_definition(dtype: torch.dtype) -> None:
    components = states((3, (5, 3), (1, 3, 7)), 4, dtype)
    expected = [word_by_word(components, slot) for slot in (3, 1)]
    assert digest(*components, torch.tensor([3, 1])).tolist() == expected


def test_depends_on_the_bytes_alone(device: torch.device) -> None:
    """Not on the slot, the pool's size, its neighbours, or how the pool lies in memory."""
    conv, ssm = states((2, (5, 3), (2, 4, 3)), 4)
    expected = digest(conv, ssm, torch.tensor([3]))
    slots_first = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in (conv, ssm)]
    larger = [torch.cat((x.flip(1), x), 1) for x in (conv, ssm)]

    for components, slot in ((slots_first, 3), (larger, 7)):
        on_device = tuple(x.to(device) for x in components)
        for module in (digests, reference):
            found = module.digest(on_device, torch.tensor([slot], device=device))
            assert torch.equal(found.cpu(), expected)


def test_every_flipped_bit_shows() -> None:
    """A change of one word can't be missed: the hash of a word is a bijection."""
    conv, ssm = states((2, (2, 3), (1, 2, 2)), 2)
    slot = torch.tensor([1])
    found = {digest(conv, ssm, slot).item()}
    count = 1
    for state in (conv, ssm):
        for layer in state:
            words = layer[1].view(torch.int32).view(-1)
            for i in range(len(words)):
                for bit in range(32):
                    flip = 1 << bit if bit < 31 else -(1 << 31)
                    words[i] ^= flip
                    found.add(digest(conv, ssm, slot).item())
                    words[i] ^= flip
                    count += 1
    assert len(found) == count


def test_moved_content_shows() -> None:
    conv, ssm = states((3, (4, 3), (2, 4, 3)), 2)
    slot = torch.tensor([1])
    layers_swapped = ssm[[1, 0, 2]]
    heads_swapped = ssm[:, :, [1, 0]]
    rotated = ssm.roll(1, -1)
    late = torch.cat((conv[..., 1:], conv[..., :1]), -1)  # a window one token late
    variants = [(conv, x) for x in (ssm, layers_swapped, heads_swapped, rotated)] + [(late, ssm)]
    assert len({digest(*x, slot).item() for x in variants}) == len(variants)


def test_a_flipped_bit_changes_about_half_of_the_digest() -> None:
    words = torch.arange(1024).repeat_interleave(32) * 0x9E3779B1 & reference.LOW
    flipped = words ^ (1 << torch.arange(32).repeat(1024))
    position = torch.arange(len(words)) // 32
    change = reference._mixed(position, words) ^ reference._mixed(position, flipped)
    rates = ((change.unsqueeze(-1) >> torch.arange(64)) & 1).double().mean(0)
    assert rates.min() > 0.4
    assert rates.max() < 0.6
