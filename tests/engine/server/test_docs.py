from __future__ import annotations

from pathlib import Path

from slotscope.engine.server import body, desk, sampling
from slotscope.engine.server.app import ROUTES

DOCS = (Path(__file__).parents[3] / "docs" / "http.md").read_text()


def test_the_docs_name_every_path_with_its_methods() -> None:
    rows = [line for line in DOCS.splitlines() if line.startswith("| `")]
    for route in ROUTES:
        named = [row for row in rows if f"{route.path}`" in row]
        assert len(named) == 1, route.path
        assert all(f"`{method}" in named[0] for method in (route.methods or set()) - {"HEAD"})


def test_the_docs_name_the_limits() -> None:
    for row in (
        f"| body | {body.BODY_BYTES_MAX // 2**20} MiB, else 413 |",
        f"| prompts in one call | {desk.PROMPTS_MAX} |",
        f"| stop strings | {sampling.STOPS_MAX}, of {sampling.STOP_CHARACTERS_MAX} characters |",
        f"| client's name of a request | {desk.CLIENT_ID_CHARACTERS_MAX} characters |",
    ):
        assert row in DOCS
