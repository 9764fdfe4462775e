"""Flags: what `slotscope serve` and `replay` take, derived from the configuration's fields.

python -m slotscope.engine.flags > docs/flags.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from .config import EngineConfig
from .patches import PATCHES

_GROUPS: dict[str, tuple[str, ...]] = {
    "Model": ("model_path", "served_model_name", "device", "dtype", "context_length"),
    "Server": ("host", "port", "trace"),
    "Replay": ("schedule",),
    "Keys and values": ("page_size", "max_total_tokens"),
    "State slots and checkpoints": (
        "max_mamba_cache_size",
        "mamba_radix_cache_strategy",
        "mamba_track_interval",
        "disable_radix_cache",
        "enable_linear_replayssm",
        "linear_replayssm_cache_len",
        "enable_hierarchical_cache",
        "hicache_ratio",
    ),
    "Parallelism": (
        "dcp_size",
        "pp_size",
        "pp_processes",
        "tp_size",
        "dp_size",
        "disaggregation_mode",
    ),
    "Speculation": (
        "speculative_algorithm",
        "speculative_draft_model_path",
        "speculative_num_steps",
        "speculative_eagle_topk",
        "speculative_num_draft_tokens",
    ),
    "Bugs on purpose": ("without_patch", "fault", "fail_spare_slots"),
}
_OTHER_GROUP = "Batching"


@dataclass(frozen=True, slots=True)
class Flag:
    """One option of the command line."""

    name: str  # as a field of EngineConfig
    kind: Any  # Path, str, int, float, bool, or list[str] for an option that may be repeated
    default: Any  # MISSING: the option must be given
    help: str

    @property
    def option(self) -> str:
        """`--max-mamba-cache-size`."""
        return "--" + self.name.replace("_", "-")

    @property
    def required(self) -> bool:
        """It has no default."""
        return self.default is MISSING

    @property
    def group(self) -> str:
        """The heading that it stands under."""
        return next((group for group, names in _GROUPS.items() if self.name in names), _OTHER_GROUP)

    @property
    def shown_default(self) -> str:
        """The default as help and docs print it; empty if nothing is the default."""
        silent = self.required or self.default is None or self.default is False
        return "" if silent or self.default in ("", ()) else str(self.default)


_TRACE = Flag("trace", Path, None, "keep every slot event of this run in this directory")

SERVER_FLAGS = (
    Flag(
        "host", str, "127.0.0.1", "address to listen on; the default is seen by this machine only"
    ),
    Flag("port", int, 30000, "port to listen on; 0 takes a free one"),
    _TRACE,
)
"""What the server takes beside the engine's configuration."""

REPLAY_FLAGS = (
    Flag("schedule", Path, MISSING, "JSON lines: requests, and in which turn each comes"),
    _TRACE,
)
"""What a replay takes beside it."""


def flags(own: Sequence[Flag]) -> list[Flag]:
    """Those of a command: its own and the engine's, group by group."""
    hints = get_type_hints(EngineConfig)
    found = [*(_flag(field, hints[field.name]) for field in fields(EngineConfig)), *own]
    order = list(_GROUPS)
    order.insert(order.index("Server") + 1, _OTHER_GROUP)
    return sorted(found, key=lambda flag: order.index(flag.group))


def markdown() -> str:
    """`docs/flags.md`."""
    return "\n".join(_lines()) + "\n"


def _flag(field: Field[Any], kind: Any) -> Flag:
    help_ = field.metadata["help"]
    if kind == tuple[str, ...]:
        kind = list[str]
    return Flag(field.name, kind, field.default, help_)


def _lines() -> Iterator[str]:
    yield "# Flags of `slotscope serve`"
    yield ""
    yield "Made from `EngineConfig` by `python -m slotscope.engine.flags > docs/flags.md`."
    yield "Names are SGLang's where SGLang has the flag."
    group = ""
    for flag in flags(SERVER_FLAGS):
        if flag.group != group:
            group = flag.group
            yield from ("", f"## {group}", "", "| flag | default | what |", "| --- | --- | --- |")
        default = "required" if flag.required else f"`{flag.shown_default}`".replace("``", "")
        yield f"| `{flag.option}` | {default} | {flag.help} |"
    yield from ("", "## Patches", "")
    yield "Fixes of upstream bugs. All are on; `--without-patch NAME` brings the bug back."
    yield from ("", "| patch | while it is on |", "| --- | --- |")
    for name, meaning in PATCHES.items():
        yield f"| `{name}` | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(markdown())
