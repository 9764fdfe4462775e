from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from slotscope.instrument.coldwarm.comparison import Comparison
from slotscope.instrument.coldwarm.server import Answer


def answer(tokens: str, logprobs: Sequence[float] | None) -> Answer:
    return Answer("id", tuple(tokens), None if logprobs is None else tuple(logprobs), 9, 0)


def likeness(one: Answer, other: Answer) -> str:
    return Comparison.of(one, other).likeness(1e-2)


def test_equal_tokens_with_equal_logprobs_are_equal() -> None:
    compared = Comparison.of(answer("abc", [-1, -2, -3]), answer("abc", [-1, -2, -3.001]))
    assert compared.likeness(1e-2) == "equal"
    assert (compared.parted, compared.same) == (None, 3)
    assert compared.diff == pytest.approx(1e-3)


def test_equal_tokens_with_other_logprobs_differ() -> None:
    assert likeness(answer("abc", [-1, -2, -3]), answer("abc", [-1, -2, -3.1])) == "differs"


def test_what_comes_after_the_parting_does_not_count() -> None:
    compared = Comparison.of(answer("abc", [-1, -0.9, -9]), answer("axc", [-1, -0.9, -3]))
    assert (compared.parted, compared.same, compared.apart) == (1, 1, 0)
    assert compared.likeness(1e-2) == "tie"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (-0.9, -1.2),  # one of them sees its token as more likely than the other sees any
        (-0.3, -0.3),  # each is sure of another token
    ],
)
def test_a_parting_that_rounding_can_t_make_differs(mine: float, theirs: float) -> None:
    assert likeness(answer("a", [mine]), answer("x", [theirs])) == "differs"


def test_without_logprobs_tokens_decide() -> None:
    assert likeness(answer("abc", None), answer("abc", None)) == "equal"
    compared = Comparison.of(answer("abc", None), answer("abx", None))
    assert (compared.likeness(1e-2), compared.parted, compared.diff) == ("differs", 2, None)


def test_a_logprob_that_is_no_number_is_like_none_other() -> None:
    assert likeness(answer("a", [math.nan]), answer("a", [math.nan])) == "equal"
    assert likeness(answer("a", [math.nan]), answer("a", [-1])) == "differs"


def test_a_shorter_answer_parts_where_it_ends() -> None:
    compared = Comparison.of(answer("ab", [-1, -1]), answer("a", [-1]))
    assert (compared.parted, compared.likeness(1e-2)) == (1, "differs")
