"""D4: a verify that was read has exactly one commit, and the next act begins where it left."""

from __future__ import annotations

from verdicts import checked, judge

SEATED = "r7+ r7+live3 P1 1:3@0 1:3@0>64 /1 V2 2:r7?@64 "  # 0 .. 7


def test_a_verify_whose_commit_never_comes() -> None:
    answer = judge("D4", SEATED + "/2 V3")
    assert answer.witness == [[7, 8]]
    assert "slot 3 (generation 1)" in answer.because[0]


def test_a_missing_commit_is_found_even_when_its_request_ended() -> None:
    assert judge("D4", SEATED + "/2 r7- -3").witness == [[7, 8]]


def test_one_commit_is_clean_whether_it_is_said_before_or_after_the_done() -> None:
    assert judge("D4", SEATED + "/2 2:3@64+2 V3").verdict == "clean"
    assert judge("D4", SEATED + "2:3@64+2 /2 V3").verdict == "clean"


def test_a_verify_that_was_not_read_is_not_judged() -> None:
    assert judge("D4", SEATED + "V3 3:r7?@64 r7- -3").verdict == "clean"


def test_a_result_that_was_read_last_may_still_get_its_commit() -> None:
    """A trace can end, or be read, between the done and the commit."""
    assert judge("D4", SEATED + "/2").verdict == "clean"


def test_the_commit_of_one_request_is_not_anothers() -> None:
    line = SEATED + "2:r9?@10 2:3@64+2 /2 V3"
    assert judge("D4", line).witness == [[8, 10]]


def test_two_commits_of_one_verify() -> None:
    answer = judge("D4", SEATED + "/2 2:3@64+2 2:3@66+2 V3")
    assert answer.witness == [[9, 10]]


def test_a_node_of_a_tree_is_no_depth() -> None:
    """The path went over nodes 0 and 5: two tokens were accepted, whatever the node's number."""
    same = "slot=3,request=7,role=live,forward=2,depth_before=64,step=5"
    commit = f"scatter({same},accept_len={{}},depth={{}})"
    assert judge("D4", SEATED + commit.format(2, 66) + " /2 V3 3:r7?@66").verdict == "clean"
    answer = judge("D4", SEATED + commit.format(2, 70) + " /2 V3")
    assert answer.witness == [[8]]
    assert "it left 70 tokens" in answer.because[0]
    taken_for_length = SEATED + commit.format(6, 70) + " /2 V3 3:r7?@66 3:3@66+1 /3 V4"
    assert judge("D4", taken_for_length).witness == [[8, 12]]


def test_a_commit_that_moves_one_of_two_components() -> None:
    same = "slot=3,pool=0,request=7,role=live,forward=2,depth_before=64,depth=66,accept_len=2"
    conv, ssm = (f"scatter({same},component={part})" for part in ("conv", "ssm"))
    assert judge("D4", SEATED + f"{conv} {ssm} /2 V3").verdict == "clean"
    assert judge("D4", SEATED + f"{ssm} /2 V3").verdict == "clean", "a state without a window"
    answer = judge("D4", SEATED + f"{conv} /2 V3")
    assert answer.witness == [[7, 8]]
    assert "moves conv of it alone" in answer.because[0]
    window = "offload(slot=9,pool=0,node=2,depth=64,component=conv) "
    assert judge("D4", SEATED + window + f"{ssm} /2 V3").witness == [[7, 9]]


CROSSING = "r7+ r7+live3 r7+spare6 P1 1:3@0 1:3@0>62 /1 V2 2:r7?6@62%64 "  # 0 .. 8


def test_a_commit_that_passes_a_track_depth_saves_the_state_there() -> None:
    assert judge("D4", CROSSING + "2:3@62+3 2:6^64%64 /2 V3").verdict == "clean"
    answer = judge("D4", CROSSING + "2:3@62+3 /2 V3")
    assert answer.witness == [[8, 9]]
    assert "past 64" in answer.because[0]


def test_nothing_is_saved_where_nothing_is_passed_or_no_slot_is_given() -> None:
    assert judge("D4", CROSSING + "2:3@62+1 /2 V3").verdict == "clean"
    slotless = CROSSING.replace("r7?6@62%64", "r7?@62") + "2:3@62+3 /2 V3"
    assert judge("D4", slotless).verdict == "clean"
    gridless = CROSSING.replace("%64", "") + "2:3@62+3 /2 V3"
    assert judge("D4", gridless).verdict == "clean"


def test_what_lost_records_may_have_saved_is_not_missed() -> None:
    assert judge("D4", CROSSING + "2:3@62+3 ... /2 V3").witness == []


def test_a_commit_moves_the_state_by_what_was_accepted() -> None:
    assert judge("D4", SEATED + "/2 2:3@64+2>68 V3").witness == [[9]]
    assert judge("D4", SEATED + "/2 2:3@64+0 V3").witness == [[9]]


def test_the_next_act_begins_where_the_commit_left() -> None:
    next_verify = "/2 2:3@64+2 V3 3:r7?@66 "
    assert judge("D4", SEATED + next_verify + "3:3@66+1 /3 V4").verdict == "clean"
    answer = judge("D4", SEATED + next_verify + "3:3@68+1 /3 V4")
    assert answer.witness == [[9, 12]]
    assert "missing from" in answer.because[0]
    assert judge("D4", SEATED + "/2 2:3@64+2 D3 3:3@65>66").witness == [[9, 11]]


def test_under_overlap_the_hosts_length_may_lag() -> None:
    """The second verify is planned with the length before the first one's result."""
    line = SEATED + "V3 3:r7?@64 /2 2:3@64+2 V4 4:r7?@66 /3 3:3@66+3 r7- -3"
    assert judge("D4", line).verdict == "clean"


def test_the_superfluous_verify_of_an_ended_request_commits_too() -> None:
    line = SEATED + "V3 3:r7?@64 /2 2:3@64+2 r7- -3 D4 /3 {} D5"
    assert judge("D4", line.format("3:r7.3@66+1")).verdict == "clean"
    assert judge("D4", line.format("")).witness == [[9, 15]]


def test_a_checkpoint_that_no_commit_wrote_follows_from_the_commit_that_never_came() -> None:
    """The verify crosses a track depth, and the spare is promoted as if it had been written."""
    line = "r7+ r7+live3 r7+spare6 P1 1:3@0 1:3@0>64 /1 V2 2:r7?6@64 /2 r7~6=128 V3 6!128n2"
    (cause,) = checked(line).findings
    assert (cause.detector, {also.detector for also in cause.also}) == ("D4", {"D2"})


def test_it_is_blind_without_plans() -> None:
    assert judge("D4", SEATED + "/2 2:3@64+2 V3", dead=["verify.plan"]).verdict == "blind"


def test_it_argues_nothing_across_lost_records() -> None:
    answer = judge("D4", SEATED + "/2 ... V3")
    assert (answer.verdict, answer.witness) == ("blind", [])


def staged(op: str, pool: int, forward: int, request: int, **more: int) -> str:
    """An act of a verify on a pipeline stage; forwards 2, 3, ... are of micro-batches 0, 1, ..."""
    said = {"pool": pool, "forward": forward, "request": request, "micro_batch": forward - 2}
    return f"{op}({','.join(f'{k}={v}' for k, v in (said | more).items())})"


def commit(pool: int, forward: int, request: int, slot: int, row: int) -> str:
    moved = {"slot": slot, "src_row": row, "depth_before": 64, "accept_len": 2, "depth": 66}
    return staged("scatter", pool, forward, request, **moved).replace(")", ",role=live)")


def test_each_stage_owes_a_commit() -> None:
    seats = "r7+ allocate(request=7,slot=3,role=live,pool=0) "
    seats += "allocate(request=7,slot=3,role=live,pool=1) V2 "  # 0 .. 3
    plans = " ".join(
        staged("verify.plan", pool, 2, 7, src_row=1, depth_before=64) for pool in (0, 1)
    )  # 4, 5
    last, first = commit(1, 2, 7, slot=3, row=1), commit(0, 2, 7, slot=3, row=1)
    answer = judge("D4", f"{seats}{plans} {last} /2 V3")
    assert answer.witness == [[4, 7]]
    assert "forward 2 of micro-batch 0, on stage 0, verify request q7" in answer.because[0]
    assert judge("D4", f"{seats}{plans} {last} {first} /2 V3").verdict == "clean"


def test_a_stage_that_waits_for_a_result_keeps_its_scratch() -> None:
    """Between a verify and its relayed result the stage computes the next micro-batch's."""

    def line(row: int, *, late: bool) -> str:
        seats = "r7+ r7+live3 r9+ r9+live5 V2 V3 "  # 0 .. 5
        own = staged("verify.plan", 0, 2, 7, src_row=1)
        other = staged("verify.plan", 0, 3, 9, src_row=row)
        relayed = staged("relay.receive", 0, 2, 7, accept_len=2)
        middle = f"{other} {relayed}" if late else f"{relayed} {other}"
        return f"{seats}{own} {middle} {commit(0, 2, 7, slot=3, row=1)} /2"

    answer = judge("D4", line(row=1, late=True))
    assert answer.witness == [[6, 7, 9]]
    assert "forward 3 of micro-batch 1 left those of request q9 there" in answer.because[0]
    assert judge("D4", line(row=2, late=True)).verdict == "clean"
    assert judge("D4", line(row=1, late=False)).verdict == "clean"


def test_a_refused_commit_is_none() -> None:
    failed = "scatter(slot=3,request=7,role=live,forward=2,accept_len=1,outcome=failed)"
    assert judge("D4", SEATED + f"{failed} /2 V3").witness == [[7, 9]]
