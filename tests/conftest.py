"""What must be true before any test module is imported."""

from __future__ import annotations

import os
from pathlib import Path

# Triton reads this once, when it is first imported, and transformers imports it too. Without a
# GPU, Triton's interpreter runs the kernels; torch isn't asked for one, as its import takes long.
if not Path("/dev/nvidiactl").exists():
    os.environ["TRITON_INTERPRET"] = "1"
