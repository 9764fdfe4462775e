"""P3: a spare is held only while a crossing is near."""

from __future__ import annotations

from verdicts import judge, witnesses

SEATED = "r7+ r7+live3 r7+keep5 r7+spare6 "  # 0 .. 3


def steps(first: int, count: int, plan: str = "") -> str:
    """Verifies that were launched and read; `plan` is said in each."""
    each = (f"V{n} {plan.format(n)} /{n}" for n in range(first, first + count))
    return " ".join(" ".join(each).split()) + " "


def test_a_spare_that_nothing_may_write() -> None:
    assert witnesses(
        "P3",
        SEATED + steps(1, 8),
        SEATED + steps(1, 7),
        SEATED + steps(1, 4) + "-6 " + steps(5, 8),
        SEATED + steps(1, 4) + "r7~6<5=64 " + steps(5, 8),  # it is the keep now
        SEATED + steps(1, 12, "{0}:r7?6@64"),
        SEATED + steps(1, 4, "{0}:r7?6@64") + steps(5, 8),
    ) == [[[3, 18]], [], [], [], [], [[14, 30]]]


def test_forwards_that_compute_prompts_do_not_count() -> None:
    prompts = " ".join(f"P{n} /{n}" for n in range(1, 12))
    assert judge("P3", SEATED + prompts).verdict == "clean"


def test_it_is_blind_where_plans_are_not_told() -> None:
    assert judge("P3", SEATED, dead=["verify.plan"]).verdict == "blind"
