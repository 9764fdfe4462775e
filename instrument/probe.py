"""What an engine may say. NumPy alone is imported, and off costs one call of an empty function.

    from slotscope.instrument import probe

    launch = probe.emit(Op.FORWARD_LAUNCH, forward=7, kind=Kind.DECODE)
    probe.emit(Op.ADVANCE, slots=[3, 9], request=[0, 1], depth=[12, 80], forward=7, launch=launch)

Call through the module, as above: `start` and `stop` replace `emit`.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from . import native
from .event import Component, Kind, Op, Outcome, Role, Source, Unit
from .layout import Fact
from .session import Overflow, Session, Voice

ENVIRONMENT = "SLOTSCOPE_TRACE"
"""Names the trace directory to processes that a traced one spawns."""
SEGMENTS_MAX = "SLOTSCOPE_SEGMENTS_MAX"
"""Tells them of flight mode."""
SEGMENTS_MIN = 4

LEVEL_ENVIRONMENT = "SLOTSCOPE_LEVEL"
"""Names the level to them; 1 where it is not set."""

LEVELS = {0: "off", 1: "what the host knows", 2: "digests of states too"}

Column = int | Sequence[int] | Sequence[int | None] | np.ndarray[Any, Any] | None
"""One value for the whole call, or one for each slot of it. None is null."""


def _silent(
    op: Op,
    *,
    slots: Column = None,
    request: Column = None,
    row: Column = None,
    role: Role | None = None,
    outcome: Outcome | None = None,
    kind: Kind | None = None,
    component: Component | None = None,
    unit: Unit | None = None,
    source: Source = Source.HOST,
    forward: int | None = None,
    launch: int | None = None,
    stream: int | None = None,
    micro_batch: int | None = None,
    pool: int = 0,
    depth_before: Column = None,
    depth: Column = None,
    label: Column = None,
    grid: Column = None,
    ring: Column = None,
    step: Column = None,
    accept_len: Column = None,
    src_slot: Column = None,
    src_row: Column = None,
    node: Column = None,
    token_hash: Column = None,
    digest: Column = None,
    amends: int | None = None,
) -> int:
    """Say one engine operation: one record, one event per slot.

    Lists must be as long as `slots`; enums are scalars. Never raises, never blocks, never grows.

    Returns:
        The record's order within the process; for FORWARD_LAUNCH, the `launch` of its device acts.
        0 while off.
    """
    return 0


def _speak(op: Op, **given: Any) -> int:
    """The live form of `_silent`; the compiled one hands it what is not common."""
    try:
        voice: Voice = _local.voice
    except AttributeError:
        voice = _voice()
    return voice.append(op, given)


emit = _silent
level = 0
"""How much is traced; see LEVELS."""

_session: Session | None = None
_local = threading.local()  # of the session


class ProbeError(RuntimeError):
    """Tracing can't start. The engine may go on without it."""


def start(
    trace_dir: str | os.PathLike[str],
    *,
    level: int = 1,
    collector: bool = True,
    segments_max: int | None = None,
) -> None:
    """Trace this process into `trace_dir`, which is made if absent; `level` 0 does nothing.

    Forked children are traced too, from their first word on. Spawned children find the directory
    in the environment: call `start_from_environment` there.

    Args:
        collector: start the process that stores the trace in DuckDB, if none runs on it yet.
        segments_max: flight mode. About so many segments of 4 MiB are kept of each process, and
            the oldest make room for new ones; what nobody had stored by then is counted as
            overwritten. None keeps all.

    Raises:
        ProbeError: the directory can't be written or is full, or this process is traced already.
    """
    if level == 0:
        return
    if level not in LEVELS:
        told = ", ".join(f"{number} ({what})" for number, what in LEVELS.items())
        raise ProbeError(f"level is {level!r}, so nothing is traced. Choose one of {told}.")
    if segments_max is not None and segments_max < SEGMENTS_MIN:
        raise ProbeError(
            f"segments_max is {segments_max}, but {SEGMENTS_MIN} is the least: one is written, and "
            "others wait for what comes next."
        )
    if _session is not None:
        raise ProbeError(
            f"This process is traced into {_session.directory} already, so {trace_dir} would get "
            "nothing. Call probe.stop() first."
        )
    ring = native.load_ring(_speak)
    session = Session(
        Path(trace_dir).absolute(), collector=collector, ring=ring, segments_max=segments_max
    )
    try:
        session.register()
    except OSError as error:
        raise ProbeError(
            f"Nothing can be traced into {trace_dir}: {error}. Name a directory that this user may "
            "write and that has at least 16 MiB of room."
        ) from error
    _open(session, level)
    os.environ[ENVIRONMENT] = str(session.directory)
    os.environ[LEVEL_ENVIRONMENT] = str(level)
    if segments_max is not None:
        os.environ[SEGMENTS_MAX] = str(segments_max)
    note("slotscope.level", level)


def start_from_environment() -> bool:
    """Trace this process as the one that spawned it is traced. False if that one is not.

    Raises:
        ProbeError: as `start`.
    """
    directory = os.environ.get(ENVIRONMENT)
    if not directory or _session is not None:
        return _session is not None
    segments_max = os.environ.get(SEGMENTS_MAX, "")
    if segments_max and not segments_max.isdecimal():
        raise ProbeError(f"{SEGMENTS_MAX} is {segments_max!r}, which is no number of segments.")
    level = os.environ.get(LEVEL_ENVIRONMENT) or "1"
    if not level.isdecimal():
        raise ProbeError(
            f"{LEVEL_ENVIRONMENT} is {level!r}, which is no level: choose one of 0, 1, 2."
        )
    start(directory, level=int(level), segments_max=int(segments_max) if segments_max else None)
    return _session is not None


def stop() -> None:
    """Leave the trace. What was said is on disk; `emit` is silent again."""
    global _session, _local, emit, level
    if _session is None:
        return
    session, _session = _session, None
    emit, level = _silent, 0
    if session.ring is not None:
        session.ring.detach_all()
    os.environ.pop(ENVIRONMENT, None)
    os.environ.pop(SEGMENTS_MAX, None)
    os.environ.pop(LEVEL_ENVIRONMENT, None)
    session.stop()
    _local = threading.local()


def next_seq() -> int:
    """The `seq` of this thread's next event: an AMEND says it as `amends`, once more is known.

    It moves on only if that event is stored. -1 while off, and for a thread that got no writer.
    """
    return _voice().next_seq if _session is not None else -1


def lost_count() -> int:
    """Events that this process has said and the trace doesn't have. 0 while off."""
    return _session.lost_count() if _session is not None else 0


def request(
    request_id: str,
    *,
    number: int | None = None,
    attempt: int = 0,
    client_id: str = "",
    trace_parent: str = "",
) -> int:
    """A number for a request, unique in this process; the trace keeps the pair. 0 while off.

    Args:
        number: the engine's own, where it has one that is unique in this process.
        request_id: the engine's own id, unique among attempts that have the same number.
        client_id: what the client calls it; may repeat.
        trace_parent: W3C `traceparent` that came with it.
    """
    if _session is None:
        return 0
    number = next(_session.requests) if number is None else number
    content = {"number": number, "id": request_id, "attempt": attempt}
    content |= {"client": client_id, "parent": trace_parent}
    _voice().state(Fact.REQUEST, content)
    return number


def hook(name: str, ops: Sequence[Op], *, live: bool) -> None:
    """Say that the place `name` reports `ops`, or that it can't.

    A detector that needs an op which no live hook reports is blind.
    """
    _say(Fact.HOOK, {"name": name, "ops": [int(op) for op in ops], "live": live})


def note(key: str, value: str | int | float | bool) -> None:
    """A fact on this process: engine, model, strategy, pool size, patches that are off."""
    _say(Fact.NOTE, {"key": key, "value": value})


def _say(fact: Fact, content: dict[str, Any]) -> None:
    if _session is not None:
        voice = _voice()  # Before the fact is kept: a new session says all that it has kept.
        _session.facts.append((fact, content))
        voice.state(fact, content)


def _voice() -> Voice:
    """The calling thread's voice."""
    session = _session
    if session is None:
        return Overflow(None, itertools.count(1))
    found: Voice | None = getattr(session.local, "voice", None)
    if found is None:
        found = session.join()
    return found


def _open(session: Session, traced: int) -> None:
    global _session, _local, emit, level
    _session, _local, level = session, session.local, traced
    if session.ring is not None:
        session.ring.detach_all()
    emit = cast("Any", _speak if session.ring is None else session.ring.speak)
    atexit.register(stop)
    if "multiprocessing.util" in sys.modules:
        # Children of multiprocessing end without atexit. Their end would look like a crash.
        sys.modules["multiprocessing.util"].Finalize(None, stop, exitpriority=-100)


def _after_fork() -> None:
    """The child has its own process number and writers, and takes them at its first word."""
    if _session is not None:
        _open(_session.child(), level)


os.register_at_fork(after_in_child=_after_fork)
