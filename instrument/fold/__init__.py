"""The fold: what each act met in the slots that it touched. Made once, read by every detector.

`prepare` makes temp tables and views on a connection that has a trace's `events`, `requests` and
`gaps`; each file says what its object holds. The one that detectors read is `fold`.
"""

from __future__ import annotations

from importlib.resources import files

import duckdb

ORDER = ("macros", "spots", "seen", "touches", "fold")
"""Files of this folder; each leans on those before it."""


class FoldError(RuntimeError):
    """The fold can't be made. The message names the file and what DuckDB said."""


def prepare(con: duckdb.DuckDBPyConnection) -> None:
    """Make the fold of the connection's trace anew.

    Raises:
        FoldError: the connection lacks a table or column, or does not keep the order of rows.
    """
    kept = con.execute("SELECT current_setting('preserve_insertion_order')").fetchone()
    if kept != (True,):
        raise FoldError(
            "The connection has preserve_insertion_order = false, so running sums over sorted rows "
            "would mix slots and find contradictions that are none. Leave it at its default, true."
        )
    for name in ORDER:
        try:
            con.execute(files(__package__).joinpath(f"{name}.sql").read_text())
        except duckdb.Error as error:
            raise FoldError(
                f"fold/{name}.sql failed, so no detector can run: {error}. Events must have the "
                "columns of slotscope.instrument.event, with codes shown as names."
            ) from error
