"""Collector: moves a trace's records from segments into DuckDB, in a process of its own.

It never runs inside an engine: sharing its GIL would cost the engine stalls of several ms.
`python -m slotscope.instrument.collector DIR` is what `probe.start` spawns.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from .batch import Batch, Row
from .otel.endpoint import Endpoint, EndpointError, endpoint_of_environment
from .scan import BATCH_EVENTS, Scan
from .sealed.sealer import LimitError, Limits, Sealer
from .spawn import LOCK_NAME
from .store import NAME, Busy, Store

if TYPE_CHECKING:
    from .otel.exporter import Exporter

INTERVAL_S = 0.25
LINGER_S = 30.0
LINGER_ENVIRONMENT = "SLOTSCOPE_LINGER_S"
CHECKPOINT_S = 60.0
LOCK_PATIENCE_S = 2.0
"""Who asks whether a collector runs holds the lock for an instant."""

log = logging.getLogger("slotscope.collector")


class CollectorError(RuntimeError):
    """A trace that can't be collected. The message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one look at the directory found. The scan may go on meanwhile: nothing is shared."""

    running: bool  # a process may say more
    batch: Batch
    processes: list[Row]
    open_gaps: list[Row]
    next_seq: dict[int, int]
    cut: bool  # there is more, which the batch had no room for


def read(scan: Scan, events_max: int) -> Reading:
    """All that is new, up to a batch of about so many events."""
    # Who is gone before a batch is read has committed its last before that.
    running = any(image.state == "running" for image in scan.images.values())
    batch = scan.batch(events_max)
    cut = len(batch.events["seq"]) >= events_max
    return Reading(running, batch, scan.processes(), scan.open_gaps(), dict(scan.next_seq), cut)


class Collector:
    """Drains one trace directory until its last writer is gone and everything is stored."""

    def __init__(
        self,
        directory: Path,
        *,
        linger_s: float = LINGER_S,
        interval_s: float = INTERVAL_S,
        otlp: Endpoint | None = None,
        events_max: int = BATCH_EVENTS,
        limits: Limits | None = None,
    ) -> None:
        """`events_max` are stored at once, or a segment more. `otlp` gets spans as they end; what
        it can't take never holds the collector up."""
        self.directory = directory
        self.stored_count = 0
        self._linger_s, self._interval_s = linger_s, interval_s
        self._events_max = events_max
        self._stopping = False
        self._told: Any = None  # what the store knows of processes and open gaps
        self._sealer = Sealer(limits or Limits())
        self._otlp = otlp
        self._exporter: Exporter | None = None

    def stop(self) -> None:
        """End after the batch in hand, for whatever there is still to come."""
        self._stopping = True

    def run(self) -> None:
        """Collect.

        Raises:
            CollectorError: another collector runs on the directory, or it holds no trace.
            StoreError, SchemaError: the DuckDB file can't be used.
            duckdb.Error: a batch can't be stored. The next collector begins with that batch.
        """
        with _only_one(self.directory), _for_this_user():
            scan = Scan(self.directory)
            scan.look()
            if not scan.registered:
                raise CollectorError(
                    f"{self.directory} holds no trace: no process has registered in it. Give the "
                    "directory that `--trace` named."
                )
            store = self._open(scan.uid)
            if store is None:
                return
            try:
                store.resume(scan)
                self._exporter = self._export(scan, store)
                self._collect(scan, store)
            finally:
                store.close()
                if self._exporter is not None:
                    self._exporter.close()

    def _open(self, uid: int) -> Store | None:
        """The store, once no reader has it open; None if told to stop before that."""
        told = False
        while not self._stopping:
            try:
                return Store(self.directory / NAME, uid)
            except Busy as error:
                if not told:
                    log.warning("%s", error)
                told = True
                time.sleep(self._interval_s)
        return None

    def _export(self, scan: Scan, store: Store) -> Exporter | None:
        """Who sends spans, told what is known already; None if nobody asked for it."""
        if self._otlp is None:
            return None
        from .otel.exporter import Exporter

        exporter = Exporter(self._otlp, scan.uid)
        exporter.offer(store.facts(), scan.processes())
        return exporter

    def _collect(self, scan: Scan, store: Store) -> None:
        """Store one batch while the next is read, as long as there is more than one."""
        idle_s = checkpoint_s = time.monotonic()
        ahead: Future[Reading] | None = None
        with ThreadPoolExecutor(1, "slotscope-reader") as reader:
            while True:
                found = ahead.result() if ahead else read(scan, self._events_max)
                more = found.cut and not self._stopping
                ahead = reader.submit(read, scan, self._events_max) if more else None
                self._step(found, store)
                self._sealer.step(store)
                now = time.monotonic()
                if found.running or not found.batch.empty:
                    idle_s = now
                if self._stopping or now - idle_s > self._linger_s or not self.directory.exists():
                    return
                if now - checkpoint_s > CHECKPOINT_S:
                    store.checkpoint()
                    checkpoint_s = now
                # A batch costs much the same whether it has ten events or ten thousand, so what
                # trickles in is left to gather. Only one that was cut off leaves a rest behind.
                if ahead is None and (found.running or found.batch.empty):
                    time.sleep(self._interval_s)

    def _step(self, found: Reading, store: Store) -> None:
        """Store what is new."""
        batch, told = found.batch, (found.processes, found.open_gaps)
        if batch.empty and told == self._told:
            return
        store.append(batch, *told, found.next_seq)
        self._told = told
        self.stored_count += len(batch.events["seq"])
        if self._exporter is not None:
            self._exporter.offer(batch, told[0])


@contextlib.contextmanager
def _for_this_user() -> Iterator[None]:
    """Files that are made meanwhile are this user's alone, as the segments are: DuckDB makes
    several, and follows the umask."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def _only_one(directory: Path) -> Iterator[None]:
    """Hold the trace's lock.

    Raises:
        CollectorError: another collector has it, or the directory can't be written.
    """
    try:
        descriptor = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CollectorError(
            f"{directory} can't be collected: {error}. Give the directory that `--trace` named, "
            "and a user that may write it."
        ) from error
    try:
        deadline_s = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline_s:
                    pid = os.pread(descriptor, 32, 0).decode() or "unknown"
                    raise CollectorError(
                        f"A collector, process {pid}, runs on {directory} already. One is enough."
                    ) from None
                time.sleep(0.05)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def main() -> int:
    """Entry of the spawned process: the exit status."""
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.INFO)
    linger_s = float(os.environ.get(LINGER_ENVIRONMENT, LINGER_S))
    directory, limits = Path(sys.argv[1]), _limits()
    collector = Collector(directory, linger_s=linger_s, otlp=_endpoint(), limits=limits)

    def on_term(_signal: int, _frame: FrameType | None) -> None:
        collector.stop()

    signal.signal(signal.SIGTERM, on_term)
    os.nice(5)  # The engine comes first.
    try:
        collector.run()
    except CollectorError as error:
        log.info("%s", error)
        return 3
    except Exception:
        log.exception("The collector ends; the segments keep what it has not stored.")
        return 1
    log.info("%d events stored.", collector.stored_count)
    return 0


def _endpoint() -> Endpoint | None:
    """Where the environment wants spans. A wrong address there costs the spans, not the trace."""
    try:
        return endpoint_of_environment()
    except EndpointError as error:
        log.warning("No spans are sent: %s", error)
        return None


def _limits() -> Limits:
    """When the environment wants generations. What is wrong there costs the wish, not the trace."""
    try:
        return Limits.of_environment()
    except LimitError as error:
        log.warning("Generations are sealed as by default: %s", error)
        return Limits()


if __name__ == "__main__":
    sys.exit(main())
