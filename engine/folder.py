"""Where a model lies: a folder that the user names, or the small one inside the package."""

from __future__ import annotations

from pathlib import Path

from .config import ConfigError

BUNDLED = "bundled"


def model_folder(path: Path) -> Path:
    """The folder of a model; `bundled` is the one that comes with slotscope.

    Raises:
        ConfigError: there is no such folder, or it is no model's.
    """
    if str(path) == BUNDLED:
        return Path(__file__).parent / BUNDLED
    if not path.is_dir():
        raise ConfigError(
            f"--model-path {path} is no folder. Give a Hugging Face model folder, one with "
            f"config.json and *.safetensors, or `{BUNDLED}` for the small model inside."
        )
    return path
