"""Ends: requests that are over, and requests that start over."""

from __future__ import annotations

from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Op, Outcome

from . import layout
from .scene import Scene


def request_over(scene: Scene, req: Any, *_: Any, **__: Any) -> None:
    """A request ends, or gives up its slots to start over later."""
    if layout.row(req) is None:
        return  # It never was admitted.
    told = scene.requests.of(req)
    aborted = type(req.finished_reason).__name__ == "FINISH_ABORT"
    session = layout.session(req)
    if session is not None:
        if not aborted:
            return  # It keeps the row, also where a turn is retracted.
        scene.requests.close(session)
    depth = told.live.depth if told.live is not None else None
    said: dict[str, Any] = {"request": told.number, "row": layout.row(req), "depth": depth}
    if req.finished():
        outcome = Outcome.ABORTED if aborted else Outcome.FINISHED
        probe.emit(Op.REQUEST_END, label=layout.tokens(req), outcome=outcome, **said)
    else:
        probe.emit(Op.RETRACT, **said)


def request_again(scene: Scene, _: Any, req: Any, *__: Any, **___: Any) -> None:
    """A request was retracted."""
    if layout.session(req) is None:
        scene.requests.again(scene.requests.of(req))


def session_over(scene: Scene, _: Any, session_id: str) -> None:
    """A streaming session gives up its row and slots."""
    told = scene.requests.close(str(session_id))
    if told is not None:
        depth = told.live.depth if told.live is not None else None
        said: dict[str, Any] = {"request": told.number, "depth": depth}
        probe.emit(Op.REQUEST_END, outcome=Outcome.FINISHED, **said)
