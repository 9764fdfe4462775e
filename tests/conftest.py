"""What must be true before any test module is imported."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# Triton reads this once, when it is first imported, and transformers imports it too. Without a
# GPU, Triton's interpreter runs the kernels; torch isn't asked for one, as its import takes long.
if not Path("/dev/nvidiactl").exists():
    os.environ["TRITON_INTERPRET"] = "1"

# A shell's background job ignores Ctrl-C, and so would each process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
