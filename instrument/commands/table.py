"""Table: an Arrow table for a terminal, a file or a program."""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
import typer
from pyarrow import csv
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .options import Format


def show(rows: pa.Table, form: Format = Format.TABLE, *, limit: int | None = None) -> None:
    """Print rows; as a table at most `limit` of them, with a word on the rest."""
    if form is Format.CSV:
        sys.stdout.flush()
        csv.write_csv(_flat(rows), sys.stdout.buffer)
        return
    if form is Format.JSON:
        for row in rows.to_pylist():
            typer.echo(json.dumps(row, default=str))
        return
    shown = rows.num_rows if limit is None else min(limit, rows.num_rows)
    console = Console()
    console.print(_rendered(rows.slice(0, shown)))
    if shown < rows.num_rows:
        console.print(f"{rows.num_rows - shown} more rows; see them with --limit or --format csv.")


def _rendered(rows: pa.Table) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(escape(field.name), justify="right" if number else "left")
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        table.add_row(*map(_cell, row))
    return table


def _cell(value: Any) -> str:
    return "" if value is None else escape(str(value))


def _flat(rows: pa.Table) -> pa.Table:
    """CSV has no lists and no dictionaries: the former become JSON, the latter text."""
    columns = []
    for column in rows.columns:
        if pa.types.is_nested(column.type):
            column = pa.array([None if v is None else json.dumps(v) for v in column.to_pylist()])
        elif pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        columns.append(column)
    return pa.table(columns, names=rows.column_names)
