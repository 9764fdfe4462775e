"""Negative controls: whole serving turns that look wrong to a careless judge, and are right."""

from __future__ import annotations

import pytest
from verdicts import checked

PREFILL = "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>255 1:5^192%64 "

CONTROLS = {
    # Forward 3 was launched before the host read the result of 2, which ended the request.
    "overlap finish": PREFILL
    + "/1 D2 2:3@255>256 D3 3:3@256>257 /2 r7- 5!192n2%64 n2+5@192 -3"
    + " r9+ r9+live3 P4 4:3@0 4:3@0>64 /3 D5 5:3@64>65 /4 /5 D6",
    # The superfluous forward's acts are said after the slot has its next tenant.
    "overlap finish, said late": PREFILL
    + "/1 V2 2:r7?@255 V3 3:r7?@255 2:3@255+2 /2 r7- 5!192n2%64 n2+5@192 -3"
    + " r9+ r9+live3 P4 4:3@0 4:3@0>64 3:r7.3@257+1 /3 D5 5:3@64>65 /4",
    # The first chunk's checkpoint goes to the tree while the second chunk is under way.
    "chunked prefill under overlap": "r7+ r7+live3 r7+keep5 r7+spare6 P1 1:3@0 1:3@0>128 1:5^128%64"
    + " P2 2:3@128>256 2:6^256%64 /1 5!128n2%64 n2+5@128 r7+spare8 /2 r7~6<5=256 D3 3:3@256>257"
    + " /3 r7- 6!256n4%64 n4+6@256 -3 -8 D4",
    # A spare is prepared, written by the crossing, promoted; the old keep goes.
    "lazy promote": PREFILL
    + "/1 r7+spare6 V2 2:r7?6@255 2:3@255+3 2:6^256%64 /2 r7~6<5=256 -5"
    + " V3 3:r7?@258 3:3@258+1 /3 r7- 6!256n2%64 n2+6@256 -3 D4",
    # No spare was to be had: the verify writes the keep, the donation waits for the right label.
    "in place, suppressed, published later": PREFILL
    + "r7+spare? V2 2:r7?5@255 /1 5!192%64x 2:3@255+2 2:5^256%64 /2 r7~5=256"
    + " V3 3:r7?@257 3:3@257+1 /3 r7- 5!256n2%64 n2+5@256 -3 D4",
    # A spare that no crossing ever wrote is given back as it is.
    "unused spare": PREFILL + "/1 r7+spare6 V2 2:r7?6@255 2:3@255+1 /2 r7- -6 5!192n2 n2+5@192 -3",
    # The tree had that prefix: the giver's slot is freed, and was never the node's.
    "donation of what the tree has": PREFILL
    + "/1 r7- 5!192n2%64 n2+5@192x r7-5 -3 r9+ r9+live5 P2 2:5@0 2:5@0>64 /2 D3",
    # The tree had it when the giver asked, so nothing was given: a forward that was launched before
    # may write the slot on.
    "donation of what the tree has, written on": PREFILL
    + "V2 2:r7?5@255 /1 donate(slot=5,request=7,role=keep,label=192,node=2,outcome=exists)"
    + " n2+5@192x r7-5 2:3@255+2 2:5^256%64 /2 D3",
    # The node's slot is evicted and reused after the restore was launched, before it was read.
    "evicted behind a restore": PREFILL
    + "/1 r7- 5!192n2 n2+5@192 -3 r9+ n2?5@192 r9+live3 P2 n2-5 -5 r8+ r8+live5 P3 3:5@0 3:5@0>64"
    + " 2:3<5@192n2 2:3@192>200 /2 /3 D4",
    # no_buffer: the tree gets a copy, at the end the live slot itself.
    "no_buffer": "r7+ r7+live3 P1 1:3@0 1:3@0>64 /1 r7+node5 :5=3@64 5!64n2 n2+5@64"
    + " D2 2:3@64>65 /2 r7- 3!65n4 n4+3@65 r9+ n4?3@65 r9+live6 P3 3:6<3@65n4 3:6@65>70 /3 D4",
    # Padding writes the pad slot in every forward, at any depth.
    "padding": PREFILL + "/1 D2 2:3@255>256 2:r0.0@0>1 /2 D3 3:r0.0@0>1 3:3@256>257 /3",
    # An aborted request's slots come back, and its id may be served again under a new number.
    "abort": PREFILL + "r7-! -3 -5 /1 r8+ r8+live3 P2 2:3@0 2:3@0>255 /2",
    # A retracted request gives up its slots and begins anew.
    "retract": PREFILL
    + "/1 D2 2:3@255>256 /2 retract(request=7,row=1,depth=256) -3 -5 D3 /3"
    + " r8+ r8+live4 r8+keep5 P4 4:4@0 4:4@0>256 4:5^256%64 /4",
    # A request locks what it resumes from; the edge above it is split meanwhile.
    "locks move down": PREFILL
    + "/1 5!192n2%64 n2+5@192 lock(node=2,request=7,label=192) r9+ r9.n2?5@192"
    + " lock(node=2,request=9,label=192) r9+live4 P2 2:4<5@192n2 2:4@192>256"
    + " split(node=3,label=128) /2 D3 3:3@255>256 3:4@256>257 /3 r7-"
    + " unlock(node=2,request=7,label=192) -3 D4 4:4@257>258 /4 r9-"
    + " unlock(node=2,request=9,label=192) -4 n2-5 -5 P5 /5 P6",
    # A checkpoint goes to the host tier, its slot is reused, and it comes back into another.
    "there and back": PREFILL
    + "/1 r7- 5!192n2 n2+5@192 -3 offload(slot=5,pool=0,node=2,depth=192,label=192) n2-5 -5 P2 /2"
    + " +node6 load_back(slot=6,pool=0,node=2,depth=192,label=192,role=node) n2+6@192"
    + " r9+ r9.n2?6@192 r9+live4 P3 3:4<6@192n2 3:4@192>200 /3",
    # The same in parts, each of which is said.
    "there and back in parts": PREFILL
    + "/1 r7- 5!192n2 n2+5@192 -3"
    + "".join(
        f" offload(slot=5,pool=0,node=2,depth=192,label=192,component={part})"
        for part in ("conv", "ssm")
    )
    + " n2-5 -5 P2 /2 +node6"
    + "".join(
        f" load_back(slot=6,pool=0,node=2,depth=192,label=192,component={part})"
        for part in ("ssm", "conv")
    ),
    # Two micro-batches in flight; each commits what was relayed for it.
    "micro-batches": "r7+ r7+live3 r8+ r8+live4 P1 1:3@0 1:3@0>64 1:4@0 1:4@0>64 /1"
    + " V2 2:r7?@64 V3 3:r8?@64"
    + " relay.receive(forward=2,micro_batch=0,request=7,row=7,accept_len=2) 2:r7.3@64+2 /2"
    + " relay.receive(forward=3,micro_batch=1,request=8,row=8,accept_len=1) 3:r8.4@64+1 /3 D4",
    # Two processes count their own forwards, requests and slots.
    "two processes": PREFILL + "/1 D2 2:3@255>256 | " + PREFILL + "/1 D2 2:3@255>256 /2",
}


@pytest.mark.parametrize("history", CONTROLS.values(), ids=CONTROLS.keys())
def test_what_is_right_is_clean_for_every_detector(history: str) -> None:
    report = checked(history)
    told = [finding.because for finding in report.findings]
    assert {v.verdict for v in report.verdicts} == {"clean"}, told


def test_a_trace_without_slots_is_blind_not_clean() -> None:
    report = checked("r7+ P1 /1 r7-")
    assert {v.verdict for v in report.verdicts} == {"blind"}
    assert report.exit_code == 2
