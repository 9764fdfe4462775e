"""`slotscope sql`: a question of one's own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .options import Format, FormatOption, LimitOption, TraceArgument

_TABLES = """
SELECT table_name AS name, string_agg(column_name, ', ' ORDER BY column_index) AS columns
FROM duckdb_columns()
WHERE database_name = 'memory' AND schema_name = 'main' AND NOT internal
  AND table_name NOT LIKE 'span%\\_%' ESCAPE '\\'
GROUP BY ALL ORDER BY name
"""


def sql(
    trace: TraceArgument,
    query: Annotated[
        str | None,
        typer.Argument(help="One statement; - reads it from stdin; none lists the tables."),
    ] = None,
    form: FormatOption = Format.TABLE,
    limit: LimitOption = 200,
    time_limit: Annotated[
        float, typer.Option(min=0, max=1e9, help="Seconds that it may take; 0: any.")
    ] = 60,
) -> None:
    """Ask a trace in DuckDB's SQL. Nothing can be changed: neither the trace nor any other file.

    slotscope sql traces/today

    slotscope sql traces/today "FROM history(7)"

    slotscope sql traces/today "SELECT op, count(*) FROM events GROUP BY op" --format csv
    """
    import slotscope

    from .table import show

    text = sys.stdin.read() if query == "-" else query
    with slotscope.open(trace, time_limit_s=time_limit) as opened:
        rows = opened.sql(text if text is not None else _TABLES)
    show(rows, form, limit=limit)
