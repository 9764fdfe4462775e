"""Ids: slot numbers that lie on a device, read without waiting for it.

A tensor on the host is read at once. One on a GPU is copied to pinned memory on the stream that
made it, and its numbers are `Pending` until the copy is seen to be done, a step later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any


class Pending:
    """A slot number that is under way from the device."""

    __slots__ = ("_then", "value")

    def __init__(self) -> None:
        self.value: int | None = None
        self._then: list[Callable[[int], None]] = []

    def then(self, act: Callable[[int], None]) -> None:
        """Call `act` with the number, once it is known."""
        self._then.append(act)

    def settle(self, value: int) -> None:
        """The number has arrived."""
        self.value = value
        waiting, self._then = self._then, []
        for act in waiting:
            act(value)


Id = int | Pending | None
"""A slot number, known or under way; None where there is no slot."""


def plain(slot: Id) -> int | None:
    """The number, if it is known by now."""
    return slot.value if isinstance(slot, Pending) else slot


def known(slot: Id, act: Callable[[int], None]) -> None:
    """Call `act` with the number: now, or when it arrives."""
    found = plain(slot)
    if found is not None:
        act(found)
    elif isinstance(slot, Pending):
        slot.then(act)


class Ids:
    """Reads slot numbers out of SGLang's tensors."""

    def __init__(self) -> None:
        self._copies: deque[tuple[Any, Any, list[Pending]]] = deque()  # done event, pinned, ids
        self._fresh: list[tuple[Any, Any, list[Pending]]] = []  # stream, pinned, ids

    def of(self, tensor: Any) -> Sequence[Id]:
        """The numbers in a tensor of any shape, flat. Numbers below 0 stand for no slot there."""
        if tensor.device.type == "cpu":
            found: list[int] = tensor.reshape(-1).tolist()
            return found
        return self._copy(tensor)

    def flush(self) -> None:
        """Mark on each stream where its copies end. Cheap where there are none."""
        if not self._fresh:
            return
        import torch

        marks: dict[Any, Any] = {}
        for stream, pinned, ids in self._fresh:
            if stream not in marks:
                marks[stream] = torch.cuda.Event()
                marks[stream].record(stream)
            self._copies.append((marks[stream], pinned, ids))
        self._fresh.clear()

    def settle(self) -> bool:
        """Take in the copies that are done, and ask for no others. Whether any were."""
        arrived = False
        while self._copies and self._copies[0][0].query():
            _, pinned, ids = self._copies.popleft()
            for pending, value in zip(ids, pinned.tolist(), strict=True):
                pending.settle(value)
            arrived = True
        return arrived

    def _copy(self, tensor: Any) -> list[Pending]:
        import torch

        flat = tensor.detach().reshape(-1)
        # In stream order the copy precedes whatever writes the tensor next, so no clone is needed.
        pinned = torch.empty(flat.shape, dtype=flat.dtype, pin_memory=True)
        pinned.copy_(flat, non_blocking=True)
        ids = [Pending() for _ in range(flat.numel())]
        self._fresh.append((torch.cuda.current_stream(flat.device), pinned, ids))
        return ids
