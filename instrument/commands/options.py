"""What several commands take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

TraceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE", help="Trace directory of a running or ended engine, or a packed trace."
    ),
]


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="How rows are printed.")]
LimitOption = Annotated[int, typer.Option(min=0, help="Rows of a table that are shown.")]
