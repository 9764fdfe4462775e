"""Try every cell, and print the page: python -m slotscope.engine.combinations"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from .cell import CELLS, Cell
from .page import mark, text
from .trial import Trial


def main(cells: Sequence[Cell] = CELLS) -> int:
    """Progress goes to stderr. 1 if a cell that was served differs, or proves nothing."""
    torch.set_num_threads(1)
    shown = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        outcomes = {cell: trial.run(cell) for cell in track(cells, "cells", console=shown)}
    sys.stdout.write(text(outcomes))
    bad = [cell for cell, each in outcomes.items() if not each.refusal and mark(each) != "="]
    for cell in bad:
        shown.print(f"{mark(outcomes[cell])}: {cell}", soft_wrap=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
