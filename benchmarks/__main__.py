"""Run the benchmarks: `make bench`, or `python benchmarks NAME ...` for some of them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from rich.console import Console

HELPERS = {"__main__", "table"}
NAMES = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - HELPERS)
"""Each is a module with `run() -> Table`."""


def main() -> int:
    """Run those that are named, or all. 0 if each came to its end."""
    wanted = sys.argv[1:] or NAMES
    if unknown := [name for name in wanted if name not in NAMES]:
        sys.stderr.write(f"no benchmark is called {', '.join(unknown)}; there are: {NAMES}\n")
        return 2
    console = Console(width=140)
    for name in wanted:
        console.rule(name)
        table = importlib.import_module(name).run()
        table.show(console)
        console.print(f"kept in {table.save()}", style="dim")
    return 0


if __name__ == "__main__":
    sys.exit(main())
