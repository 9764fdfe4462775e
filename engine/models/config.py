"""What the readers of config.json share."""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any

from .error import ModelConfigError

LINEAR, FULL = "linear_attention", "full_attention"
"""Kinds of layers, as transformers names them: with a recurrent state, and with keys and values."""

Check = tuple[str, object, bool, str]
"""A field's name, its value, whether it is good, and what it must be."""


def derived(default: Any) -> Any:
    """A field of a config that isn't read as it stands, since config.json spells it in several ways
    or leaves it to be worked out."""
    return field(default=default, metadata={"derived": True})


def plain(kind: Any, config: dict[str, Any]) -> dict[str, Any]:
    """Those fields of config dataclass `kind` that config.json spells in one way.

    Raises ModelConfigError where one has another type than its default, and where weights are
    quantized.
    """
    if config.get("quantization_config"):
        raise bad("quantization_config", config["quantization_config"], "absent")
    read: dict[str, Any] = {}
    for item in _plain(kind):
        expected, value = type(item.default), config.get(item.name, item.default)
        if expected is float and type(value) is int:
            value = float(value)
        if type(value) is not expected:
            raise bad(item.name, value, f"of type {expected.__name__}")
        read[item.name] = value
    return read


def check(config: Any, checks: tuple[Check, ...], may_be_zero: tuple[str, ...] = ()) -> None:
    """Raise ModelConfigError if a size is below 1, or one of `checks` isn't good."""
    for item in fields(config):
        value, least = getattr(config, item.name), 0 if item.name in may_be_zero else 1
        if type(value) is int and value < least:
            raise bad(item.name, value, f"at least {least}")
    for name, found, good, need in checks:
        if not good:
            raise bad(name, found, need)


def integers(config: dict[str, Any], name: str) -> tuple[int, ...]:
    """A list of integers, one integer, or null."""
    value = config.get(name)
    many = [] if value is None else value if isinstance(value, list) else [value]
    if any(type(one) is not int for one in many):
        raise bad(name, value, "an integer, a list of integers, or null")
    return tuple(many)


def kinds(name: str, types: object, layers: int, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """A list that gives each of `layers` layers one of the allowed kinds."""
    if not isinstance(types, list) or len(types) != layers or set(types) - set(allowed):
        raise bad(name, types, f"a list of {layers} of {' and '.join(map(repr, allowed))}")
    return tuple(types)


def rotary(config: dict[str, Any], part: float) -> tuple[float, float]:
    """Theta, and which part of a head turns (`part` where nothing is said).

    Old folders spread these over three fields.
    """
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise bad("rope_parameters", rope, "an object")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise bad("rope_type", kind, "'default': no scaling of positions is built")
    theta = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    part = rope.get("partial_rotary_factor", config.get("partial_rotary_factor", part))
    for name, value in (("rope_theta", theta), ("partial_rotary_factor", part)):
        if type(value) not in (int, float):
            raise bad(name, value, "a number")
    return float(theta), float(part)


def bad(name: str, value: object, need: str) -> ModelConfigError:
    """The error that names a field, its value and what it must be."""
    return ModelConfigError(
        f"config.json: {name} is {value!r}, but must be {need}. The model can't be loaded. "
        "Give a folder that this engine supports."
    )


def _plain(kind: Any) -> list[Field[Any]]:
    return [item for item in fields(kind) if not item.metadata.get("derived")]
