"""A table of figures: ours beside the anchor's from the same run. Printed, and kept as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table as Printed

RESULTS = Path(__file__).parent / "results"
VERSIONS = ("duckdb", "numpy", "opentelemetry-sdk", "pyarrow", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ratio` is ours over the anchor's."""

    name: str
    unit: str
    ours: float | str
    anchor: float | str | None = None
    anchor_name: str = ""

    @property
    def ratio(self) -> float | None:
        """None where there is no anchor, or one of the two is no number."""
        if isinstance(self.ours, str) or isinstance(self.anchor, str) or not self.anchor:
            return None
        return self.ours / self.anchor


@dataclass(slots=True)
class Table:
    """Rows under a title. `notes` say what a reader must know of how it was measured."""

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        unit: str,
        ours: float | str,
        anchor: float | str | None = None,
        anchor_name: str = "",
    ) -> None:
        """Append a row."""
        self.rows.append(Row(name, unit, ours, anchor, anchor_name))

    def show(self, console: Console) -> None:
        """Print it."""
        printed = Printed(title=self.title, title_justify="left", caption="\n".join(self.notes))
        for column in ("", "ours", "anchor", "ratio", "unit", "anchor is"):
            numeric = column in {"ours", "anchor", "ratio"}
            printed.add_column(column, justify="right" if numeric else "left")
        for row in self.rows:
            cells = (row.name, _text(row.ours), _text(row.anchor), _text(row.ratio))
            printed.add_row(*cells, row.unit, row.anchor_name)
        console.print(printed)

    def save(self) -> Path:
        """Write `results/<name>.json`."""
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        kept = {
            "title": self.title,
            "rows": [asdict(row) | {"ratio": row.ratio} for row in self.rows],
            "notes": self.notes,
            "machine": machine(),
            "versions": versions(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        path.write_text(json.dumps(kept, indent=1) + "\n")
        return path


def versions() -> dict[str, str]:
    """Of what the figures depend on; what is not installed is left out."""
    found = {}
    for name in VERSIONS:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def machine() -> dict[str, str | int]:
    """What the figures were measured on."""
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count() or 0,
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def _text(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
