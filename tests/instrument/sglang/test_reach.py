"""Reach: which places of the table are there, before anything is traced."""

from __future__ import annotations

import subprocess

import pytest
from real_sglang import ENVIRONMENTS, environment, python

from slotscope.instrument.event import Op
from slotscope.instrument.sglang import reach
from slotscope.instrument.sglang.hook import Hook, When
from slotscope.instrument.sglang.table import HOOKS

HERE = "slotscope.instrument.probe"


def hook(name: str, op: Op) -> Hook:
    return Hook(f"{HERE}.{name}", When.AFTER, lambda *_: None, (op,), "something")


def test_an_operation_is_dead_where_one_of_its_places_is_gone() -> None:
    hooks = [hook("emit", Op.FREE), hook("gone", Op.FREE), hook("note", Op.MATCH)]
    found = reach.of(hooks, strict=True)
    assert (len(found.present), found.absent, found.dead) == (2, hooks[1:2], {Op.FREE})
    assert reach.of(hooks, strict=False).dead == set()


def test_a_release_is_asked_for_its_own_places_and_an_unknown_one_for_all() -> None:
    old, new = (reach.belonging(HOOKS, version) for version in ("0.5.17", "0.5.23"))
    assert {each.at for each in old} != {each.at for each in new}
    assert reach.belonging(HOOKS, "7.0.0") == list(HOOKS)


def test_without_sglang_every_place_is_named_as_gone() -> None:
    lines = reach.described("0.5.23")
    hooks = reach.belonging(HOOKS, "0.5.23")
    assert lines[0].endswith(f"0 of {len(hooks)} hooks have their place.")
    assert len([line for line in lines if line.startswith("not there: ")]) == len(hooks)
    assert lines[-1].startswith("not told in full: advance, allocate, ")


@pytest.mark.sglang
@pytest.mark.parametrize("version", ["0.5.17", "0.5.18", "0.5.21", "0.5.22", "0.5.23"])
def test_doctor_finds_every_place_of_a_release_that_was_read(version: str) -> None:
    if not python(version).exists():
        pytest.skip(f"{ENVIRONMENTS / version} is not there: SGLANG={version} make test-sglang")
    said = subprocess.run(
        [python(version), "-m", "slotscope", "doctor"],
        env=environment(release=version),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    hooks = len(reach.belonging(HOOKS, version))
    assert f"{hooks} of {hooks} hooks have their place" in said
    assert "not there" not in said
