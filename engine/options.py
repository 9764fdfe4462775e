"""Options: what the engine's commands have in common, from their flags to an engine."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from slotscope.instrument import probe

from .config import ConfigError, EngineConfig
from .flags import Flag
from .folder import BUNDLED, model_folder
from .patches import Patches

if TYPE_CHECKING:
    from .engine import Engine


def offer(command: Callable[..., None], flags: Sequence[Flag], text: str) -> None:
    """Give a command its options and its help page.

    Typer reads options off a signature, so the fields are told once, in EngineConfig.
    """
    parameters = [_parameter(flag) for flag in flags]
    command.__doc__ = text
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}


def configure(given: dict[str, Any]) -> EngineConfig:
    """The configuration that the options describe."""
    values: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in given.items()
    }
    path: Path = values["model_path"]
    Patches.without(values["without_patch"])
    if values["fault"]:
        from .faults import named  # what they break needs torch

        named(values["fault"])
    values["model_path"] = model_folder(path)
    if str(path) == BUNDLED and not values["served_model_name"]:
        values["served_model_name"] = BUNDLED
    return EngineConfig(**values)


def make_engine(config: EngineConfig) -> Engine:
    """Load the model. ConfigError where the device is not there."""
    import torch

    from .engine import Engine

    if config.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"--device {config.device}, but torch sees no CUDA device here. Set --device cpu."
        )
    return Engine(config)


@contextlib.contextmanager
def traced(directory: Path | None) -> Iterator[None]:
    """Trace into `directory` meanwhile, if there is one."""
    if directory is None:
        yield
        return
    probe.start(directory)
    try:
        yield
    finally:
        probe.stop()


@contextlib.contextmanager
def refusing(command: str) -> Iterator[None]:
    """What the user can mend is said in a line, and the command exits with 2."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("slotscope"):
            raise
        message = f"needs the package {error.name}. Install it: pip install 'slotscope[engine]'"
    except (ValueError, OSError, probe.ProbeError) as error:
        # Configuration, model folder, tokenizer, address, trace directory, schedule: each has its
        # own class and says its own cure.
        message = str(error)
    else:
        return
    typer.echo(f"slotscope {command}: {' '.join(message.split())}", err=True)
    raise typer.Exit(2)


def _parameter(flag: Flag) -> inspect.Parameter:
    """The flag as Typer reads it off a function."""
    repeatable = flag.kind == list[str]
    default = ... if flag.required else [] if repeatable else flag.default
    option = typer.Option(
        default,
        flag.option,
        help=flag.help,
        rich_help_panel=flag.group,
        show_default=bool(flag.shown_default),
        metavar="NAME" if repeatable else None,
    )
    kind = flag.kind | None if flag.default is None else flag.kind
    return inspect.Parameter(
        flag.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind
    )
