"""However tokens are fed to a model, the same comes out. In float64, so that nothing excuses."""

from __future__ import annotations

import random
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from slotscope.engine.forward import Track
from slotscope.engine.layers.plan import PlanError
from slotscope.engine.models.base import Model
from slotscope.engine.models.driver import Driver
from slotscope.engine.models.load import load
from slotscope.engine.models.testing import FAMILIES, SMALL, make_checkpoint

CPU = torch.device("cpu")
VOCABULARY = range(SMALL["vocab_size"])
TOKENS = random.Random(1).choices(VOCABULARY, k=150)
OTHERS = random.Random(2).choices(VOCABULARY, k=150)
close = partial(torch.testing.assert_close, rtol=0, atol=1e-11)


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("model"), family=request.param)


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load(folder, torch.float64, CPU)


@pytest.fixture
def driver(model: Model) -> Driver:
    driver = Driver(model, torch.float64)
    driver.begin(1, 2, 3)
    return driver


def same_state(driver: Driver, slot: int, other: int) -> None:
    for ours, theirs in zip(driver.state(slot), driver.state(other), strict=True):
        close(ours, theirs)


def scratch(driver: Driver, row: int, step: int) -> tuple[Tensor, Tensor]:
    return driver.memory.conv_steps[:, row, step], driver.memory.ssm_steps[:, row, step]


def greedy(driver: Driver, model: Model, slot: int) -> list[int]:
    """Eight tokens after token 5."""
    tokens = [5]
    for _ in range(8):
        tokens.append(int(model.logits(driver.decode({slot: tokens[-1]})).argmax()))
    return tokens


@pytest.mark.parametrize(
    "sizes", [(64, 1, 37, 48), (149, 1), (1, 2, 3, 4) * 15, (70, 64, 16)], ids=len
)
def test_chunks_give_what_one_prefill_gives(driver: Driver, sizes: tuple[int, ...]) -> None:
    whole = driver.prefill({1: TOKENS})
    bounds = pairwise(accumulate(sizes, initial=0))
    close(torch.cat([driver.prefill({2: TOKENS[a:b]}) for a, b in bounds]), whole)
    same_state(driver, 2, 1)


def test_decode_gives_what_prefill_gives(driver: Driver) -> None:
    whole = driver.prefill({1: TOKENS})
    close(torch.cat([driver.decode({2: token}) for token in TOKENS]), whole)
    same_state(driver, 2, 1)


def test_rows_do_not_see_each_other(driver: Driver) -> None:
    """Rows of other lengths and contexts in the batch change nothing."""
    alone = driver.prefill({1: TOKENS[:90]})
    driver.prefill({2: TOKENS[:31], 3: OTHERS[:80]})
    together = driver.prefill({3: OTHERS[80:81], 2: TOKENS[31:90]})
    close(together[1:], alone[31:])
    same_state(driver, 2, 1)

    alone = driver.decode({1: 7})
    close(driver.decode({3: 9, 2: 7})[1:], alone)
    same_state(driver, 2, 1)

    alone = driver.verify({1: [5, 6, 7]})[0]
    close(driver.verify({3: [1, 2, 3], 2: [5, 6, 7]})[1], alone)


def test_verify_scratches_what_decode_reaches(driver: Driver) -> None:
    driver.prefill({1: TOKENS[:70], 2: OTHERS[:33]})
    drafts = {1: TOKENS[70:74], 2: OTHERS[33:37]}
    before = [driver.state(slot) for slot in drafts]
    verified = driver.verify(drafts)
    for (slot, tokens), kept in zip(drafts.items(), before, strict=True):
        for now, then in zip(driver.state(slot), kept, strict=True):
            assert torch.equal(now, then)
        driver.rewind(slot, len(tokens))
    for step in range(4):
        hidden = driver.decode({slot: tokens[step] for slot, tokens in drafts.items()})
        close(verified[:, step], hidden)
        for row, slot in enumerate(drafts):
            for ours, theirs in zip(scratch(driver, row, step), driver.state(slot), strict=True):
                close(ours, theirs)


def test_each_path_of_a_tree_is_what_a_chain_would_be(driver: Driver) -> None:
    """In slot 1, the root has two children, and the second has one; in slot 2 it has three."""
    driver.prefill({1: TOKENS[:70], 2: OTHERS[:33]})
    drafts = {1: TOKENS[70:74], 2: OTHERS[33:37]}
    verified = driver.verify(drafts, pads=2, parents=[[-1, 0, 0, 2], [-1, 0, 0, 0]])
    states = {at: scratch(driver, *at) for at in ((0, 1), (0, 3), (1, 3))}
    kept = {at: tuple(part.clone() for part in both) for at, both in states.items()}
    for slot in drafts:
        driver.rewind(slot, 4)
    for row, slot, path in ((0, 1, [0, 1]), (0, 1, [0, 2, 3]), (1, 2, [0, 3])):
        chain = driver.verify({slot: [drafts[slot][node] for node in path]})
        close(verified[row, path], chain[0])
        for ours, theirs in zip(
            kept[row, path[-1]], scratch(driver, 0, len(path) - 1), strict=True
        ):
            close(ours, theirs)
        driver.rewind(slot, len(path))


def test_a_shorter_verify_leaves_later_scratch_alone(driver: Driver) -> None:
    driver.prefill({1: TOKENS[:70]})
    driver.verify({1: TOKENS[70:72]})
    assert all(part.isfinite().all() for part in scratch(driver, 0, 1))
    assert all(part.isnan().all() for part in scratch(driver, 0, 2))


@pytest.mark.parametrize("tokens", [64, 128, 140])
def test_a_track_is_the_state_of_a_prefill_that_ends_there(driver: Driver, tokens: int) -> None:
    """With 3 tokens of context before, and a row before: depths and offsets differ."""
    driver.prefill({1: TOKENS[:3], 2: TOKENS[:3]})
    chunks = {3: OTHERS[:20], 1: TOKENS[3:143]}
    driver.prefill(chunks, [Track(row=1, tokens=tokens, slot=7)])
    driver.prefill({2: TOKENS[3 : 3 + tokens]})
    same_state(driver, 7, 2)


def test_tracks_of_several_rows_and_depths(driver: Driver) -> None:
    tracks = [Track(0, 64, 7), Track(1, 64, 8), Track(0, 128, 9)]
    driver.prefill({1: TOKENS[:130], 2: OTHERS[:70]}, tracks)
    driver.begin(4, 5)
    driver.prefill({4: TOKENS[:64], 5: OTHERS[:64]})
    same_state(driver, 7, 4)
    same_state(driver, 8, 5)
    driver.prefill({4: TOKENS[64:128]})
    same_state(driver, 9, 4)


@pytest.mark.parametrize("tokens", [0, 63, 101])
def test_a_track_between_chunks_is_refused(driver: Driver, tokens: int) -> None:
    with pytest.raises(PlanError, match=f"after {tokens} in slot 7"):
        driver.prefill({1: TOKENS[:100]}, [Track(0, tokens, 7)])
    assert driver.memory.ssm[:, 7].isnan().all()


def test_padding_changes_nothing(driver: Driver) -> None:
    """Slot 0, location 0 and the last scratch row hold NaN."""
    driver.prefill({1: TOKENS[:70], 2: TOKENS[:70]})
    alone = driver.decode({1: 7})
    padded = driver.decode({2: 7}, pads=3)
    close(padded[:1], alone)
    same_state(driver, 2, 1)
    assert padded.isfinite().all()  # a sampler must be able to read the padding's logits

    alone = driver.verify({1: [3, 4, 5]})
    padded = driver.verify({2: [3, 4, 5]}, pads=3)
    close(padded[:1], alone)
    assert padded.isfinite().all()
    for component in (driver.memory.conv, driver.memory.ssm):
        assert component[:, 0].isnan().all()
    for component in (driver.memory.conv_steps, driver.memory.ssm_steps):
        assert component[:, -1].isnan().all()


def test_a_prefill_row_of_padding_touches_no_state(driver: Driver) -> None:
    alone = driver.prefill({1: TOKENS[:50]})
    padded = driver.prefill({2: TOKENS[:50]}, pads=1)
    close(padded[:50], alone)
    same_state(driver, 2, 1)
    assert driver.memory.ssm[:, 0].isnan().all()
    assert driver.memory.conv[:, 0].isnan().all()


def test_other_slots_and_locations_stay(driver: Driver, model: Model) -> None:
    before = driver.memory.keys.isnan().sum()
    driver.prefill({1: TOKENS[:70]})
    driver.decode({1: 7})
    driver.verify({1: [1, 2]})
    touched = [slot for slot in range(16) if not driver.memory.ssm[:, slot].isnan().any()]
    assert touched == [1, 2, 3]
    assert not driver.memory.ssm[:, 2].any()
    # The trunk writes one key for each token and attention layer, and leaves an MTP layer's alone.
    trunk = driver.memory.keys[: len(driver.memory.keys) - model.has_draft]
    assert before - driver.memory.keys.isnan().sum() == 73 * trunk[:, 0, 0].numel()


@pytest.mark.parametrize("missing", [1, 16, 150])
def test_a_wrong_state_gives_other_tokens(driver: Driver, model: Model, missing: int) -> None:
    """What test checkpoints promise: a state that lacks its last tokens shows in greedy tokens."""
    driver.prefill({1: TOKENS, 2: TOKENS})
    kept = TOKENS[: len(TOKENS) - missing]
    driver.begin(4)
    if kept:
        driver.prefill({4: kept})
    driver.memory.conv[:, 2], driver.memory.ssm[:, 2] = driver.state(4)
    assert greedy(driver, model, 1) != greedy(driver, model, 2)


def test_everything_is_float64(driver: Driver, model: Model, folder: Path) -> None:
    hidden = driver.prefill({1: TOKENS})
    assert model.logits(hidden).dtype == torch.float64
    narrow = Driver(load(folder, torch.float32, CPU), torch.float32)
    narrow.begin(1)
    difference = (narrow.prefill({1: TOKENS}) - hidden).abs().max()
    assert 1e-9 < difference < 1e-4


def test_bfloat16_stays_near(driver: Driver, model: Model, folder: Path) -> None:
    low = load(folder, torch.bfloat16, CPU)
    narrow = Driver(low, torch.bfloat16)
    narrow.begin(1)
    logits: list[Tensor] = []
    exact: list[Tensor] = []
    for kept, run, by in ((logits, narrow, low), (exact, driver, model)):
        kept.append(by.logits(run.prefill({1: TOKENS[:140]})))
        kept.extend(by.logits(run.decode({1: token})) for token in TOKENS[140:146])
        kept.append(by.logits(run.verify({1: TOKENS[146:]})[0]))
    assert torch.cat(logits).dtype == torch.bfloat16
    error = torch.cat(logits).double() - torch.cat(exact)
    assert error.isfinite().all()
    # Relative to their spread; a token may get other experts, so the worst one says little.
    assert error.abs().median() < 0.1 * torch.cat(exact).std()
