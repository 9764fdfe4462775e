"""SIGKILL in mid-load: what was committed is stored, exactly once, and nobody is accused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import slotscope
from tests.end_to_end import stored
from tests.end_to_end.server import Clients, run, serving, until

LAZY = ("--speculative-algorithm", "NEXTN", "--max-mamba-cache-size", "10")
PLAIN = (
    *("--mamba-radix-cache-strategy", "extra_buffer"),
    *("--speculative-algorithm", ""),
    *("--max-mamba-cache-size", "14"),
)


def reconciled(trace: Path, elsewhere: Path) -> dict[str, pa.Table]:
    """The stored tables, once they are what the writers committed and what the segments tell."""
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
        clients.stream(300 + 37 * seed)
        stored.collector(trace)
        with slotscope.open(trace) as opened:  # while the collector runs
            assert opened.live
            seen = opened.sql("FROM events ORDER BY writer, seq")
        server.kill()
        until(lambda: len(clients.failures) == clients.count, "each client sees the crash")
    stored.collected(trace)
    assert stored.states(trace) == ["crashed"]
    events = reconciled(trace, tmp_path / "segments")["events"]
    assert events.num_rows >= seen.num_rows > 100
    assert stored.goes_on(seen, events)
    assert run("check", trace).returncode == 0


def test_killed_collectors_are_followed_by_others(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with serving(folder, trace, *LAZY) as server, Clients(server.url, seed=3) as clients:
        clients.stream(100)
        pids = [stored.kill_collector(trace)]
        clients.stream(100)
        pids.append(stored.kill_collector(trace))
        clients.stream(100)
        pids.append(stored.collector(trace))
        clients.stop()
        assert clients.failures == []
        assert {len(answers) for answers in clients.answers.values()} == {1}
        server.end()
    stored.collected(trace)
    assert len(set(pids)) == 3
    assert stored.states(trace) == ["stopped"]
    reconciled(trace, tmp_path / "segments")
    assert run("check", trace).returncode == 0


def test_after_a_crash_of_everything_collect_stores_the_rest(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with serving(folder, trace, *LAZY) as server, Clients(server.url, seed=4) as clients:
        clients.stream(150)
        stored.kill_collector(trace)
        with stored.no_collector(trace):
            clients.stream(150)
            server.kill()
    with slotscope.open(trace) as opened:
        assert not opened.stored
        assert opened.sql("FROM events").num_rows == sum(stored.committed(trace).values())
    assert run("check", trace).returncode == 0
    rest = run("collect", trace)
    assert rest.returncode == 0, rest.stderr
    assert not rest.stdout.startswith("0 events")
    reconciled(trace, tmp_path / "segments")
    assert run("collect", trace).stdout.startswith("0 events stored")
    assert run("check", trace).returncode == 0
