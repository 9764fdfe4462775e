"""Puts the stand-in on the path, as a run of SGLang does, and names the release under test."""

from __future__ import annotations

import os
import sys

import pytest
from real_sglang import NEWEST, STAND_IN, python

sys.path.append(str(STAND_IN))


@pytest.fixture(scope="session")
def release() -> str:
    """The SGLang release that these tests run, which must have its environment."""
    release = os.environ.get("SGLANG", NEWEST)
    if not python(release).exists():
        pytest.skip(f"No environment for SGLang {release}: `SGLANG={release} make test-sglang`.")
    return release
