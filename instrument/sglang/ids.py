"""Ids: slot numbers that lie on a device, read without waiting for it.

A tensor on the host is read at once. Those on a GPU are copied to pinned memory on the stream that
made them, all of a step in one go, and are `Pending` until the copy is seen to be done.
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
        self._wanted: dict[Any, list[tuple[Any, list[Pending]]]] = {}  # by stream: tensor, ids

    def of(self, tensor: Any, *, changes: bool = False) -> Sequence[Id]:
        """The numbers in a tensor of any shape, flat. Numbers below 0 stand for no slot there.

        Args:
            changes: SGLang may write the tensor before this step is over.
        """
        if tensor.device.type == "cpu":
            found: list[int] = tensor.reshape(-1).tolist()
            return found
        return self._want(tensor, changes)

    def flush(self) -> None:
        """Start one copy for each stream, of all that was asked for since the last one."""
        if not self._wanted:
            return
        import torch

        for stream, some in self._wanted.items():
            with torch.cuda.stream(stream):
                numbers = torch.cat([tensor for tensor, _ in some])
                pinned = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
                pinned.copy_(numbers, non_blocking=True)
                done = torch.cuda.Event()
                done.record()
            self._copies.append((done, pinned, [slot for _, ids in some for slot in ids]))
        self._wanted = {}

    def settle(self) -> bool:
        """Take in the copies that are done, and ask for no others. Whether any were."""
        arrived = False
        while self._copies and self._copies[0][0].query():
            _, pinned, ids = self._copies.popleft()
            for pending, value in zip(ids, pinned.tolist(), strict=True):
                pending.settle(value)
            arrived = True
        return arrived

    def wait(self) -> None:
        """Wait for all copies. Only where the device has nothing else to do."""
        self.flush()
        for done, _, _ in self._copies:
            done.synchronize()

    def _want(self, tensor: Any, changes: bool) -> list[Pending]:
        import torch

        flat = tensor.reshape(-1)
        ids = [Pending() for _ in range(flat.numel())]
        # In stream order a clone precedes whatever writes the tensor next.
        kept = flat.clone() if changes else flat
        stream = torch.cuda.current_stream(flat.device)
        self._wanted.setdefault(stream, []).append((kept, ids))
        return ids
