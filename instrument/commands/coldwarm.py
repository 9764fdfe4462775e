"""`slotscope coldwarm`: is a server's cache worth what it serves? Asked over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotscope.instrument.coldwarm.comparison import TOLERANCE
from slotscope.instrument.coldwarm.connect import Api, connect
from slotscope.instrument.coldwarm.errors import ColdwarmError, GridError
from slotscope.instrument.coldwarm.grid import OFFSETS, STATE_CHUNK, Cell, Geometry, Turn, cells
from slotscope.instrument.coldwarm.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slotscope.instrument.coldwarm.survey import Survey
    from slotscope.instrument.coldwarm.trial import Player, Result
    from slotscope.instrument.findings import Finding

BLIND = 2
_OFFSETS = ",".join(map(str, OFFSETS))

_Boundary = Annotated[
    list[int] | None,
    typer.Option(help="Depth around which requests finish; repeatable. Default: twice --interval."),
]
_Offsets = Annotated[str, typer.Option(help="Where they finish, from the boundary.")]
_Turns = Annotated[
    list[Turn] | None, typer.Option("--turn", help="Ask only this again; repeatable.")
]
_Prompt = Annotated[
    int | None, typer.Option(help="Tokens of prompts that are continued.", show_default=False)
]
_Page = Annotated[
    int | None, typer.Option(help="Tokens in a page of the tree, if the server does not tell.")
]
_Interval = Annotated[
    int | None, typer.Option(help="Tokens between tracked states, if the server does not tell.")
]
_Concurrency = Annotated[int, typer.Option(min=1, help="Cells that are asked side by side.")]
_Flush = Annotated[
    bool, typer.Option("--flush", help="Empty the server's whole cache, where salts do not work.")
]
_Trace = Annotated[
    Path | None, typer.Option(help="Trace of that server: what explains each difference.")
]
_Json = Annotated[Path | None, typer.Option(help="Write all of it as JSON; - is standard output.")]
_Headers = Annotated[
    list[str] | None, typer.Option("--header", help="name=value for each request; repeatable.")
]


def coldwarm(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of a running server.")],
    api: Annotated[Api, typer.Option(help="How it is asked.")] = Api.AUTO,
    boundary: _Boundary = None,
    offsets: _Offsets = _OFFSETS,
    turns: _Turns = None,
    prompt: _Prompt = None,
    answer: Annotated[int, typer.Option(help="Tokens of the answers that are compared.")] = 32,
    trials: Annotated[int, typer.Option(min=1, help="Prompts for each cell.")] = 1,
    page_size: _Page = None,
    interval: _Interval = None,
    state_chunk: Annotated[int, typer.Option(help="Tokens between prefill states.")] = STATE_CHUNK,
    concurrency: _Concurrency = 1,
    tolerance: Annotated[float, typer.Option(help="Nats that rounding may do.")] = TOLERANCE,
    flush: _Flush = False,
    trace: _Trace = None,
    json: _Json = None,
    header: _Headers = None,
    timeout: Annotated[float, typer.Option(help="Seconds for one answer.")] = 600.0,
) -> None:
    """Test a running server's cache at checkpoint boundaries, from outside: cold, warm, cold.

    Exits 0 if warm answers equal cold ones, 1 if one differs, 2 if nothing could be judged.

        slotscope coldwarm http://localhost:30000

        slotscope coldwarm http://localhost:30000 --prompt 500 --boundary 832 --interval 64

        slotscope coldwarm http://localhost:30000 --trace traces/today --json today.json
    """
    from slotscope.instrument.coldwarm.trial import Player
    from slotscope.instrument.otel.endpoint import parse_headers

    wire = Wire.to(url, parse_headers(header or ()), timeout)
    if flush and concurrency > 1:
        raise GridError(
            "--flush empties the cache under cells that are asked side by side. "
            "Leave --concurrency at 1, or leave --flush out."
        )
    try:
        server = connect(wire, api)
    except ColdwarmError as error:
        typer.echo(f"slotscope: {error}", err=True)
        raise typer.Exit(BLIND) from None
    geometry = Geometry.of(server.info, page_size, interval, state_chunk)
    plan = cells(
        boundary or (),
        offsets=_integers(offsets),
        turns=turns or tuple(Turn),
        trials=trials,
        prompt=prompt,
        interval=geometry.interval,
        answer=answer,
    )
    survey = _surveyed(Player(server, geometry, tolerance, flush), url, plan, concurrency, trace)
    _tell(survey, json)
    raise typer.Exit(survey.exit_code)


def _surveyed(
    player: Player, url: str, plan: Sequence[Cell], concurrency: int, trace: Path | None
) -> Survey:
    """Play the plan; what was done is kept, whatever ends it."""
    import slotscope
    from slotscope.instrument.coldwarm.survey import Survey

    if trace is not None:  # else a mistyped folder would be found out after the work
        slotscope.open(trace).close()
    results: list[Result] = []
    stopped, interrupted = "", False
    try:
        _play(player, plan, concurrency, results)
    except ColdwarmError as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped, interrupted = "interrupted.", True
    results.sort(key=lambda result: result.cell.index)
    return Survey(
        url,
        player.server.speaks,
        player.geometry,
        len(plan),
        results,
        stopped,
        interrupted,
        traced=trace is not None,
        findings=_explained(trace, results) if trace else {},
    )


def _play(player: Player, plan: Sequence[Cell], concurrency: int, results: list[Result]) -> None:
    """Append results as they come, with a bar where there is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from slotscope.instrument.coldwarm.run import run

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("cells", total=len(plan))
        for result in run(player.play, plan, concurrency):
            results.append(result)
            bar.advance(task)


def _explained(trace: Path, results: Sequence[Result]) -> dict[int, tuple[Finding, ...]]:
    import slotscope
    from slotscope.instrument.coldwarm.explain import explain

    with slotscope.open(trace, time_limit_s=0) as opened:
        return explain(opened, results)


def _tell(survey: Survey, path: Path | None) -> None:
    """The table on standard output, unless the JSON goes there."""
    from rich.console import Console

    from slotscope.instrument.coldwarm.table import board

    on_stdout = str(path) == "-"
    Console(stderr=on_stdout).print(board(survey))
    if on_stdout:
        typer.echo(survey.to_json())
    elif path is not None:
        path.write_text(survey.to_json() + "\n")


def _integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise GridError(f"--offsets is {text!r}, but must be numbers such as -1,0,16.") from None
