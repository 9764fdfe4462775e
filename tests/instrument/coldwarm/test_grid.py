from __future__ import annotations

import pytest

from slotscope.instrument.coldwarm.errors import GridError
from slotscope.instrument.coldwarm.grid import Geometry, Turn, cells

SEED = Geometry(page_size=1, interval=64, state_chunk=64, strategy="extra_buffer_lazy")


@pytest.mark.parametrize(
    ("finish", "deepest"), [(830, 768), (832, 768), (833, 832), (848, 832), (864, 832)]
)
def test_a_continuation_is_served_what_decode_left(finish: int, deepest: int) -> None:
    """A sequence of 832 tokens has a state of 831: its last token was never fed."""
    assert SEED.deepest(prompt=500, finish=finish, asked=finish) == deepest


def test_a_repeat_must_leave_a_token_to_compute() -> None:
    assert SEED.deepest(prompt=255, finish=300, asked=255) == 192
    assert SEED.deepest(prompt=256, finish=300, asked=256) == 192
    assert SEED.deepest(prompt=257, finish=300, asked=257) == 256


def test_a_page_coarsens_both_grids() -> None:
    paged = Geometry(page_size=128, interval=64, state_chunk=64, strategy="")
    assert paged.deepest(prompt=200, finish=260, asked=200) == 128
    assert paged.deepest(prompt=100, finish=200, asked=200) == 128
    assert paged.deepest(prompt=100, finish=128, asked=128) == 0


def test_no_buffer_has_no_grid() -> None:
    bare = Geometry(page_size=1, interval=64, state_chunk=64, strategy="no_buffer")
    assert bare.deepest(prompt=100, finish=131, asked=131) == 130
    assert bare.deepest(prompt=100, finish=131, asked=100) == 0


def test_what_is_given_goes_before_what_the_server_tells() -> None:
    info = {"page_size": 16, "mamba_track_interval": None}
    assert Geometry.of(info, None, None, 64) == Geometry(16, 256, 64, "")
    assert Geometry.of(info | {"dcp_size": 4}, None, None, 64).page_size == 64
    assert Geometry.of(info, 4, 128, 32) == Geometry(4, 128, 32, "")


def test_the_grid_of_the_table_that_it_follows() -> None:
    plan = cells([832], turns=[Turn.CONTINUE], prompt=500, interval=64)
    assert [cell.prompt_tokens + cell.donor_tokens - 832 for cell in plan] == [
        *(-2, -1, 0, 1, 2),
        *(16, 32),
    ]
    assert {cell.prompt_tokens for cell in plan} == {500}


def test_repeats_end_their_prompt_at_the_offset() -> None:
    plan = cells([], offsets=[-1, 1], turns=[Turn.REPEAT], trials=2, interval=256, answer=8)
    assert [cell.prompt_tokens for cell in plan] == [511, 513, 511, 513]
    assert [cell.index for cell in plan] == [0, 1, 2, 3]
    assert {cell.donor_tokens for cell in plan} == {8}


@pytest.mark.parametrize(
    ("boundary", "prompt", "said"),
    [(64, 70, "a prompt of 70 tokens and -8 generated"), (1, None, "a prompt of -1 tokens")],
)
def test_cells_that_can_t_be_are_refused(boundary: int, prompt: int | None, said: str) -> None:
    turn = Turn.CONTINUE if prompt else Turn.REPEAT
    with pytest.raises(GridError, match=said):
        cells([boundary], turns=[turn], prompt=prompt, interval=64)
