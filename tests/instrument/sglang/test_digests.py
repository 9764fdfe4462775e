"""Digests: level 2 tells a state's bytes where it is given to the tree, and where it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from sglang_objects import FreeList, OldReq, Rows, Told

from slotscope.instrument import probe
from slotscope.instrument.event import Kind
from slotscope.instrument.sglang import starts, tree
from slotscope.instrument.sglang.digests import Digests
from slotscope.instrument.sglang.group import Group
from slotscope.instrument.sglang.ids import Ids, plain
from slotscope.instrument.sglang.requests import Match
from slotscope.instrument.sglang.scene import Donation, Flight, Scene
from slotscope.kernels.state import digest

LABEL = 64
CHECKPOINT, LIVE = 3, 5


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Path]:
    """A trace at level 2."""
    probe.start(tmp_path / "trace", level=2, collector=False)
    yield tmp_path / "trace"
    probe.stop()


def rows_with_states(scene: Scene) -> Rows:
    """Twelve slots with random states of two layers, and a free list."""
    draw = torch.Generator().manual_seed(1)
    conv = torch.randn(2, 13, 6, 3, generator=draw).to(torch.bfloat16)
    rows = Rows(FreeList(12))
    cache = SimpleNamespace(conv=[conv], temporal=torch.randn(2, 13, 2, 4, 4, generator=draw))
    rows.mamba_pool = SimpleNamespace(mamba_cache=cache)
    return rows


def digest_of(rows: Rows, slot: int) -> int:
    cache = rows.mamba_pool.mamba_cache
    return int(digest(cache.conv[0], cache.temporal, torch.tensor([slot])))


def give(scene: Scene, rows: Rows, req: OldReq) -> None:
    """The tree files a request's checkpoint."""
    told = scene.requests.of(req)
    scene.donation = Donation(told, [CHECKPOINT], LABEL, None)  # type: ignore[arg-type]
    cache = SimpleNamespace(req_to_token_pool=rows)
    params = SimpleNamespace(key=[0] * LABEL, mamba_value=torch.tensor([CHECKPOINT]))
    looking = tree.checkpoint_filed(scene, cache, params)
    next(looking)
    with pytest.raises(StopIteration):
        looking.send(SimpleNamespace(last_device_node=7, mamba_exist=False))


def read_again(scene: Scene, rows: Rows, req: OldReq) -> None:
    """A request's first forward copies the checkpoint."""
    req.req_pool_idx, req.mamba_pool_idx = 1, torch.tensor(LIVE)
    told, live = scene.requests.of(req), scene.requests.live(req)
    assert live is not None
    told.match, told.first = Match(CHECKPOINT, 7, LABEL), "restore"
    scene.flight = Flight(1, Kind.PREFILL, 1, 0, Group([req], [told], [live]))
    forward = SimpleNamespace(
        mamba_clear_indices=None, mamba_cow_src_indices=torch.tensor([CHECKPOINT])
    )
    starts.starts_made(scene, SimpleNamespace(req_to_token_pool=rows), forward)


def told_digests(told: Told) -> list[int | None]:
    return [row["digest"] for op in ("donate", "restore") for row in told("digest", op=op)]


def test_a_checkpoint_that_nobody_touches_is_read_with_the_bytes_that_were_given(
    traced: Path, told: Told
) -> None:
    scene = Scene()
    rows = rows_with_states(scene)
    give(scene, rows, OldReq(rid="donor"))
    read_again(scene, rows, OldReq(rid="heir"))
    assert told_digests(told) == [digest_of(rows, CHECKPOINT)] * 2


def test_a_checkpoint_that_is_overwritten_in_the_tree_is_read_with_other_bytes(
    traced: Path, told: Told
) -> None:
    scene = Scene()
    rows = rows_with_states(scene)
    give(scene, rows, OldReq(rid="donor"))
    given = digest_of(rows, CHECKPOINT)
    rows.mamba_pool.mamba_cache.temporal[1, CHECKPOINT, 0, 0, 0] += 1
    read_again(scene, rows, OldReq(rid="heir"))
    assert told_digests(told) == [given, digest_of(rows, CHECKPOINT)]
    assert given != digest_of(rows, CHECKPOINT)


def test_level_1_takes_no_digests(tmp_path: Path) -> None:
    probe.start(tmp_path / "trace", collector=False)
    try:
        assert Scene().digests is None
    finally:
        probe.stop()


def test_slots_of_a_unified_pool_are_looked_up(traced: Path) -> None:
    rows = rows_with_states(Scene())
    rows.translate_mamba_indices = lambda slots: slots + 1  # type: ignore[attr-defined]
    (found,) = Digests(Ids()).of(rows, torch.tensor([CHECKPOINT]))
    assert found == digest_of(rows, CHECKPOINT + 1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_digest_sees_what_was_launched_before_it_and_waits_for_nothing(traced: Path) -> None:
    rows = rows_with_states(Scene())
    cache = rows.mamba_pool.mamba_cache
    cache.conv, cache.temporal = [cache.conv[0].cuda()], cache.temporal.cuda()
    ids = Ids()
    digests = Digests(ids)
    digests.stream = torch.cuda.Stream()
    slots = torch.tensor([CHECKPOINT], device="cuda")
    digests.warm_up(rows)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.cuda.stream(digests.stream):
            cache.temporal[:, CHECKPOINT] = 1.5
        (found,) = digests.of(rows, slots)
        with torch.cuda.stream(digests.stream):
            cache.temporal[:, CHECKPOINT] = 2.5
        ids.flush()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    ids.settle()
    cache.temporal[:, CHECKPOINT] = 1.5
    assert plain(found) == int(digest(cache.conv[0], cache.temporal, slots))
