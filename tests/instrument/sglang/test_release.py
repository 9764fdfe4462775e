"""Releases: which are known, and which places of the table each has."""

from __future__ import annotations

import pytest

from slotscope.instrument.sglang import release
from slotscope.instrument.sglang.table import HOOKS

KNOWN = [(0, 5, patch) for patch in range(17, 24)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.5.23", (0, 5, 23)), ("0.5.17.post2", (0, 5, 17)), ("0.6.0rc1", (0, 6, 0)), ("main", None)],
)
def test_a_version_is_read_up_to_its_patch(text: str, expected: release.Number | None) -> None:
    assert release.number(text) == expected


def test_only_releases_that_were_read_are_known() -> None:
    assert all(map(release.known, KNOWN))
    assert not any(map(release.known, [(0, 5, 16), (0, 5, 24), (0, 6, 0), None]))


@pytest.mark.parametrize("number", KNOWN, ids=release.spelled)
def test_each_release_has_one_home_of_the_tree_s_component(number: release.Number) -> None:
    places = [hook.at for hook in HOOKS if hook.belongs(number)]
    assert sum(".MambaComponent.prepare_for_caching_req" in place for place in places) == 1


def test_an_unknown_release_is_asked_for_every_place() -> None:
    assert all(hook.belongs(None) for hook in HOOKS)
