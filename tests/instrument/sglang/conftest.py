"""Fixtures: a scene whose hooks sit on objects like SGLang's, and what it told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sglang_objects import FreeList, Rows, Told, observed

import slotscope
from slotscope.instrument.sglang.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def pool(traced: Path, scene: Scene) -> Rows:
    """A pool of 12 slots under observation, with one track slot for each request."""

    class Watched(FreeList):
        pass

    class WatchedRows(Rows):
        pass

    observed(scene, "MambaSlotAllocator", Watched)
    observed(scene, "HybridReqToTokenPool", WatchedRows)
    free_list = Watched(12)
    free_list.clear()
    return WatchedRows(free_list)


@pytest.fixture
def told(traced: Path) -> Told:
    """The events of some operations, in order, with the columns that are asked for."""

    def read(*columns: str, op: str | None = None) -> list[dict[str, Any]]:
        with slotscope.open(traced) as trace:
            rows = trace.sql('FROM events ORDER BY "order", seq').to_pylist()
        chosen = [row for row in rows if op is None or row["op"] == op]
        return [{name: row[name] for name in columns} for row in chosen]

    return read
