"""StageGroup: the stage processes of a pipeline, and what they hand to each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from .error import PipelineError

T = TypeVar("T")

PATIENCE = timedelta(minutes=5)
"""How long a stage waits for another one: far beyond the longest forward."""


class StageGroup:
    """One process for each stage, by `torch.distributed`: gloo between CPUs, NCCL between GPUs.

    Every process does the same in the same turn, so that what one shares all others await.
    """

    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count
        self._sent: deque[tuple[dist.Work, Tensor]] = deque()

    @property
    def last(self) -> int:
        """Who chooses tokens."""
        return self.count - 1

    def join(self, rendezvous: Path, device: torch.device) -> None:
        """Wait until all have come.

        Args:
            rendezvous: a file that isn't there yet, through which the processes find each other.
            device: a stage's own, or one of its kind.

        Raises:
            PipelineError: some did not, or this process is in another group already.
        """
        if dist.is_initialized():
            raise PipelineError(
                "this process has a torch.distributed group already, and a pipeline of processes "
                "needs its own. Stop the other engine first, or leave --pp-processes out."
            )
        backend = "gloo" if device.type == "cpu" else "cpu:gloo,cuda:nccl"
        try:
            dist.init_process_group(
                backend, f"file://{rendezvous}", PATIENCE, self.count, self.rank
            )
        except RuntimeError as error:
            raise PipelineError(
                f"the {self.count} stage processes did not meet: {error}. What the missing ones "
                "wrote to stderr says why."
            ) from error

    def share(self, value: T | None, source: int) -> T:
        """What process `source` gave; the others give None."""
        box = [value]
        self._check(lambda: dist.broadcast_object_list(box, source))
        shared = box[0]
        assert shared is not None, "the source gives a value"
        return shared

    def send(self, hidden: Tensor) -> None:
        """Hand hidden states to the next stage, without waiting for it."""
        while self._sent and self._sent[0][0].is_completed():
            self._sent.popleft()
        work = dist.isend(hidden.contiguous(), self.rank + 1)
        assert work is not None, "this process is in the group"
        self._sent.append((work, hidden))

    def receive(self, hidden: Tensor) -> Tensor:
        """Fill [T, H] with what the stage before has sent."""
        self._check(lambda: dist.recv(hidden, self.rank - 1))
        return hidden

    def leave(self) -> None:
        """Be free for another group."""
        self._sent.clear()
        dist.destroy_process_group()

    def _check(self, act: Callable[[], object]) -> None:
        try:
            act()
        except RuntimeError as error:
            raise PipelineError(
                f"stage {self.rank} waited for another stage's process, which is gone or silent: "
                f"{error}. No answer can be completed. What that process wrote to stderr says why; "
                "start the engine again."
            ) from error
