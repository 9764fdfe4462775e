"""`slotscope run`: any SGLang command, with every process of it traced into one directory."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

PLUGINS = "SGLANG_PLUGINS"
"""SGLang's variable that restricts which plugins it loads; unset or empty is all of them."""


class RunError(RuntimeError):
    """The command can't be run under a trace."""


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD", help="Command to run.")],
    trace: Annotated[
        Path | None, typer.Option(help="Trace directory; by default one of its own in traces/.")
    ] = None,
) -> None:
    """Run a command, an SGLang server for example, and trace each process of it.

    The command is given after `--`, and must use a Python that has slotscope installed. Its output
    and its exit code are its own.

        slotscope run -- python -m sglang.launch_server --model-path Qwen/Qwen3-Next-80B-A3B

        slotscope run --trace traces/today -- python my_engine.py

        slotscope check traces/today
    """
    program = shutil.which(command[0])
    if program is None:
        raise RunError(
            f"{command[0]} is no program on the path, so nothing was started. Write the command "
            "after `--` as you would in the shell: slotscope run -- python -m sglang.launch_server"
        )
    directory = (trace or _fresh()).absolute()
    variables = environment(directory)
    directory.mkdir(parents=True, exist_ok=True)
    typer.echo(f"slotscope: tracing into {directory}", err=True)
    os.execve(program, command, variables)  # The command gets our place: signals, exit code.


def environment(directory: Path) -> dict[str, str]:
    """This process's variables, and what makes an SGLang below it trace into a directory."""
    from slotscope.instrument import probe

    variables = os.environ | {probe.ENVIRONMENT: str(directory)}
    chosen = [name for name in variables.get(PLUGINS, "").split(",") if name.strip()]
    if chosen and "slotscope" not in map(str.strip, chosen):
        variables[PLUGINS] = ",".join([*chosen, "slotscope"])
    return variables


def _fresh() -> Path:
    return Path("traces") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
