"""Sampling fields of a call, to a wish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slotscope.engine.request import SamplingParams

from .errors import ApiError
from .fields import Fields, shown
from .generation import Wish

STOPS_MAX = 64
STOP_CHARACTERS_MAX = 256

_SGLANG_INERT: Mapping[str, tuple[Any, ...]] = {
    "min_p": (0, 0.0),
    "frequency_penalty": (0, 0.0),
    "presence_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "min_new_tokens": (0,),
    "n": (1,),
    "logit_bias": ({},),
    "json_schema": (),
    "regex": (),
    "ebnf": (),
    "structural_tag": (),
    "stop_regex": ([],),
    "no_stop_trim": (False,),
    "spaces_between_special_tokens": (True,),
    "stream_interval": (),
    "custom_params": (),
}
"""Parameters of SGLang that this engine doesn't have, with the values that ask for nothing."""


def read_sampling_params(values: Mapping[str, Any]) -> Wish:
    """SGLang's `sampling_params`.

    Raises:
        ApiError: a wrong type, an unknown parameter, or one that this engine doesn't do.
        RequestError: a value out of range.
    """
    fields = Fields(values, "sampling_params")
    limit = fields.integer("max_new_tokens")
    wish = read_wish(fields, limit=limit, limit_default=SamplingParams().max_new_tokens)
    fields.inert(_SGLANG_INERT)
    fields.close()
    return wish


def read_wish(fields: Fields, *, limit: int | None, limit_default: int) -> Wish:
    """What SGLang's sampling parameters and OpenAI's bodies have in common.

    Args:
        fields: where temperature, top_p, top_k, stop and their like are taken from.
        limit: tokens to generate at most; None leaves `limit_default`, or what the context allows.
        limit_default: the limit of a call that gives none.
    """
    chosen: dict[str, Any] = {
        "temperature": fields.number("temperature"),
        "top_p": fields.number("top_p"),
        "top_k": fields.integer("top_k"),
        "seed": _seed(fields),
    }
    sampling = SamplingParams(
        max_new_tokens=limit_default if limit is None else limit,
        ignore_eos=fields.flag("ignore_eos", default=False),
        stop_token_ids=fields.integers("stop_token_ids"),
        **{name: value for name, value in chosen.items() if value is not None},
    )
    return Wish(
        sampling,
        limit_given=limit is not None,
        stop=_stops(fields),
        skip_special_tokens=fields.flag("skip_special_tokens", default=True),
    )


def _seed(fields: Fields) -> int | None:
    """`sampling_seed` is SGLang's name, `seed` OpenAI's."""
    names = ("sampling_seed", "seed")
    seeds = [fields.integer(name) for name in names]
    given = [(name, seed) for name, seed in zip(names, seeds, strict=True) if seed is not None]
    for name, seed in given:
        if seed < 0:
            raise fields.wrong(name, seed, "0 or more")
    return given[0][1] if given else None


def _stops(fields: Fields) -> tuple[str, ...]:
    stops = fields.texts("stop")
    if len(stops) > STOPS_MAX:
        raise ApiError(f"stop has {len(stops)} strings, but may have {STOPS_MAX}.", param="stop")
    for stop in stops:
        if not 1 <= len(stop) <= STOP_CHARACTERS_MAX:
            raise ApiError(
                f"A stop string has {len(stop)} characters ({shown(stop)}), but must have 1 to "
                f"{STOP_CHARACTERS_MAX}.",
                param="stop",
            )
    return stops
