"""The compiled walk finds the records that the one in Python finds, whatever the bytes are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from slotscope.instrument import layout, native, probe
from slotscope.instrument.event import Op
from slotscope.instrument.segment import SegmentFile, walk

compiled = native.load_walk()
pytestmark = pytest.mark.skipif(compiled is None, reason="the walk was not built: no compiler")


def both(data: bytes) -> tuple[list[int], list[int], int]:
    """What both find."""
    assert compiled is not None
    good, bad, at = walk(data)
    assert compiled(data) == (good.tobytes(), bad.tobytes(), at)
    return good.tolist(), bad.tolist(), at


def test_both_find_the_same(tmp_path: Path) -> None:
    probe.start(tmp_path, collector=False)
    for i in range(200):
        probe.emit(Op.ADVANCE, slots=list(range(i % 7 + 1)), depth=i)
    probe.stop()
    file = SegmentFile(tmp_path / layout.segment_name(0, 0))
    path = file.path.read_bytes()[layout.SEGMENT_HEADER_DATA : file.committed[0]]
    assert len(both(path)[0]) == 201
    draw = random.Random(5)
    for _ in range(300):
        torn = bytearray(path[: draw.randrange(len(path))])
        for _ in range(draw.randrange(4) if torn else 0):
            torn[draw.randrange(len(torn))] ^= 1 << draw.randrange(8)
        both(bytes(torn))
    changed = bytearray(path)
    changed[50] ^= 1
    assert both(bytes(changed))[1] == [0]


@pytest.mark.parametrize("size", [0, 7, 39, 40, 41, 4096])
def test_bytes_that_are_no_records_are_left(size: int) -> None:
    for byte in (b"\0", b"\xff", b"a"):
        assert both(byte * size) == ([], [], 0)
