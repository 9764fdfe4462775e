from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from slotscope.kernels.checks import KernelError
from slotscope.kernels.conv import prefill, update
from slotscope.kernels.gdn import step, verify
from slotscope.kernels.state import moves
from slotscope.kernels.testing import gdn_inputs, memory


def test_state_that_is_not_packed_is_refused(device: torch.device) -> None:
    inputs = gdn_inputs((1,), 1, 1, 4, 4, dtype=torch.float32, device=device)
    state = memory(3, 1, 4, 8, pads=0, device=device, dtype=torch.float32)[..., :4]
    slot = torch.tensor([1], device=device)
    with pytest.raises(KernelError, match="must lie packed"):
        step.gdn_step(*inputs, state, slot)
    with pytest.raises(KernelError, match="must lie packed"):
        moves.clear([state], slot)


def test_an_index_of_the_wrong_length_or_kind_is_refused(device: torch.device) -> None:
    inputs = gdn_inputs((2,), 1, 1, 4, 4, dtype=torch.float32, device=device)
    state = memory(3, 1, 4, 4, pads=0, device=device, dtype=torch.float32)
    with pytest.raises(KernelError, match=r"slots is \(1,\) .* must be \(2,\)"):
        step.gdn_step(*inputs, state, torch.tensor([1], device=device))
    with pytest.raises(KernelError, match="must be packed integers"):
        step.gdn_step(*inputs, state, torch.tensor([1.0, 2.0], device=device))


def test_heads_that_cannot_be_shared_are_refused(device: torch.device) -> None:
    inputs = gdn_inputs((1,), 2, 3, 4, 4, dtype=torch.float32, device=device)
    state = memory(3, 3, 4, 4, pads=0, device=device, dtype=torch.float32)
    with pytest.raises(KernelError, match="3 value heads can't share 2 key heads"):
        step.gdn_step(*inputs, state, torch.tensor([1], device=device))


def test_steps_shorter_than_the_chain_are_refused(device: torch.device) -> None:
    inputs = gdn_inputs((1, 3), 1, 1, 4, 4, dtype=torch.float32, device=device)
    state = memory(3, 1, 4, 4, pads=0, device=device, dtype=torch.float32)
    steps, one = state.new_zeros(2, 2, 1, 4, 4), torch.tensor([1], device=device)
    with pytest.raises(KernelError, match="steps is"):
        verify.gdn_verify(*inputs, state, one, steps, one)


def test_steps_of_another_dtype_are_refused(device: torch.device) -> None:
    state = torch.zeros(1, 3, 4, 3, device=device)
    one = torch.tensor([1], device=device)
    steps = torch.zeros(1, 3, 2, 4, 3, device=device, dtype=torch.bfloat16)
    with pytest.raises(KernelError, match="dtype and device must be equal"):
        moves.scatter([(state, steps)], one, one, one)


def test_a_filter_that_does_not_fit_its_windows_is_refused(device: torch.device) -> None:
    state, x = torch.zeros(3, 4, 3, device=device), torch.zeros(1, 4, device=device)
    weight, one = torch.zeros(4, 3, device=device), torch.tensor([1], device=device)
    with pytest.raises(KernelError, match=r"weight is \(4, 3\) .* must be \(4, 4\)"):
        update.conv_update(x, state, weight, None, one)
    with pytest.raises(KernelError, match="at least 2 taps"):
        prefill.conv_prefill(x, state[0, :, :0], weight[:, :1], None)


def test_a_cpu_needs_no_triton() -> None:
    program = """
import sys
sys.modules["triton"] = None
import torch
from slotscope.kernels.conv import conv_update
from slotscope.kernels.gdn import gdn_step
from slotscope.kernels.state import clear, digest
from slotscope.kernels.testing import gdn_inputs
slot = torch.tensor([1])
conv, ssm = torch.ones(1, 2, 4, 3), torch.ones(1, 2, 2, 4, 4)
conv_update(torch.ones(1, 4), conv[0], torch.ones(4, 4), None, slot)
gdn_step(*gdn_inputs((1,), 1, 2, 4, 4, dtype=torch.float32), ssm[0], slot)
digest(conv, ssm, slot)
clear((conv, ssm), slot)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
