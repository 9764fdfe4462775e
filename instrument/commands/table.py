"""Table: an Arrow table for a terminal, a file or a program."""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
import typer
from pyarrow import csv
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from slotscope.instrument.plain import plain

from .options import Format


def show(rows: pa.Table, form: Format = Format.TABLE, *, limit: int | None = None) -> None:
    """Print rows; as a table at most `limit` of them, with a word on the rest.

    A table that is wider than the screen becomes one line `name=value ...` for each row, which
    leaves out nulls: cells of three letters tell nothing.
    """
    if form is Format.CSV:
        sys.stdout.flush()
        csv.write_csv(_flat(rows), sys.stdout.buffer)
        return
    if form is Format.JSON:
        for row in _distinct(rows).to_pylist():
            typer.echo(json.dumps(row, default=str))
        return
    shown = rows.num_rows if limit is None else min(limit, rows.num_rows)
    console = Console()
    table = _rendered(rows.slice(0, shown))
    if _fits(table, console):
        console.print(table)
    else:
        for row in _distinct(rows.slice(0, shown)).to_pylist():
            console.print(_line(row), soft_wrap=not console.is_terminal)
    if shown < rows.num_rows:
        console.print(f"{rows.num_rows - shown} more rows; see them with --limit or --format csv.")


def _rendered(rows: pa.Table) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(Text(plain(field.name)), justify="right" if number else "left")
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        table.add_row(*map(_cell, row))
    return table


def _fits(table: Table, console: Console) -> bool:
    """No word has to be cut."""
    unbounded = console.options.update(max_width=sys.maxsize)
    return Measurement.get(console, unbounded, table).minimum <= console.width


def _line(row: dict[str, Any]) -> Text:
    line = Text()
    for name, value in row.items():
        if value is not None:
            line.append(f"{plain(name)}=", "bold").append_text(_cell(value)).append(" ")
    line.rstrip()
    return line


def _cell(value: Any) -> Text:
    # Text, not str: ids come from elsewhere and may hold what Rich takes for markup.
    return Text("" if value is None else plain(str(value)))


def _distinct(rows: pa.Table) -> pa.Table:
    """Columns of one name get numbers, as a join's may: a mapping would keep the last alone."""
    names: list[str] = []
    for name in rows.column_names:
        count = rows.column_names[: len(names)].count(name)
        names.append(f"{name}_{count}" if count else name)
    return rows.rename_columns(names)


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
