from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from slotscope.engine import flags
from slotscope.engine.cli import serve
from slotscope.engine.config import EngineConfig
from slotscope.engine.patches import PATCHES

DOCS = Path(__file__).parents[2] / "docs" / "flags.md"


@pytest.fixture
def help_text(monkeypatch: pytest.MonkeyPatch) -> str:
    """`slotscope serve --help` without its boxes, each run of spaces as one."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    app = typer.Typer()
    app.command()(serve)
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0, result.output
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.output).split())


def test_the_docs_are_those_of_the_fields() -> None:
    assert DOCS.read_text() == flags.markdown(), (
        "docs/flags.md is stale. Run: python -m slotscope.engine.flags > docs/flags.md"
    )


def test_every_field_is_a_flag() -> None:
    names = {flag.name for flag in flags.flags(flags.SERVER_FLAGS)}
    assert {field.name for field in fields(EngineConfig)} <= names


def test_the_help_says_what_the_docs_say(help_text: str) -> None:
    for flag in flags.flags(flags.SERVER_FLAGS):
        assert flag.option in help_text
        # The help's columns may break a sentence, but keep its words.
        assert all(word in help_text for word in flag.help.split()), flag
        if flag.shown_default:
            assert f"[default: {flag.shown_default}]" in help_text, flag
        assert flag.group in help_text
    assert all(name in help_text for name in PATCHES)


def test_zero_is_a_default_and_nothing_is_none() -> None:
    shown = {flag.name: flag.shown_default for flag in flags.flags(flags.SERVER_FLAGS)}
    assert shown["random_seed"] == "0"
    assert shown["disable_radix_cache"] == shown["without_patch"] == shown["trace"] == ""
