"""The live state moves by all that was drafted, not by what was accepted."""

from __future__ import annotations

import torch

from slotscope.engine.batch import Launch, Result
from slotscope.engine.faults.fault import Fault
from slotscope.engine.grids import Grids
from slotscope.engine.runner import Runner
from slotscope.engine.snapshot import Snapshot
from slotscope.engine.stage import Stage


class _Overrun(Result):
    """Tells of every drafted node as if it had been accepted."""

    __slots__ = ()

    def paths(self) -> list[list[int]]:
        width = self.accept_index.shape[1]
        return [list(range(width)) for _ in self.accept]


class _Stage(Stage):
    __slots__ = ()

    def commit(self, snapshot: Snapshot, result: Result, grids: Grids) -> None:
        width = result.accept_index.shape[1]
        every = torch.arange(width).expand_as(result.accept_index)
        whole = torch.full_like(result.accept, width)
        moved = Result(result.tokens, result.logprobs, result.before, whole, every.contiguous())
        super().commit(snapshot, moved, grids)


class _Runner(Runner):
    def run(self, launch: Launch) -> Result:
        result = super().run(launch)
        return _Overrun(
            result.tokens, result.logprobs, result.before, result.accept, result.accept_index
        )


FAULT = Fault(
    kind="K4",
    upstream="vllm #44698, #46994",
    breaks="the state is not rolled back by the tokens that were rejected",
    detector="D4",
    replaces={Runner: _Runner, Stage: _Stage},
    load="answers",
    flags={"speculative_algorithm": "NGRAM"},
)
