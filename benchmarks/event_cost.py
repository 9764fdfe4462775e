"""What a slot event costs the engine: hot, and in a process that does something else meanwhile.

The anchor is a span of the OpenTelemetry SDK with the same eight attributes, in the same run.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from support.busy import busy_core
from table import Table

from slotscope.instrument import probe
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


def run() -> Table:
    """Measure all sizes and forms."""
    table = Table("event_cost", "ns per slot event, 8 columns in a call")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_Nowhere()))
    span = spanner(provider.get_tracer("bench"))
    hot_span, working_span = hot_ns(span, 1), working_ns(span, 1)
    anchor = "OTel SDK span"
    with tempfile.TemporaryDirectory() as directory:
        probe.start(directory, collector=False)
        for slots in SLOTS:
            forms: dict[str, Any] = {
                "arrays": np.arange(slots, dtype=np.int32),
                "lists": list(range(slots)),
            }
            if slots == 1:
                forms = {"numbers": 3, **forms}
            for form, values in forms.items():
                call = emitter(values)
                name = f"B = {slots}, {form}"
                table.add(f"{name}, hot", "ns", hot_ns(call, slots), hot_span, anchor)
                working = working_ns(call, slots)
                table.add(f"{name}, working", "ns", working, working_span, anchor)
        lost = probe.lost_count()
        probe.stop()
    silent = emitter(3)
    table.add("B = 1, tracing off", "ns", hot_ns(silent, 1), hot_span, anchor)
    table.notes += [
        "Columns: slot, request, row, depth_before, depth for each slot; role, forward, launch.",
        "Hot: the fastest of many bursts. Working: the median call behind 1-2 ms of other work, "
        f"with a second core busy. {lost} events were lost.",
    ]
    provider.shutdown()
    return table
