"""The grid: which requests finish where, and which checkpoint they may leave there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from math import lcm
from typing import Any

from .errors import GridError

OFFSETS = (-2, -1, 0, 1, 2, 16, 32)
"""Around a boundary: where a step in flight may still write a checkpoint, and well past it."""

PAGE_SIZE, INTERVAL, STATE_CHUNK = 1, 256, 64  # SGLang's defaults


class Turn(StrEnum):
    """What is asked again once the donor has ended."""

    REPEAT = "repeat"  # the donor's prompt, which ended at the offset
    CONTINUE = "continue"  # the donor's prompt and answer, which ended at the offset


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where the server's strategy may leave checkpoints, in tokens."""

    page_size: int
    interval: int
    state_chunk: int
    strategy: str  # SGLang's name; empty: not told

    @staticmethod
    def of(
        info: Mapping[str, Any], page_size: int | None, interval: int | None, state_chunk: int
    ) -> Geometry:
        """What was given, else what the server tells, else SGLang's defaults."""
        # A page of the tree spans the ranks among which decode context is split.
        told = (info.get("page_size") or PAGE_SIZE) * (info.get("dcp_size") or 1)
        geometry = Geometry(
            page_size or told,
            interval or info.get("mamba_track_interval") or INTERVAL,
            state_chunk,
            info.get("mamba_radix_cache_strategy") or "",
        )
        if min(geometry.page_size, geometry.interval, geometry.state_chunk) < 1:
            raise GridError("Page size, interval and state chunk must be at least 1 token.")
        return geometry

    def deepest(self, *, prompt: int, finish: int, asked: int) -> int:
        """The deepest checkpoint that a request of `asked` tokens may be served, in tokens.

        A finished request's state lacks its last token, and a token must be left to be computed.

        Args:
            prompt: tokens of the donor's prompt.
            finish: tokens of its prompt and answer.
            asked: tokens of the later prompt, a prefix of these.
        """
        last = min(finish, asked) - 1
        if self.strategy == "no_buffer":
            return last if asked > prompt else 0
        checkpoint = lcm(self.state_chunk, self.page_size)
        track = lcm(checkpoint, self.interval)
        return max(min(prompt, last) // checkpoint * checkpoint, last // track * track)


@dataclass(frozen=True, slots=True)
class Cell:
    """One donor and one later request."""

    index: int
    turn: Turn
    boundary: int
    offset: int
    trial: int
    prompt_tokens: int
    donor_tokens: int  # that the donor generates
    answer_tokens: int  # that the later request generates

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.turn} {self.boundary}{self.offset:+d}"


def cells(
    boundaries: Sequence[int],
    *,
    offsets: Iterable[int] = OFFSETS,
    turns: Iterable[Turn] = tuple(Turn),
    trials: int = 1,
    prompt: int | None = None,
    interval: int,
    answer: int = 32,
) -> tuple[Cell, ...]:
    """The grid, trial by trial.

    Args:
        boundaries: depths around which requests finish; none stands for twice the interval.
        prompt: tokens of the prompts that are continued; None: half an interval and a token
            before the boundary, so that the boundary is crossed while decoding.
    Raises:
        GridError: a cell would have no prompt, or no answer.
    """
    made: list[Cell] = []
    for trial, turn, boundary, offset in product(
        range(trials), turns, boundaries or (2 * interval,), offsets
    ):
        end = boundary + offset
        size = prompt or boundary - interval // 2 - 1
        prompt_tokens, donor = (end, answer) if turn is Turn.REPEAT else (size, end - size)
        if min(prompt_tokens, donor, answer) < 1 or (turn is Turn.REPEAT and end < 2):
            raise GridError(
                f"The cell {turn} {boundary}{offset:+d} has a prompt of {prompt_tokens} tokens and "
                f"{donor} generated ones; it needs both. Raise --boundary, or lower --prompt."
            )
        made.append(Cell(len(made), turn, boundary, offset, trial, prompt_tokens, donor, answer))
    if not made:
        raise GridError("The grid is empty. Give at least one offset, one turn and one trial.")
    return tuple(made)
