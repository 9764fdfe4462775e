"""The moves around a speculative step, on tables small enough to read."""

from __future__ import annotations

import torch
from sgl_kernel import speculative
from sgl_kernel.kvcacheio import copy_all_layer_kv_cache_cpu


def test_places_go_into_the_table_and_come_back() -> None:
    table = torch.zeros(3, 6, dtype=torch.int32)
    rows, starts, ends = torch.tensor([2, 0]), torch.tensor([1, 4]), torch.tensor([4, 6])
    places = torch.tensor([11, 12, 13, 21, 22])
    speculative.assign_req_to_token_pool_cpu(rows, table, starts, ends, places, 6)
    assert table.tolist() == [[0, 0, 0, 0, 21, 22], [0] * 6, [0, 11, 12, 13, 0, 0]]
    back = torch.zeros(5, dtype=torch.int64)
    speculative.assign_extend_cache_locs_cpu(rows, table, starts, ends, back, 6)
    assert torch.equal(back, places)


def test_a_draft_writes_behind_its_request_and_each_branch_sees_its_own_places() -> None:
    table = torch.arange(20, dtype=torch.int32).view(2, 10)
    rows, lengths = torch.tensor([1, 0]), torch.tensor([3, 2])
    places = torch.zeros(8, dtype=torch.int64)
    speculative.assign_draft_cache_locs_contiguous_cpu(rows, table, lengths, places, 10, 2, 2)
    assert places.tolist() == [13, 14, 15, 16, 2, 3, 4, 5]
    branches = speculative.build_draft_decode_metadata_cpu(table, rows, lengths, 2, 2, 10)
    assert [row[: n + 2].tolist() for row, n in zip(branches, (3, 3, 2, 2), strict=True)] == [
        [10, 11, 12, 13, 14],
        [10, 11, 12, 15, 16],
        [0, 1, 2, 3],
        [0, 1, 4, 5],
    ]


def test_accepted_tokens_are_found_and_packed() -> None:
    bonus = torch.zeros(2, dtype=torch.int32)
    accepted = torch.tensor([5, 6, 0, 7, 0, 0])
    speculative.fill_bonus_tokens_cpu(accepted, torch.tensor([2, 1]), bonus, 3)
    assert bonus.tolist() == [6, 7]
    packed = torch.full((6,), -9)
    index = torch.tensor([[0, 2, -1], [3, -1, -1]])
    speculative.fill_accept_out_cache_loc_cpu(index, torch.arange(30, 36), packed)
    assert packed.tolist() == [30, 32, 33, -9, -9, -9]


def test_ids_rotate_by_one_within_their_request() -> None:
    ids = torch.tensor([1, 2, 3, 4, 5])
    starts, lengths, new = torch.tensor([0, 3]), torch.tensor([3, 2]), torch.tensor([8, 9])
    speculative.rotate_input_ids_cpu(ids, starts, lengths, new)
    assert ids.tolist() == [2, 3, 8, 5, 9]
    ids = torch.tensor([1, 2, 3, 4, 5])
    speculative.rotate_input_ids_cpu(ids, starts, lengths, new, torch.tensor([1, 3]))
    assert ids.tolist() == [2, 8, 3, 9, 5]


def test_cache_rows_move_as_if_at_once() -> None:
    caches = [torch.arange(12.0).view(4, 3), torch.arange(8, dtype=torch.int64).view(4, 2)]
    before = [cache.clone() for cache in caches]
    pointers = torch.tensor([cache.data_ptr() for cache in caches])
    bytes_of_a_row = torch.tensor([12, 16])
    target, source = torch.tensor([1, 2, 0]), torch.tensor([0, 1, 2])
    copy_all_layer_kv_cache_cpu(pointers, bytes_of_a_row, target, source)
    for cache, old in zip(caches, before, strict=True):
        assert torch.equal(cache, old[[2, 0, 1, 3]])
