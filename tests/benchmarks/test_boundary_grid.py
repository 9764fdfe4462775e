"""Upstream's grid: 28 cells, token-identical, and restored at the depths that its table names."""

from __future__ import annotations

import pytest
from boundary_grid import cells


@pytest.mark.parametrize("exhausted", [False, True])
@pytest.mark.parametrize("drafter", ["NEXTN", ""])
def test_reuse_around_a_boundary_is_exact(drafter: str, exhausted: bool) -> None:
    grid = cells(drafter, exhausted)
    assert [cell.offset for cell in grid if not cell.same] == []
    assert max(cell.logprob_diff for cell in grid) < 1e-9
    if drafter:
        assert [cell.cached for cell in grid] == [cell.upstream_depth for cell in grid]
    else:
        assert all(cell.cached in (448, 768, 832) for cell in grid)
