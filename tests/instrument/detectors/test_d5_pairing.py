"""D5: producer and consumer agree on forward, request, row, micro-batch, accept length and unit."""

from __future__ import annotations

from verdicts import checked, judge, witnesses

SEATED = "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>64 /1 "  # 0 .. 6
VERIFY = SEATED + "V2 2:r7?@64 "  # 7, 8
RELAY = "relay.receive(forward=2,micro_batch=0,request=7,row=7,accept_len=2) "
PIPED = SEATED + "V2m0 2:r7?@64 " + RELAY  # 7, 8, 9
COMMIT = (
    "scatter(forward=2,kind=verify,slot=3,pool=0,request=7,role=live,src_row={row},"
    "depth_before=64,accept_len={accept},depth=66,micro_batch={micro_batch}) /2"
)


def commit(row: int = 7, accept: int = 2, micro_batch: int = 0) -> str:
    return PIPED + COMMIT.format(row=row, accept=accept, micro_batch=micro_batch)


def test_a_commit_reads_the_row_the_micro_batch_and_the_result_of_its_own_verify() -> None:
    assert witnesses("D5", commit(), commit(row=8), commit(micro_batch=1), commit(accept=1)) == [
        [],
        [[8, 10]],
        [[7, 10]],
        [[9, 10]],
    ]


def test_a_commit_for_a_request_that_did_not_verify() -> None:
    answer = judge("D5", VERIFY + "/2 2:r9.3@64+2 V3")
    assert answer.witness == [[7, 10]]
    assert "not among them" in answer.because[0]
    assert witnesses("D5", VERIFY + "/2 2:3@64+2 V3", VERIFY + "2:3@64+2 /2 V3") == [[], []]


def test_a_restore_reads_what_the_requests_match_offered() -> None:
    tree = SEATED + "1:5^64 r7- 5!64n2 n2+5@64 r9+ r9.n2?5@64 r9+live4 P3 "  # .. 14
    assert witnesses(
        "D5",
        tree + "3:4<5@64n2",
        tree + "3:4<8@64n4",
        tree + "r9.n4?8@64 3:4<8@64n4",  # it was matched twice, and the second one counts
    ) == [[], [[12, 15]], []]


def test_a_track_counts_its_tokens_from_the_chunks_start() -> None:
    chunk = SEATED + "P2 2:3@64>192 scatter(forward=2,kind=prefill,slot=5,pool=0,request=7,"
    chunk += "role=keep,unit=token,step={},depth=192)"
    assert witnesses("D5", chunk.format(128), chunk.format(192)) == [[], [[8, 9]]]


def test_a_wrong_pair_explains_the_depths_that_follow() -> None:
    """Request 9's commit took the live state of request 7, whose own begins elsewhere then."""
    (cause,) = checked(
        SEATED + "r9+ r9+live4 P2 2:4@0 2:4@0>64 /2 V3 3:r7?@64 /3 3:r9.3@64+2 D4 4:3@64>65"
    ).findings
    assert cause.detector == "D5"
    assert "D4" in {also.detector for also in cause.also}


def test_it_is_blind_without_plans() -> None:
    assert judge("D5", VERIFY + "/2 2:3@64+2 V3", dead=["verify.plan"]).verdict == "blind"


def test_it_is_clean_where_all_pairs_agree() -> None:
    assert judge("D5", VERIFY + "/2 2:3@64+2 V3").verdict == "clean"


def test_it_argues_nothing_across_lost_records() -> None:
    """The lost record may be the plan of request 9."""
    answer = judge("D5", SEATED + "V2 ... 2:r7?@64 /2 2:r9.3@64+2 V3")
    assert (answer.verdict, answer.witness) == ("blind", [])


def test_each_stage_has_its_own_plan_and_scratch_row() -> None:
    """What one stage does wrong is found once, and the stage is named."""

    def line(micro_batch: int) -> str:
        said = "forward=2,request=7,kind=verify"
        plans = " ".join(
            f"verify.plan({said},pool={pool},row=7,src_row=1,micro_batch=0)" for pool in (0, 1)
        )
        commits = " ".join(
            f"scatter({said},pool={pool},slot=3,role=live,src_row=1,accept_len=2,micro_batch={of})"
            for pool, of in ((1, 0), (0, micro_batch))
        )
        return f"r7+ V2 {plans} {commits}"

    answer = judge("D5", line(micro_batch=1))
    assert answer.witness == [[1, 5]]
    assert "on stage 0 the commit" in answer.because[0]
    assert judge("D5", line(micro_batch=0)).witness == []
