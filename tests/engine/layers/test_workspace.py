"""Workspaces: one block a name, as large as the largest that was taken."""

from __future__ import annotations

import torch

from slotscope.engine.layers.workspace import Workspace

LIKE = torch.empty(0)


def test_a_smaller_tensor_reuses_the_block() -> None:
    workspace = Workspace()
    large = workspace.take("keys", (3, 4), LIKE)
    assert workspace.take("keys", (2, 5), LIKE).data_ptr() == large.data_ptr()
    assert workspace.take("keys", (4, 3), LIKE).is_contiguous()


def test_a_larger_one_or_another_dtype_gets_a_new_block() -> None:
    workspace = Workspace()
    small = workspace.take("keys", (3, 4), LIKE)
    assert workspace.take("keys", (3, 5), LIKE).shape == (3, 5)
    assert workspace.take("keys", (3, 4), LIKE.double()).dtype == torch.float64
    assert small.shape == (3, 4)


def test_names_do_not_share() -> None:
    workspace = Workspace()
    keys, values = (workspace.take(name, (4,), LIKE) for name in ("keys", "values"))
    assert keys.fill_(1).sum() == 4
    values.fill_(2)
    assert keys.sum() == 4
