"""A process that keeps another core busy, as a model's own threads do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

WORK = """
import numpy as np
work = np.random.default_rng(1).random(500_000)
while True:
    work.sort()
    np.multiply(work[::-1], 1.0001, out=work)
"""


@contextmanager
def busy_core() -> Iterator[None]:
    """It runs inside the block."""
    process = subprocess.Popen([sys.executable, "-c", WORK])
    try:
        yield
    finally:
        process.kill()
        process.wait()
