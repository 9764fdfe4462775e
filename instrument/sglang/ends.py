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
    depth = told.live.depth if told.live is not None else None
    said: dict[str, Any] = {"request": told.number, "row": layout.row(req), "depth": depth}
    if req.finished():
        aborted = type(req.finished_reason).__name__ == "FINISH_ABORT"
        outcome = Outcome.ABORTED if aborted else Outcome.FINISHED
        probe.emit(Op.REQUEST_END, label=layout.tokens(req), outcome=outcome, **said)
    else:
        probe.emit(Op.RETRACT, **said)


def request_again(scene: Scene, _: Any, req: Any, *__: Any, **___: Any) -> None:
    """A request was retracted."""
    scene.requests.again(scene.requests.of(req))
