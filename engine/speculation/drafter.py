"""What a drafter is asked. All of it runs on the device: the host may lag by a forward."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum

from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.memory import Memory
from slotscope.engine.rows import Rows

from .draft import Draft


class Omission(Enum):
    """What a drafter's verify leaves out where it bypasses the shared commit."""

    NO_COMMIT = "the verify moves no state"
    NO_CHECKPOINT = "the live state moves, and no crossing's state is saved"


class Drafter(ABC):
    """Guesses the tokens that follow a row's last one."""

    omits: Omission | None = None
    """Without `shared-commit`, as upstream before there was one. None: it commits as the others."""

    memories: tuple[Memory, ...] = ()
    """KV of its own, at the target's locations: whatever moves those moves it along."""

    def __init__(self, rows: Rows, steps: int) -> None:
        self.rows, self.steps = rows, steps

    @abstractmethod
    def draft(self, rows: Tensor) -> Draft:
        """Guesses for [B] rows, int64. The state is not touched."""

    def observe(  # noqa: B027 - most drafters need not look
        self, batch: Forward, hidden: Tensor, following: Tensor, rows: Tensor, last: Tensor
    ) -> None:
        """A prefill or verify has run.

        Args:
            batch: what it computed; of a tree the path that was taken, as a chain.
            hidden: [T, H] trunk hidden of each of its tokens.
            following: [T] int64, the token after each; beyond what was accepted, anything.
            rows: [B] its rows.
            last: [B] int64, index into T of each row's last valid token.
        """
