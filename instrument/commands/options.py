"""What several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TraceArgument = Annotated[
    Path, typer.Argument(metavar="TRACE", help="Trace directory of a running or ended engine.")
]
