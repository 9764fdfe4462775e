"""Metrics: counts of the server and of its engine, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from slotscope.instrument import probe

from .backend import Engine
from .generation import Generation

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """A registry of its own, so that two servers in one process don't meet."""

    def __init__(self, engine: Engine) -> None:
        """Count for `engine`, from zero."""
        registry = CollectorRegistry()
        registry.register(_EngineCollector(engine))
        self._registry = registry
        self._outcomes = Counter(
            "slotscope_requests",
            "Requests that are over: stop, length, abort, disconnected (the client left), "
            "refused (a 4xx reply).",
            ["outcome"],
            registry=registry,
        )
        for outcome in ("stop", "length", "abort", "disconnected", "refused"):
            self._outcomes.labels(outcome)
        self._prompt_tokens = Counter(
            "slotscope_prompt_tokens", "Prompt tokens of requests that are over.", registry=registry
        )
        self._first_s = Histogram(
            "slotscope_time_to_first_token_seconds",
            "From the call to its first token.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._latency_s = Histogram(
            "slotscope_request_latency_seconds",
            "From the call to its last token.",
            buckets=_SECONDS,
            registry=registry,
        )

    def generation_over(self, generation: Generation) -> None:
        """A generation has finished, or its client has left."""
        finish = generation.finish
        self._outcomes.labels(finish.reason if finish else "disconnected").inc()
        self._prompt_tokens.inc(len(generation.request.prompt))
        if generation.first_s is not None:
            self._first_s.observe(generation.first_s - generation.begun_s)
        if generation.latency_s is not None:
            self._latency_s.observe(generation.latency_s)

    def refused(self) -> None:
        """A call got a 4xx reply."""
        self._outcomes.labels("refused").inc()

    def exposition(self) -> bytes:
        """All of them, in Prometheus' text format."""
        return generate_latest(self._registry)


class _EngineCollector(Collector):
    """Asks the engine when Prometheus asks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        stats = self._engine.stats()
        for name, help_, value in (
            ("requests_running", "Requests that hold a live slot.", stats.running),
            ("requests_queued", "Requests that wait for a slot.", stats.queued),
            ("accept_length", "Mean tokens for one verify; 0 before any.", stats.accept_length),
        ):
            yield GaugeMetricFamily(f"slotscope_{name}", help_, value=value or 0)
        slots = GaugeMetricFamily(
            "slotscope_slots",
            "State slots by state: free, pinned by a running request, cached in the radix tree.",
            labels=["state"],
        )
        slots.add_metric(["free"], stats.slots_free)
        slots.add_metric(["pinned"], stats.slots_pinned)
        slots.add_metric(["cached"], stats.slots_cached)
        yield slots
        host = GaugeMetricFamily(
            "slotscope_host_slots",
            "Slots of the host tier by state: free, holding a checkpoint.",
            labels=["state"],
        )
        host.add_metric(["free"], stats.host_slots_free)
        host.add_metric(["cached"], stats.host_slots_cached)
        yield host
        yield GaugeMetricFamily(
            "slotscope_host_tokens", "KV locations in use on the host.", stats.host_tokens_cached
        )
        for name, help_, value in (
            ("tokens_generated", "Tokens that came out.", stats.tokens_generated),
            ("tokens_cached", "Prompt tokens restored from a checkpoint.", stats.tokens_cached),
            ("verifies", "Verifies, one for each request and forward.", stats.verifies),
            ("tokens_accepted", "Tokens that verifies accepted, roots included.", stats.accepted),
            ("offloads", "Checkpoints that left for the host.", stats.offloads),
            ("load_backs", "Checkpoints that came back from the host.", stats.load_backs),
            ("retractions", "Running requests that gave way to others.", stats.retractions),
            ("events_lost", "Slot events that the trace doesn't have.", probe.lost_count()),
        ):
            yield CounterMetricFamily(f"slotscope_{name}", help_, value=value)
