from __future__ import annotations

from pathlib import Path
from typing import get_args

import typer.main

from slotscope.instrument.cli import build
from slotscope.instrument.coldwarm.trial import Verdict

DOCS = (Path(__file__).parents[3] / "docs/coldwarm.md").read_text()


def test_the_page_names_every_option_and_its_default() -> None:
    commands = typer.main.get_command(build(None)).commands  # type: ignore[attr-defined]
    options = [p for p in commands["coldwarm"].params if p.param_type_name == "option"]
    rows = [line for line in DOCS.splitlines() if line.startswith("| `--")]
    for option in options:
        [row] = [row for row in rows if f"`{option.opts[0]}`" in row]
        if option.default:
            assert _shown(option.default) in row, option.opts


def _shown(default: object) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_the_page_tells_every_verdict() -> None:
    for verdict in get_args(Verdict):
        assert f"| `{verdict}` |" in DOCS
