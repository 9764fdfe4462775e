"""Crew: the processes of all stages but the first, which is the engine's own process."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, cast

from slotscope.engine.config import EngineConfig

from .error import PipelineError

Order = tuple[str, tuple[Any, ...]]
"""A method of the scheduler, and what it is called with."""

LEAVE_S = 20
"""How long a process may take to end once its orders have ended."""


class Crew:
    """Each process is told through its stdin what comes from outside, turn by turn, and decides the
    same as the first. It ends where its orders end, so none outlives the engine."""

    def __init__(self, config: EngineConfig) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="slotscope-pp-"))
        self.rendezvous = self._folder / "rendezvous"  # where they find the first process
        self.processes: list[subprocess.Popen[bytes]] = []
        told = json.dumps(asdict(config), default=str)
        for rank in range(1, config.pp_size):
            command = [sys.executable, "-m", "slotscope.engine.pipeline.worker"]
            self.processes.append(
                subprocess.Popen(
                    [*command, str(rank), str(self.rendezvous), told], stdin=subprocess.PIPE
                )
            )

    def tell(self, orders: Sequence[Order]) -> None:
        """What came from outside since the last turn; then another turn begins.

        Raises:
            PipelineError: a process is gone.
        """
        for rank, process in enumerate(self.processes, start=1):
            try:
                pipe = cast(BinaryIO, process.stdin)
                pickle.dump(orders, pipe)
                pipe.flush()
            except OSError as error:
                raise PipelineError(
                    f"the process of stage {rank} ended with status {process.poll()}. No answer "
                    "can be completed. What it wrote to stderr says why; start the engine again."
                ) from error

    def end(self) -> None:
        """Wait until all have left."""
        for process in self.processes:
            with suppress(BrokenPipeError):  # it is gone, and did not read all
                cast(BinaryIO, process.stdin).close()
        for process in self.processes:
            try:
                process.wait(LEAVE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
