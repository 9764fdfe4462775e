"""What a slot event costs the engine: hot, and in a process that does something else meanwhile.

Compiled where the package was built with a compiler, and in Python alone.

The anchor is a span of the OpenTelemetry SDK with the same eight attributes, in the same run.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from support.busy import busy_core
from table import Table

from slotscope.instrument import native, probe
from slotscope.instrument.event import Op, Role

SLOTS = (1, 8, 32, 128)
ROUNDS, CALLS = 30, 300
STEPS = 150

Emit = Callable[[], object]


class _Nowhere(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


def emitter(values: Any) -> Emit:
    """A call with eight columns, of which the first five are `values`."""
    op, role, emit = Op.ADVANCE, Role.LIVE, probe.emit

    def call() -> None:
        emit(
            op, slots=values, request=values, row=values, depth_before=values, depth=values,
            role=role, forward=7, launch=900,
        )  # fmt: skip

    return call


def spanner(tracer: Any) -> Emit:
    """The same event as a span."""
    names = ("slot", "request", "row", "depth_before", "depth", "role", "forward", "launch")
    attributes = {f"slotscope.{name}": 3 for name in names}
    return lambda: tracer.start_span("slot.advance", attributes=attributes).end()


def hot_ns(call: Emit, slots: int) -> float:
    """ns per slot event, the fastest of many short bursts."""
    bursts = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        bursts.append((time.perf_counter_ns() - begin) / CALLS / slots)
        time.sleep(0.01)  # What the disk must take is taken here, as between an engine's steps.
    return min(bursts)


def working_ns(call: Emit, slots: int) -> float:
    """ns per slot event, the median over calls that find caches full of other work, of which a
    second process does some too."""
    work = np.random.default_rng(0).random(1_000_000)
    samples = []
    with busy_core():
        for _ in range(STEPS):
            np.multiply(work, 1.0001, out=work)
            table = {i: str(i) for i in range(2000)}
            begin = time.perf_counter_ns()
            call()
            samples.append((time.perf_counter_ns() - begin) / slots)
            del table
    return statistics.median(samples)


def _calls() -> Iterator[tuple[str, int, Emit]]:
    """(name, slots, call) for each size and form; to be asked for while tracing is on."""
    for slots in SLOTS:
        forms: dict[str, Any] = {"numbers": 3} if slots == 1 else {}
        forms["arrays"] = np.arange(slots, dtype=np.int32)
        forms["lists"] = list(range(slots))
        for form, values in forms.items():
            yield f"B = {slots}, {form}", slots, emitter(values)


def run() -> Table:
    """Measure all sizes and forms."""
    table = Table("event_cost", "ns per slot event, 8 columns in a call")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_Nowhere()))
    span = spanner(provider.get_tracer("bench"))
    hot_span, working_span = hot_ns(span, 1), working_ns(span, 1)
    anchor = "OTel SDK span"
    lost = 0
    for way in ("compiled", "Python"):
        if way == "compiled" and native.load_ring(probe.emit) is None:
            table.notes.append("The compiled way was not built here.")
            continue
        os.environ[native.ENVIRONMENT] = str(int(way == "compiled"))
        with tempfile.TemporaryDirectory() as directory:
            probe.start(directory, collector=False)
            for name, slots, call in _calls():
                hot = hot_ns(call, slots)
                table.add(f"{way}, {name}, hot", "ns", hot, hot_span, anchor)
                working = working_ns(call, slots)
                table.add(f"{way}, {name}, working", "ns", working, working_span, anchor)
            lost += probe.lost_count()
            probe.stop()
    del os.environ[native.ENVIRONMENT]
    silent = emitter(3)
    table.add("B = 1, tracing off", "ns", hot_ns(silent, 1), hot_span, anchor)
    table.notes += [
        "Columns: slot, request, row, depth_before, depth for each slot; role, forward, launch.",
        "Hot: the fastest of many bursts. Working: the median call behind 1-2 ms of other work, "
        f"with a second core busy. {lost} events were lost.",
    ]
    provider.shutdown()
    return table
