"""Loads: small work for an engine, each of which brings some faults out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from slotscope.engine.engine import Engine
from slotscope.engine.request import SamplingParams
from slotscope.engine.schedule import Arrival, play

_VOCABULARY = 100


def _prompt(length: int, seed: int) -> tuple[int, ...]:
    draw = Random(seed)
    return tuple(draw.randrange(1, _VOCABULARY) for _ in range(length))


def _greedy(tokens: int) -> SamplingParams:
    return SamplingParams(max_new_tokens=tokens, temperature=0, ignore_eos=True)


def _together(engine: Engine, asked: Sequence[tuple[Sequence[int], int]]) -> None:
    engine.generate([prompt for prompt, _ in asked], [_greedy(tokens) for _, tokens in asked])


def answers(engine: Engine) -> None:
    """Three answers at once, of different lengths, over a track depth or two; then each again."""
    asked = [(_prompt(100, 1), 100), (_prompt(70, 2), 45), (_prompt(90, 3), 60)]
    _together(engine, asked)
    _together(engine, [(prompt, 6) for prompt, _ in asked])
    _together(engine, [(_prompt(80, 4), 4)])


def abreast(engine: Engine) -> None:
    """Two prompts of one length, whose answers pass a track depth in the same step; then again."""
    asked = [(_prompt(100, 1), 40), (_prompt(100, 2), 40)]
    _together(engine, asked)
    _together(engine, asked)


def chunks(engine: Engine) -> None:
    """A prompt in many chunks, beside one that decodes; then a longer one that begins the same."""
    long = _prompt(300, 5)
    arrivals = [
        Arrival(0, "short", _prompt(70, 6), _greedy(30)),
        Arrival(3, "long", long, _greedy(4)),
        Arrival(12, "longer", (*long, *_prompt(140, 7)), _greedy(4)),
    ]
    play(engine, arrivals)
    _together(engine, [(long, 4), (_prompt(80, 4), 4)])


def ends(engine: Engine) -> None:
    """One request is aborted and one retracted while they decode; others follow."""
    arrivals = [
        Arrival(0, "aborted", _prompt(100, 1), _greedy(40), abort_turn=14),
        Arrival(0, "retracted", _prompt(100, 2), _greedy(50), retract_turn=40),
        Arrival(20, "next", _prompt(90, 3), _greedy(12)),
        Arrival(44, "last", _prompt(90, 4), _greedy(8)),
    ]
    play(engine, arrivals)
    _together(engine, [(_prompt(80, 8), 4)])


def branches(engine: Engine) -> None:
    """Prompts that part from what is cached, above and below; then each again."""
    trunk = _prompt(130, 1)
    texts = [(*trunk, *_prompt(70, 2)), (*trunk, *_prompt(90, 3)), trunk]
    for text in (*texts, *texts):
        _together(engine, [(text, 3)])


def crowds(engine: Engine) -> None:
    """Somebody resumes and decodes for long, while more prefixes come than the pool can keep; then
    what was evicted is asked for again."""
    for seed in range(3):
        _together(engine, [(_prompt(70, seed), 2)])
    arrivals = [Arrival(0, "long", _prompt(70, 2), _greedy(56))]
    arrivals += [Arrival(4 + 6 * at, f"r{at}", _prompt(70, 10 + at), _greedy(2)) for at in range(7)]
    play(engine, arrivals)
    _together(engine, [(_prompt(70, 2), 2)])
    _together(engine, [(_prompt(70, 0), 2), (_prompt(70, 10), 2)])


def marathon(engine: Engine) -> None:
    """One answer over three track depths."""
    _together(engine, [(_prompt(70, 1), 190)])


def tenants(engine: Engine) -> None:
    """One prompt in two namespaces, one after the other; then in each again."""
    for extra_key in ("one", "two", "one", "two"):
        engine.generate([_prompt(130, 1)], [_greedy(3)], extra_key=extra_key)


def queue(engine: Engine) -> None:
    """Two requests take all slots; of two that wait, one is aborted, and one is served."""
    arrivals = [Arrival(0, f"r{at}", _prompt(70, at), _greedy(20)) for at in range(2)]
    arrivals.append(Arrival(0, "aborted", _prompt(70, 8), _greedy(4), abort_turn=9))
    arrivals.append(Arrival(0, "last", _prompt(70, 3), _greedy(8)))
    play(engine, arrivals)
    _together(engine, [(_prompt(80, 9), 4)])


_ALL = (answers, abreast, chunks, ends, branches, crowds, marathon, tenants, queue)

LOADS: dict[str, Callable[[Engine], None]] = {each.__name__: each for each in _ALL}
