"""D8: what leaves for the host tier comes back whole."""

from __future__ import annotations

from verdicts import judge, witnesses


def trip(op: str, node: int = 2, depth: int = 64, label: int = 64, **more: object) -> str:
    slot = {"offload": 5, "load_back": 6}[op]
    said = {"slot": slot, "pool": 0, "node": node, "depth": depth, "label": label} | more
    return f"{op}({','.join(f'{name}={value}' for name, value in said.items())})"


OUT, BACK = trip("offload"), trip("load_back")


def test_depth_and_label_come_back() -> None:
    assert witnesses(
        "D8",
        f"{OUT} {BACK}",
        f"{OUT} {trip('load_back', depth=128)}",
        f"{OUT} {trip('load_back', label=128)}",
        f"{OUT} {trip('offload', depth=128, label=128)} {trip('load_back', depth=128, label=128)}",
        trip("load_back", node=9),  # nobody here has taken it
    ) == [[], [[0, 1]], [[0, 1]], [], []]


def test_every_part_that_left_comes_back() -> None:
    both = f"{trip('offload', component='conv')} {trip('offload', component='ssm')}"
    conv, ssm = (trip("load_back", component=part) for part in ("conv", "ssm"))
    assert witnesses("D8", f"{both} {ssm} {conv}", f"{both} {conv}") == [[], [[1, 2]]]


def test_every_part_that_the_pool_has_leaves() -> None:
    side = "clear(slot=3,pool=0,depth=0,component=side)"
    parts = [trip("offload", component=part) for part in ("conv", "side")]
    assert witnesses("D8", f"{side} {' '.join(parts)}", f"{side} {parts[0]}", f"{side} {OUT}") == [
        [],
        [[0, 1]],
        [],
    ]


def test_the_bytes_come_back() -> None:
    out = trip("offload", digest=11)
    assert witnesses(
        "D8",
        f"{out} {trip('load_back', digest=11)}",
        f"{out} {trip('load_back', digest=12)}",
        f"{out} {BACK}",
    ) == [[], [[0, 1]], []]


def test_a_retracted_request_goes_on_with_its_own_depth() -> None:
    line = "retract(request=7,row=1,depth=90) load_back(slot=6,pool=0,request=7,depth={},label={})"
    assert witnesses("D8", line.format(90, 90), line.format(64, 64)) == [[], [[0, 1]]]


def test_it_is_clean_where_all_comes_back_and_blind_without_load_backs() -> None:
    assert judge("D8", f"{OUT} {BACK}").verdict == "clean"
    answer = judge("D8", f"{OUT} {BACK}", dead=["load_back"])
    assert answer.verdict == "blind"


def test_it_argues_nothing_across_lost_records() -> None:
    answer = judge("D8", f"{OUT} ... {trip('load_back', depth=128)}")
    assert (answer.verdict, answer.witness) == ("blind", [])
