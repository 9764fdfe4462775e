"""Plans: which locations a token may look at, and what prefill rows leave behind."""

from __future__ import annotations

import torch

from slotscope.engine.forward import Forward, Track
from slotscope.engine.layers.plan import Plan, Reach
from slotscope.engine.layers.rotary import Rotary
from slotscope.engine.layers.workspace import Workspace
from slotscope.instrument.event import Kind

ROTARY = Rotary.of(100.0, 4, torch.float32, torch.device("cpu"))
HIDDEN = float("-inf")


def plan(
    kind: Kind,
    contexts: list[int],
    lengths: list[int],
    *tracks: Track,
    parents: torch.Tensor | None = None,
    ranks: int = 1,
) -> Plan:
    """Row r's token i lies at location 100 r + i + 100; the table is wider than any row."""
    total, width = sum(lengths), 10
    table = torch.zeros(len(lengths), width, dtype=torch.int64)
    for row, (context, new) in enumerate(zip(contexts, lengths, strict=True)):
        end = context + (new if parents is None else parents.shape[1])
        table[row, :end] = torch.arange(end) + 100 * (row + 1)
    zeros = torch.zeros(total, dtype=torch.int64)
    slots = torch.arange(len(lengths)) + 1
    starts = torch.tensor(contexts)
    batch = Forward(kind, zeros, zeros, lengths, starts, zeros, table, slots, None, tracks, parents)
    return Plan.of(batch, ROTARY, torch.float32, Workspace(), ranks)


def dealt(kind: Kind, contexts: list[int], lengths: list[int], ranks: int) -> tuple[Reach, ...]:
    """Of one batch, or of one row of a prefill: what is on each rank."""
    (reaches,) = plan(kind, contexts, lengths, ranks=ranks).reaches
    return reaches


def test_verify_sees_context_and_the_drafts_before() -> None:
    ((reach,),) = plan(Kind.VERIFY, [5, 1], [2, 2]).reaches
    seen = (reach.mask[:, 0] == 0).sum(-1)
    assert seen.tolist() == [[6, 7], [2, 3]]
    assert reach.mask[0, 0, 0].tolist() == [0.0] * 6 + [HIDDEN] * 4


def test_a_tree_sees_context_and_ancestors() -> None:
    """Contexts of 5 and 1 tokens; 1 and 2 follow 0, and 3 follows 1 or 2."""
    trees = torch.tensor([[-1, 0, 0, 1], [-1, 0, 0, 2]])
    ((reach,),) = plan(Kind.VERIFY, [5, 1], [4, 4], parents=trees).reaches
    seen = reach.mask[:, 0] == 0
    assert [row.nonzero().flatten().tolist() for row in seen[0]] == [
        [0, 1, 2, 3, 4, 5],
        [0, 1, 2, 3, 4, 5, 6],
        [0, 1, 2, 3, 4, 5, 7],
        [0, 1, 2, 3, 4, 5, 6, 8],
    ]
    assert seen[1, 3].nonzero().flatten().tolist() == [0, 1, 3, 4]
    assert reach.locations[1].tolist() == [200, 201, 202, 203, 204, 200, 200, 200, 200, 200]


def test_the_last_level_of_a_tree_sees_those_before() -> None:
    ((reach,),) = plan(Kind.VERIFY, [2], [2], parents=torch.tensor([[-1, -1, 1, 0]])).reaches
    seen = reach.mask[0, 0] == 0
    assert [row.nonzero().flatten().tolist() for row in seen] == [[0, 1, 3, 4], [0, 1, 2, 5]]


def test_locations_beyond_a_row_are_its_own_first() -> None:
    """The table holds 0 there, or whatever was there before: it may be NaN, and 0 * NaN is NaN."""
    ((reach,),) = plan(Kind.DECODE, [5, 1], [1, 1]).reaches
    assert reach.locations[0].tolist() == [100, 101, 102, 103, 104, 105, 100, 100, 100, 100]
    assert reach.locations[1].tolist() == [200, 201] + [200] * 8


def test_prefill_rows_have_their_own_rectangles() -> None:
    (first,), (second,) = plan(Kind.PREFILL, [0, 3], [2, 3]).reaches
    assert first.locations.tolist() == [[100, 101]]
    assert first.mask[0, 0].tolist() == [[0.0, HIDDEN], [0.0, 0.0]]
    assert second.locations.tolist() == [[200, 201, 202, 203, 204, 205]]
    assert (second.mask[0, 0] == 0).sum(-1).tolist() == [4, 5, 6]


def test_rows_carry_their_spans_slots_and_tracks() -> None:
    track = Track(row=1, tokens=3, slot=9)
    first, second = plan(Kind.PREFILL, [0, 3], [2, 3], track).rows
    assert (first.start, first.end, first.slot, first.tracks) == (0, 2, 1, ())
    assert (second.start, second.end, second.slot, second.tracks) == (2, 5, 2, (track,))
    assert plan(Kind.DECODE, [5, 1], [1, 1]).rows == ()


def test_each_rank_has_every_nth_token_and_no_other_ranks_locations() -> None:
    """Two ranks; token t lies on rank t mod 2, at half its location. The row of two tokens has one
    on each, the row of one token has none on the second rank: that is blind there."""
    first, second = dealt(Kind.DECODE, [4, 1, 0], [1, 1, 1], ranks=2)
    assert first.locations.tolist() == [[50, 51, 52, 50, 50], [100] * 5, [150] * 5]
    assert second.locations.tolist() == [[50, 51, 50, 50, 50], [100] * 5, [0] * 5]
    assert [(each.mask[:, 0, 0] == 0).sum(-1).tolist() for each in (first, second)] == [
        [3, 1, 1],
        [2, 1, 0],
    ]
    assert [each.blind.flatten().tolist() for each in (first, second)] == [
        [False, False, False],
        [False, False, True],
    ]


def test_a_rank_that_no_token_reaches_is_left_out() -> None:
    """Prefill of three tokens on eight ranks: the first one is blind on the other two."""
    reaches = dealt(Kind.PREFILL, [0], [3], ranks=8)
    assert [each.locations.tolist() for each in reaches] == [[[12]], [[12]], [[12]]]
    assert [each.blind[0, 0].tolist() for each in reaches] == [
        [False, False, False],
        [True, False, False],
        [True, True, False],
    ]
