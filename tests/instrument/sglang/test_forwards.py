"""Forwards: what a batch does to states is told with depths that the detectors can hold it to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sglang_objects import Batch, NewReq, OldReq, Rows, Scheduler, Told, observed, state_of

import slotscope
from slotscope.instrument import check, detectors, probe
from slotscope.instrument.event import Op
from slotscope.instrument.sglang import ends, starts, tree, verify
from slotscope.instrument.sglang.grids import Grids
from slotscope.instrument.sglang.hook import Hook, Watch, When
from slotscope.instrument.sglang.scene import Scene


class Served:
    """A scheduler of plain objects under observation, and the steps that it can take."""

    def __init__(self, scene: Scene, pool: Rows) -> None:
        class WatchedBatch(Batch):
            pass

        class WatchedScheduler(Scheduler):
            pass

        observed(scene, "ScheduleBatch", WatchedBatch)
        observed(scene, "Scheduler", WatchedScheduler)
        scene.grids, scene.reach = Grids(track=64, step=64), 8
        probe.hook("all", list(Op), live=True)
        self.scene, self.pool = scene, pool
        self._batch = WatchedBatch
        self._scheduler = WatchedScheduler

    def prefill(self, req: Any, tokens: int, start: int = 0, track: int | None = None) -> Batch:
        """Launch a chunk that leaves a checkpoint at a depth."""
        state = state_of(req)
        state.mamba_last_track_seqlen = track
        batch = self._batch([req], self.pool, prefix_lens=[start], extend_lens=[tokens])
        self.pool.alloc([req])
        batch._mamba_radix_cache_v2_req_prepare_for_extend(req)
        clears, restores = state.mamba_needs_clear, state.mamba_cow_src_index is not None
        batch._collect_deferred_mamba_cow_and_clear([req])
        batch.mamba_track_indices = self._keep(req)

        def work(_: Batch) -> None:
            planned = SimpleNamespace(
                mamba_clear_indices=[1] if clears else None,
                mamba_cow_src_indices=[1] if restores else None,
            )
            starts.starts_made(self.scene, None, planned)

        self._scheduler(work).run_batch(batch)
        return batch.copy()

    def decode(self, req: Any, after: int, target: int | None = None) -> Batch:
        """Launch a step that leaves `after` tokens, and tracks them into a slot."""
        batch = self._batch([req], self.pool, mode="decode", seq_lens_cpu=torch.tensor([after]))
        batch.mamba_track_mask_cpu = [target is not None]
        batch.mamba_track_indices = torch.tensor([target if target is not None else 0])
        self._scheduler(lambda _: None).run_batch(batch)
        return batch.copy()

    def verify(self, req: Any, *, commits: int = 1, into: int | None = None) -> Batch:
        """Launch a verify that may track into the request's kept slot, or does into another."""
        batch = self._batch([req], self.pool, mode="decode", speculative=True)

        def work(running: Batch) -> None:
            running.mamba_track_indices = self._keep(req)
            verify.targets_chosen(self.scene, None, running)
            for _ in range(commits):
                written = running.mamba_track_indices if into is None else torch.tensor([into])
                verify.state_committed(self.scene, None, None, mamba_track_indices=written)

        self._scheduler(work).run_batch(batch)
        return batch.copy()

    def read(self, batch: Batch, accepted: int | None = None) -> None:
        """The host reads a result."""

        def use() -> None:
            if accepted is not None:
                result = SimpleNamespace(num_correct_drafts_per_req_cpu=[accepted - 1])
                verify.result_resolved(self.scene, None, None, result, batch)

        self._scheduler(lambda _: None).process_batch_result(batch, use)

    def donate(self, req: Any, slot: int, label: int) -> None:
        """A running request gives a slot to the tree."""
        cache = SimpleNamespace(req_to_token_pool=self.pool, enable_mamba_extra_buffer=True)
        component = SimpleNamespace(cache=cache, int8_ckpt_pool=None)
        params = SimpleNamespace(mamba_value=torch.tensor([slot]), key=range(label))
        drive(tree.checkpoint_given(self.scene, component, req, params, 0, False), label)
        result = SimpleNamespace(last_device_node=SimpleNamespace(id=7), mamba_exist=False)
        drive(tree.checkpoint_filed(self.scene, cache, params), result)

    def match(self, req: Any, slot: int, label: int) -> None:
        """The tree points a new request at a checkpoint of node 7, and gives it a live slot."""
        params = SimpleNamespace(cow_mamba=True, req=req)
        cache = SimpleNamespace(req_to_token_pool=self.pool)
        looking = tree.checkpoint_found(self.scene, SimpleNamespace(cache=cache), params, None)
        next(looking)
        live = self.pool.mamba_allocator.alloc(1)
        assert live is not None
        state = state_of(req)
        state.mamba_pool_idx, state.mamba_cow_src_index = live[0], torch.tensor([slot])
        found = SimpleNamespace(best_match_node=7, device_prefix_len=label, host_hit_length=0)
        with pytest.raises(StopIteration):
            looking.send(found)

    def _keep(self, req: Any) -> torch.Tensor:
        state = state_of(req)
        assert state.mamba_ping_pong_track_buffer is not None
        return state.mamba_ping_pong_track_buffer[:1].clone()


def drive(looking: Any, result: Any) -> None:
    """Run an adapter around a call that returns a result."""
    next(looking)
    with pytest.raises(StopIteration):
        looking.send(result)


@pytest.fixture
def served(scene: Scene, pool: Rows) -> Served:
    return Served(scene, pool)


@pytest.fixture
def verdicts(traced: Path) -> Callable[[], dict[str, str]]:
    """State of each detector's verdict, but for those that are clean, and for those that need what
    these objects have no hooks for."""
    unseen = {"lock", "unlock", "load_back"}
    able = [each for each in detectors.load() if unseen.isdisjoint(each.needs)]

    def judge() -> dict[str, str]:
        with slotscope.open(traced) as trace:
            report = check.run(trace, able)
        return {v.detector: v.verdict for v in report.verdicts if v.verdict != "clean"}

    return judge


def test_a_first_chunk_clears_advances_and_tracks(served: Served, told: Told) -> None:
    batch = served.prefill(NewReq("a", [1] * 100), 100, track=64)
    served.read(batch)
    launch = told("order", op="forward.launch")[0]["order"]
    acts = told("op", "slot", "depth_before", "depth", "role", "step", "position")
    assert acts[3:] == [
        dict(zip(acts[0], row, strict=True))
        for row in [
            ("forward.launch", None, None, None, None, None, launch),
            ("clear", 1, None, 0, "live", None, launch),
            ("advance", 1, 0, 100, "live", None, launch),
            ("scatter", 2, None, 64, "keep", 64, launch),
            ("forward.done", None, None, None, None, None, launch),
        ]
    ]


def test_decode_tracks_where_its_mask_says_so(served: Served, told: Told) -> None:
    req = OldReq(rid="a", origin_input_ids=[1] * 63)
    served.read(served.prefill(req, 63))
    served.read(served.decode(req, 64, target=2))
    served.read(served.decode(req, 65))
    assert told("slot", "src_slot", "depth", "grid", op="copy") == [
        {"slot": 2, "src_slot": 1, "depth": 64, "grid": 64}
    ]
    assert [e["depth"] for e in told("depth", op="advance")] == [63, 64, 65]


def test_a_verify_commits_what_was_accepted_and_tracks_what_it_crossed(
    served: Served, told: Told, verdicts: Callable[[], dict[str, str]]
) -> None:
    req = NewReq("a", [1] * 62)
    served.read(served.prefill(req, 62))
    first = served.verify(req)
    second = served.verify(req)  # Launched before the first one's result is read.
    served.read(first, accepted=3)
    served.read(second, accepted=1)
    assert told("slot", "role", "depth_before", "depth", "step", op="scatter") == [
        {"slot": 1, "role": "live", "depth_before": 62, "depth": 65, "step": 2},
        {"slot": 2, "role": "spare", "depth_before": None, "depth": 64, "step": 1},
        {"slot": 1, "role": "live", "depth_before": 65, "depth": 66, "step": 0},
    ]
    assert len(told("op", op="forward.done")) == 3
    assert verdicts() == {}


def test_a_track_slot_is_the_one_that_the_commit_was_given(
    served: Served, told: Told, verdicts: Callable[[], dict[str, str]]
) -> None:
    req = NewReq("a", [1] * 62)
    served.read(served.prefill(req, 62))
    served.read(served.verify(req, into=9), accepted=3)
    assert told("slot", op="verify.plan") == [{"slot": 2}]
    assert told("slot", "depth", op="scatter") == [
        {"slot": 1, "depth": 65},
        {"slot": 9, "depth": 64},
    ]
    assert verdicts()["D10"] == "found"


def test_a_verify_of_a_tree_names_no_step_since_a_depth_is_none(
    served: Served, scene: Scene, told: Told
) -> None:
    scene.chain = False
    req = NewReq("a", [1] * 62)
    served.read(served.prefill(req, 62))
    served.read(served.verify(req), accepted=3)
    assert told("role", "depth", "step", op="scatter") == [
        {"role": "live", "depth": 65, "step": None},
        {"role": "spare", "depth": 64, "step": None},
    ]


def test_a_verify_that_commits_nothing_is_found(
    served: Served, verdicts: Callable[[], dict[str, str]]
) -> None:
    req = NewReq("a", [1] * 10)
    served.read(served.prefill(req, 10))
    served.read(served.verify(req, commits=0), accepted=2)
    served.read(served.verify(req), accepted=2)
    assert verdicts()["D4"] == "found"


@pytest.mark.parametrize("slot", [2, 3])
def test_a_donation_of_the_pending_slot_is_found_and_of_the_kept_one_is_not(
    served: Served, verdicts: Callable[[], dict[str, str]], slot: int
) -> None:
    """0.5.17 on a prompt that ends one token before a boundary: the next decode is launched, and
    moves the request's pointer to the slot that it writes, before the prefill's checkpoint is
    given away."""
    req = OldReq(rid="a", origin_input_ids=[1] * 127)
    prefill = served.prefill(req, 127, track=64)
    served.pool.mamba_allocator.alloc(1)
    decode = served.decode(req, 128, target=3)
    served.read(prefill)
    served.donate(req, slot, 64)
    served.read(decode)
    assert verdicts() == ({} if slot == 2 else {"D1": "found"})


def test_a_restore_names_the_node_that_was_matched(served: Served, told: Told) -> None:
    giver, taker = NewReq("a", [1] * 100), NewReq("b", [1] * 80)
    served.read(served.prefill(giver, 100, track=64))
    served.donate(giver, 2, 64)
    served.match(taker, 2, 64)
    served.read(served.prefill(taker, 16, start=64))
    (match,) = told("slot", "node", "label", "outcome", "request", op="match")
    assert match == {"slot": 2, "node": 7, "label": 64, "outcome": "hit", "request": 2}
    (restore,) = told("slot", "src_slot", "node", "label", "depth", op="restore")
    assert restore == {"slot": 3, "src_slot": 2, "node": 7, "label": 64, "depth": 64}


def test_a_checkpoint_that_came_from_elsewhere_is_no_finding_but_makes_blind(
    served: Served, scene: Scene, verdicts: Callable[[], dict[str, str]]
) -> None:
    Watch(scene, [Hook("all", When.BEFORE, print, tuple(Op), "everything")])
    served.pool.mamba_allocator.alloc(1)
    taker = NewReq("b", [1] * 80)
    served.match(taker, 1, 64)
    served.read(served.prefill(taker, 16, start=64))
    found = verdicts()
    assert found["D1"] == found["D2"] == "blind"
    assert "found" not in found.values()


def test_a_request_that_was_retracted_comes_back_as_another_attempt(
    served: Served, scene: Scene, told: Told, traced: Path
) -> None:
    req = NewReq("a", [1] * 10)
    served.read(served.prefill(req, 10))
    ends.request_over(scene, req)
    ends.request_again(scene, None, req)
    req.kv = type(req.kv)()
    served.read(served.prefill(req, 10))
    req.finished_reason = "stop"
    req.output_ids = [5]
    ends.request_over(scene, req)
    assert told("request", "depth", op="retract") == [{"request": 1, "depth": 10}]
    over = told("request", "depth", "label", "outcome", op="request.end")
    assert over == [{"request": 2, "depth": 10, "label": 11, "outcome": "finished"}]
    with slotscope.open(traced) as trace:
        attempts = trace.sql("SELECT request_id, attempt FROM requests ORDER BY request")
    assert attempts.to_pylist() == [
        {"request_id": "a", "attempt": 0},
        {"request_id": "a", "attempt": 1},
    ]


def test_a_model_without_recurrent_states_is_left_alone(
    served: Served, scene: Scene, told: Told
) -> None:
    batch = served._batch([NewReq("a", [1])], served.pool)
    served._scheduler(lambda _: None).run_batch(batch)
    assert told("op") == []
