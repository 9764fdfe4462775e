"""Ends from outside: wherever a request stands, nothing stays behind, nobody is disturbed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking import greedy, random_prompt

from slotscope.engine.config import ConfigError
from slotscope.engine.engine import Engine, EngineError
from slotscope.engine.request import Delta, Request, RequestError

PROMPTS = [random_prompt(length, seed=length) for length in (40, 200, 300)]


def asked(at: int, deltas: list[Delta] | None = None, tokens: int = 30) -> Request:
    """A request for a prompt, whose deltas are kept."""
    sink = (lambda _: None) if deltas is None else deltas.append
    return Request(f"q{at}", PROMPTS[at], greedy(tokens), sink=sink)


def run_out(engine: Engine) -> None:
    """Turn the loop until it is idle, where it checks its own invariants."""
    while not engine.scheduler.idle:
        engine.turn()


@pytest.mark.parametrize("reason", ["abort", "stop"])
@pytest.mark.parametrize("drafter", ["", "NGRAM", "NEXTN"])
def test_an_end_at_any_turn_leaves_nothing_behind(
    build: Callable[..., Engine], drafter: str, reason: str
) -> None:
    engine = build(speculative_algorithm=drafter, chunked_prefill_size=128)
    plain = [request.output for request in engine.generate(PROMPTS, greedy(30))]
    engine.flush_cache()
    for turn in (0, 1, 2, 3, 5, 8):
        requests = [asked(at) for at in range(3)]
        for request in requests:
            engine.submit(request)
        for _ in range(turn):
            engine.turn()
        (engine.abort if reason == "abort" else engine.finish)("q1")
        engine.turn()
        run_out(engine)
        assert requests[1].finish_reason == reason
        assert [requests[0].output, requests[2].output] == [plain[0], plain[2]]
        assert engine.stats().slots_pinned == 0
    # What a complete answer left in the tree must be as good as what a full run leaves.
    assert [request.output for request in engine.generate(PROMPTS, greedy(30))] == plain


def test_an_end_is_told_once(build: Callable[..., Engine]) -> None:
    engine, deltas = build(), []
    engine.submit(asked(0, deltas))
    for _ in range(4):
        engine.turn()
    engine.abort("q0")
    engine.abort("q0")
    run_out(engine)
    engine.turn()
    assert [delta.finish_reason for delta in deltas if delta.finish_reason] == ["abort"]
    assert deltas[-1].finish_reason == "abort"


def test_a_stop_leaves_a_checkpoint_and_an_abort_does_not(build: Callable[..., Engine]) -> None:
    for reason, cached in (("stop", 256), ("abort", 192)):
        engine = build()
        request = asked(1, tokens=100)
        engine.submit(request)
        while len(request.output) < 70:
            engine.turn()
        engine.scheduler.end("q1", reason)
        run_out(engine)
        [again] = engine.generate([request.tokens], greedy(2))
        assert again.usage.cached_tokens == cached


def test_an_engine_that_dies_says_so(
    build: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, deltas = build(), []
    monkeypatch.setattr("threading.excepthook", lambda _: None)

    def broken() -> None:
        raise RuntimeError("the device fell off the bus")

    engine.start()
    engine._ask(broken)
    engine._thread and engine._thread.join()
    with pytest.raises(EngineError, match="fell off the bus"):
        engine.submit(asked(0, deltas))
    with pytest.raises(EngineError):
        engine.flush_cache()


@pytest.mark.parametrize(
    ("prompt", "tokens", "said"),
    [
        ((), 1, "empty"),
        ((1, 999), 1, "token 999, but the vocabulary ends at 127"),
        ((1,) * 1000, 100, "max_new_tokens to 24"),
    ],
)
def test_what_cannot_be_served_is_refused(
    build: Callable[..., Engine], prompt: tuple[int, ...], tokens: int, said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        build().submit(Request("q", prompt, greedy(tokens)))


def test_a_stopped_engine_takes_nothing_more(build: Callable[..., Engine]) -> None:
    engine, deltas = build(), []
    engine.submit(asked(0, deltas))
    engine.stop()
    assert [delta.finish_reason for delta in deltas] == ["abort"]
    with pytest.raises(EngineError, match="stopped"):
        engine.submit(asked(1))
    with pytest.raises(EngineError, match="stopped"):
        engine.flush_cache()
    engine.abort("q0")


def test_a_request_may_fill_the_context_to_its_end(build: Callable[..., Engine]) -> None:
    engine = build(page_size=48, context_length=328, speculative_algorithm="NEXTN")
    [request] = engine.generate([PROMPTS[2]], greedy(28))
    assert len(request.tokens) == 328


def test_more_than_all_kv_is_refused(build: Callable[..., Engine]) -> None:
    with pytest.raises(RequestError, match="max-total-tokens"):
        build(max_total_tokens=256).generate([PROMPTS[2]], greedy(1))


def test_a_chunk_too_small_for_a_state_is_refused(build: Callable[..., Engine]) -> None:
    with pytest.raises(ConfigError, match="chunked-prefill-size 63"):
        build(chunked_prefill_size=63)
