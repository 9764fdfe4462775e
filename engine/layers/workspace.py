"""Memory that forwards use one after another, instead of each its own."""

from __future__ import annotations

from math import prod

from torch import Tensor


class Workspace:
    """Blocks by name, grown to the largest that was ever asked for.

    On a CPU the system hands out fresh pages zeroed, one fault each, and gets them back after every
    large tensor: that costs several times what copying keys and values into them does. A block is
    its taker's until the same name is taken again, so one model runs one forward at a time.
    """

    def __init__(self) -> None:
        self._blocks: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """A packed tensor of this shape, with `like`'s dtype and device. Its content is stale."""
        size, block = prod(shape), self._blocks.get(name)
        if block is None or block.numel() < size or block.dtype != like.dtype:
            block = self._blocks[name] = like.new_empty(size)
        return block[:size].view(shape)
