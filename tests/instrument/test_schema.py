"""SQL files: each is registered, told, and parsed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from slotscope.instrument import schema, store

SQL = Path(schema.__file__).parent / "sql"
FOLDERS = ("tables", "views", "macros")
FILES = [(folder, name) for folder in FOLDERS for name in schema.statements(folder)]


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    """An empty trace."""
    con = store.connect(":memory:")
    store.create(con)
    for folder in ("views", "macros"):
        for statement in schema.statements(folder).values():
            con.execute(statement)
    return con


@pytest.mark.parametrize(("folder", "name"), FILES)
def test_a_file_makes_one_object_of_its_name_and_says_what_it_is(folder: str, name: str) -> None:
    text = schema.statements(folder)[name]
    assert text.startswith("-- ")
    (statement,) = duckdb.extract_statements(text)
    kind = {"tables": "TABLE", "views": "VIEW", "macros": "MACRO"}[folder]
    assert f"CREATE {kind} {name}" in statement.query


@pytest.mark.parametrize("name", schema.statements("views"))
def test_a_view_can_be_queried(con: duckdb.DuckDBPyConnection, name: str) -> None:
    assert con.execute(f"FROM {name}").fetchall() == []


@pytest.mark.parametrize("call", ["history(1)", "history(1, p := 2)", "owner_at(1, 5)"])
def test_a_macro_can_be_called(con: duckdb.DuckDBPyConnection, call: str) -> None:
    assert con.execute(f"FROM {call}").fetchall() == []


def test_a_file_that_is_not_in_the_order_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "_order").write_text("one\n")
    (tmp_path / "views" / "two.sql").write_text("-- Two.\nCREATE VIEW two AS SELECT 2")
    monkeypatch.setattr(schema, "_SQL", tmp_path)
    schema.statements.cache_clear()
    with pytest.raises(schema.SchemaError, match="differ in one, two"):
        schema.statements("views")
    schema.statements.cache_clear()
