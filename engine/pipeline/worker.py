"""The process of one stage: `python -m slotscope.engine.pipeline.worker RANK RENDEZVOUS CONFIG`.

It is started by a `Crew`, and reads from stdin what the first stage's process was asked.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any, BinaryIO

import torch

from slotscope.engine.assemble import assemble
from slotscope.engine.attempts import begin_attempt
from slotscope.engine.config import EngineConfig
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument import probe

from .group import StageGroup


def main(arguments: list[str]) -> None:
    """Turn with the first stage until it has no more orders."""
    rank, rendezvous, told = arguments
    config = _config(json.loads(told))
    probe.start_from_environment()
    group = StageGroup(int(rank), config.pp_size)
    scheduler = assemble(config, group).scheduler
    group.join(Path(rendezvous), torch.device(config.device))
    try:
        _follow(scheduler, sys.stdin.buffer)
    finally:
        group.leave()
        probe.stop()


def _follow(scheduler: Scheduler, orders: BinaryIO) -> None:
    while True:
        try:
            turn = pickle.load(orders)
        except EOFError:
            return
        for name, given in turn:
            if name == "add":
                begin_attempt(*given)  # its number is one of this process
            getattr(scheduler, name)(*given)
        scheduler.step()
        scheduler.retire.ended.clear()


def _config(fields: dict[str, Any]) -> EngineConfig:
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return EngineConfig(**fields | lists | {"model_path": Path(fields["model_path"])})


if __name__ == "__main__":
    main(sys.argv[1:])
