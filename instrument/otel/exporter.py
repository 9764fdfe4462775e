"""Exporter: spans of a trace that grows, sent as they end, from a thread of the collector."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from .backlog import Backlog
from .delivery import SPANS_MAX, ExportReport, send_batches
from .send import Retry, Sender, SendError
from .window import SpanWindow

if TYPE_CHECKING:
    from slotscope.instrument.batch import Batch, Row

    from .endpoint import Endpoint

log = logging.getLogger("slotscope.otlp")


class Exporter:
    """Gets what the collector reads, sends what has ended. Never makes the collector wait.

    What comes while `queue_events_max` events wait already is dropped and counted. Memory stays
    bounded however long the receiver is away: see `Backlog` and `SpanWindow`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        uid: int,
        *,
        retry: Retry | None = None,
        period_s: float = 1.0,
        settle_s: float = 1.0,
        queue_events_max: int = 500_000,
        window_events_max: int = 500_000,
    ) -> None:
        self.endpoint = endpoint
        # Each is counted by one thread alone.
        self._overflow_count = self._forgotten_count = 0
        self._report = ExportReport()
        self._period_s, self._settle_s, self._uid = period_s, settle_s, uid
        self._window_events_max = window_events_max
        self._backlog = Backlog(events_max=queue_events_max)
        self._processes: list[Row] = []  # as they are by the latest batch
        self._stop, self._abandon = threading.Event(), threading.Event()
        self._sender = Sender(endpoint, retry=retry, stop=self._abandon)
        self._away = False
        self._thread = threading.Thread(target=self._run, name="slotscope-otlp", daemon=True)
        self._thread.start()

    @property
    def dropped_count(self) -> int:
        """Events that came too fast, or that never ended and were forgotten."""
        return self._overflow_count + self._forgotten_count

    @property
    def waiting_count(self) -> int:
        """Batches that wait to be looked at."""
        return len(self._backlog)

    @property
    def report(self) -> ExportReport:
        """What became of spans so far."""
        return replace(self._report, messages=list(self._report.messages))

    def offer(self, batch: Batch, processes: list[Row]) -> None:
        """Take in what was stored, with its generations; returns at once. It is ours then."""
        self._processes = processes
        self._overflow_count += self._backlog.put(batch)

    def close(self, timeout_s: float = 10.0) -> ExportReport:
        """Send what there is, open spans too, and stop."""
        self._stop.set()
        self._thread.join(timeout_s)
        self._abandon.set()
        self._thread.join(self._sender.timeout_s)
        return self.report

    def _run(self) -> None:
        window = SpanWindow(self._uid, settle_s=self._settle_s)
        try:
            while not self._stop.wait(self._period_s):
                self._turn(window, final=False)
            self._turn(window, final=True)
        except Exception:
            log.exception(
                "No more spans go to %s. The trace itself is not touched.", self.endpoint.url
            )
        finally:
            window.close()
            self._sender.close()
            log.info(
                "%s got %d spans, rejected %d and refused %d; %d events were dropped.",
                self.endpoint.url,
                self._report.sent,
                self._report.rejected,
                self._report.failed,
                self.dropped_count,
            )

    def _turn(self, window: SpanWindow, *, final: bool) -> None:
        """Send what has ended. What can't be sent stays for the next turn."""
        while window.events < self._window_events_max and (batch := self._backlog.take()):
            window.add(batch, self._processes)
        try:
            for spans in window.take(rows=SPANS_MAX, final=final):
                send_batches([spans], self._sender, self._report)
                window.mark(spans)
        except SendError as error:
            if not self._away:
                log.warning("%s", error)
            self._away = True
            return
        self._away = False
        self._forgotten_count += window.forget(events_max=self._window_events_max)
