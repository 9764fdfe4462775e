"""What a drafter is asked. All of it runs on the device: the host may lag by a forward."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.rows import Rows

from .draft import Draft


class Drafter(ABC):
    """Guesses the tokens that follow a row's last one."""

    commits_alone: bool = False
    """Upstream, this drafter had its own commit before there was a shared one. It had none."""

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
