"""D11: nodes keep depth and key, locks are paired, ranks keep step."""

from __future__ import annotations

from histories import connect
from verdicts import checked, judge, witnesses

from slotscope.instrument import check, detectors

LOCK, UNLOCK = "lock(node=2,request=7,label=64)", "unlock(node=2,request=7,label=64)"
FILED = "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>64 1:5^64 /1 5!64n2 n2+5@64 "  # 0 .. 9


def test_a_lock_is_undone_once_and_by_who_has_it() -> None:
    other = "unlock(node=2,request=9,label=64)"
    assert witnesses(
        "D11",
        f"r7+ {LOCK} {UNLOCK} {LOCK} {UNLOCK}",
        f"r7+ {LOCK} {UNLOCK} {UNLOCK}",
        f"r7+ {LOCK} {other} {UNLOCK}",
    ) == [[], [[2, 3]], [[2]]]


def test_a_locked_node_keeps_its_state() -> None:
    assert witnesses(
        "D11",
        FILED + f"{LOCK} {UNLOCK} n2-5 -5",
        FILED + f"{LOCK} n2-5 -5",
        FILED + f"lock(node=4,request=7,label=128) {LOCK} {UNLOCK} n2-5",  # below it
    ) == [[], [[10, 11]], []]


def test_a_lock_does_not_outlive_its_request() -> None:
    ended = f"r7+ {LOCK} P1 /1 r7- "
    assert witnesses(
        "D11",
        ended + "P2 /2",
        ended + "P2",  # it may still come
        ended + f"{UNLOCK} P2 /2",
        f"r7+ {LOCK} P1 /1 P2 /2",
    ) == [[[1, 4, 5]], [], [], []]


def test_a_node_keeps_its_depth_also_when_it_is_split() -> None:
    hit = "match(node=2,slot=5,pool=0,request=9,outcome=hit,label={})"
    cut = "split(node=3,label=32) "
    assert witnesses(
        "D11",
        FILED + cut + hit.format(64),
        FILED + cut + hit.format(32),
        FILED + "n2-5 -5 r8+ r8+keep5 n2+5@128",  # numbered anew
    ) == [[], [[9, 11]], []]


def test_a_state_stays_with_its_node_when_the_edge_above_is_split() -> None:
    hit = (
        FILED + "split(node=3,label=32) match(node={},slot=5,pool=0,request=9,outcome=hit,label={})"
    )
    assert witnesses("D11", hit.format(2, 64), hit.format(3, 32)) == [[], [[9, 11]]]


def test_a_match_offers_the_key_that_was_filed() -> None:
    filed = "insert(node=2,slot=5,pool=0,label=64,token_hash=11) "
    hit = "match(node=2,slot=5,pool=0,request=9,outcome=hit,label=64,token_hash={})"
    answers = witnesses("D11", filed + hit.format(11), filed + hit.format(12))
    assert answers == [[], [[0, 1]]]


def test_ranks_of_one_engine_change_their_trees_in_step() -> None:
    mine, other = FILED + "n2-5 -5", FILED + "split(node=3,label=32) n2-5 -5"
    for line, groups, found in (
        (f"{mine} | {mine}", "ss", 0),
        (f"{mine} | {other}", "ss", 1),
        (f"{mine} | {other}", "st", 0),
        (f"{mine} | {FILED}", "ss", 0),  # it may be behind
    ):
        with connect(line) as con:
            for process, group in enumerate(groups):
                con.execute("INSERT INTO notes VALUES (?, 'tree.group', ?, 0)", [process, group])
            chosen = [d for d in detectors.load() if d.id == "D11"]
            findings = check.run(con, chosen).findings
        assert len(findings) == found
        assert all("2th change" in finding.because for finding in findings)


def test_an_eviction_under_a_lock_explains_what_its_reader_meets() -> None:
    line = FILED + f"{LOCK} n2-5 -5 r9+ r9+live5 P2 2:5@0 2:5@0>10 /2 r8+ r8+live6 P3 3:6<5@64n2"
    (cause,) = checked(line + f" {UNLOCK}").findings
    assert cause.detector == "D11"
    assert {"D1", "D3"} <= {also.detector for also in cause.also}


def test_it_argues_nothing_behind_lost_records() -> None:
    """The lost record may be the second lock."""
    answer = judge("D11", f"r7+ {LOCK} {UNLOCK} ... {UNLOCK}")
    assert (answer.verdict, answer.witness) == ("blind", [])


def test_it_is_clean_where_locks_are_paired_and_blind_without_them() -> None:
    assert judge("D11", FILED + f"{LOCK} {UNLOCK}").verdict == "clean"
    assert judge("D11", FILED, dead=["lock"]).verdict == "blind"
