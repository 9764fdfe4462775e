"""`slotscope diff`: where two traces part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from slotscope.instrument.diff import Comparison, Parting


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="A trace directory.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    context: Annotated[
        int, typer.Option(min=0, max=1000, help="Events shown of what was before, and of slots.")
    ] = 8,
) -> None:
    """Show the first event where two traces part, with what was before it in both.

    Exits 0 if both say the same (times aside), 1 if they part, 2 if they can't be compared: one
    lost records, or they are of different numbers of processes.

        slotscope diff traces/yesterday traces/today
    """
    import slotscope
    from slotscope.instrument.diff import compare

    with slotscope.open(a, time_limit_s=0) as first, slotscope.open(b, time_limit_s=0) as second:
        compared = compare(first, second, context=context)
    typer.echo(compared.to_json() if json else _text(compared, a, b))
    raise typer.Exit(compared.exit_code)


def _text(compared: Comparison, a: Path, b: Path) -> str:
    from slotscope.instrument.plain import plain

    parting = compared.parting
    if compared.why:
        return plain(f"Can't compare: {compared.why}")
    if parting is None:
        return f"Same, times aside. Events in both: {compared.events}."
    return plain("\n".join(_lines(parting, a, b)))


def _lines(parting: Parting, a: Path, b: Path) -> list[str]:
    where = f"event {parting.event} of process {parting.process}"
    # Another operation has other columns altogether.
    columns = ("op",) if "op" in parting.columns else parting.columns
    unlike = f", in {', '.join(columns)}" if columns else ""
    lines = [f"They part at {where}{unlike}.", "", "Before, in both:"]
    lines += _shown(parting.before)
    for name, path, side in zip("AB", (a, b), parting.sides, strict=True):
        lines += ["", f"{name}, {path}:"]
        lines += _shown([side.event]) if side.event else ["  ends here"]
        for slot, history in side.histories.items():
            lines += [f"  Slot {slot} until here:"]
            lines += [f"  {line}" for line in _shown(history)]
    return lines


def _shown(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each event, as `name=value ...` after its number and operation."""
    said = [
        " ".join(f"{name}={value}" for name, value in row.items() if name not in ("event", "op"))
        for row in rows
    ]
    return [
        f"  {row['event']:>6} {row['op']:<15} {rest}".rstrip()
        for row, rest in zip(rows, said, strict=True)
    ] or ["  nothing"]
