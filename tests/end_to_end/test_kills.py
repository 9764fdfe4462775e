"""SIGKILL in mid-load: what was committed is stored, exactly once, and nobody is accused."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest

import slotscope
from slotscope.instrument import spawn
from tests.end_to_end import stored
from tests.end_to_end.server import Clients, run, serving, until

LAZY = ("--speculative-algorithm", "NEXTN", "--max-mamba-cache-size", "10")
PLAIN = (
    *("--mamba-radix-cache-strategy", "extra_buffer"),
    *("--speculative-algorithm", ""),
    *("--max-mamba-cache-size", "14"),
)


def the_same_from_segments_and_store(trace: Path, elsewhere: Path) -> dict[str, pa.Table]:
    assert stored.stored(trace) == stored.committed(trace)
    tables = stored.tables(trace, stored=True)
    assert tables == stored.from_segments(trace, elsewhere)
    return tables


@pytest.mark.parametrize(("flags", "seed"), [(LAZY, 1), (PLAIN, 2)])
def test_a_killed_server_leaves_all_that_it_committed(
    folder: Path, tmp_path: Path, flags: tuple[str, ...], seed: int
) -> None:
    trace = tmp_path / "trace"
    with serving(folder, trace, *flags) as server, Clients(server.url, seed) as clients:
        clients.stream(400 + 37 * seed)
        with slotscope.open(trace) as opened:  # while the collector runs
            assert opened.live
            seen = opened.sql("FROM events ORDER BY writer, seq")
        server.kill()
        clients.stop()
        assert len(clients.failures) == clients.count, "each client saw the crash"
    stored.collected(trace)
    assert stored.states(trace) == ["crashed"]
    events = the_same_from_segments_and_store(trace, tmp_path / "segments")["events"]
    assert events.num_rows >= seen.num_rows > 100
    assert stored.goes_on(seen, events)
    assert run("check", trace).returncode == 0


def test_killed_collectors_are_followed_by_others(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with serving(folder, trace, *LAZY) as server, Clients(server.url, seed=3) as clients:
        killed = []
        for _ in range(2):
            until(lambda: spawn.locked(trace), "a collector")
            clients.stream(150)
            killed.append(stored.collector(trace))
            os.kill(killed[-1], signal.SIGKILL)
            until(lambda: not spawn.locked(trace), "its end")
            clients.stream(150)
        clients.stop()
        assert clients.failures == []
        assert {len(answers) for answers in clients.answers.values()} == {1}
        server.end()
    stored.collected(trace)
    assert len(set(killed)) == 2
    assert stored.states(trace) == ["stopped"]
    the_same_from_segments_and_store(trace, tmp_path / "segments")
    assert run("check", trace).returncode == 0


def test_after_a_crash_of_everything_collect_stores_the_rest(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with serving(folder, trace, *LAZY) as server, Clients(server.url, seed=4) as clients:
        until(lambda: spawn.locked(trace) and (trace / "live.duckdb").exists(), "a collector")
        clients.stream(300)
        os.kill(stored.collector(trace), signal.SIGKILL)
        server.kill()
    assert not spawn.locked(trace)
    committed = sum(stored.committed(trace).values())
    with slotscope.open(trace) as opened:  # without a collector
        assert not opened.stored
        assert opened.sql("FROM events").num_rows == committed
    assert run("check", trace).returncode == 0
    first = run("collect", trace)
    assert first.returncode == 0, first.stderr
    the_same_from_segments_and_store(trace, tmp_path / "segments")
    assert run("collect", trace).stdout.startswith("0 events stored")
    assert run("check", trace).returncode == 0
