"""Children: processes that a test starts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Spawn = Callable[..., "subprocess.Popen[str]"]
"""The `spawn` fixture: runs some code with some arguments."""


def output(child: subprocess.Popen[str]) -> str:
    """What a child printed; it must have ended well."""
    text, _ = child.communicate(timeout=60)
    assert child.returncode == 0, text
    return text
