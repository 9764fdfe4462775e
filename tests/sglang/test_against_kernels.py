"""The stand-in against SGLang's own kernels, in an environment that has them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from real_sglang import NEWEST, environment, python

pytestmark = pytest.mark.sglang


def test_every_operator_agrees_with_the_kernel_it_stands_for(release: str) -> None:
    if release != NEWEST:
        pytest.skip(f"{release} has its kernels in other places; {NEWEST} is compared.")
    script = Path(__file__).with_name("compare.py")
    done = subprocess.run(
        [python(release), script], env=environment(), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("agree: ") == 4
