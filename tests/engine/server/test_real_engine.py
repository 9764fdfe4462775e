"""The server over the real engine, with a random checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.models.testing import make_checkpoint
from slotscope.engine.tokenizer import Tokenizer
from tests.engine.server.serving import Client, serving
from tests.engine.server.vocabulary import write_folder

PROMPT = "The tide table of the harbour, line by line. " * 6


SERVED = [
    ("qwen3_next", ""),
    ("qwen3_next", "NGRAM"),
    ("qwen3_next", "NEXTN"),
    ("kimi_linear", "NGRAM"),
    ("granitemoehybrid", "NGRAM"),
]


@pytest.fixture(scope="module", params=SERVED, ids=" ".join)
def client(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Client]:
    family, drafter = request.param
    path = tmp_path_factory.mktemp("model")
    folder = write_folder(make_checkpoint(path, family=family, vocab_size=264, eos_token_id=256))
    engine = Engine(
        EngineConfig(
            model_path=folder,
            dtype="float64",
            context_length=1024,
            max_total_tokens=8192,
            max_running_requests=4,
            max_mamba_cache_size=24,
            mamba_track_interval=64,
            speculative_algorithm=drafter,
        )
    )
    with serving(engine, Tokenizer.load(folder)) as client:
        yield client


def greedy(client: Client, **more: Any) -> Any:
    params = {"max_new_tokens": 20, "temperature": 0, "ignore_eos": True}
    return client.post("/generate", text=PROMPT, sampling_params=params, **more)


def test_what_comes_from_the_cache_is_what_comes_without(client: Client) -> None:
    assert client.http.post("/flush_cache").status_code == 200
    cold, warm = greedy(client, return_logprob=True), greedy(client, return_logprob=True)
    assert cold["meta_info"]["cached_tokens"] == 0
    assert warm["meta_info"]["cached_tokens"] >= 64
    assert warm["output_ids"] == cold["output_ids"]
    assert len(cold["meta_info"]["output_token_logprobs"]) == 20
    for _ in range(5):  # at once after an answer, while the engine may still be about it
        assert client.http.post("/flush_cache").status_code == 200
        assert greedy(client)["meta_info"]["cached_tokens"] == 0


def test_a_salt_parts_what_is_cached_at_every_endpoint(client: Client) -> None:
    def cached(**more: Any) -> int:
        body = {"prompt": PROMPT, "max_tokens": 1, "temperature": 0} | more
        usage = client.post("/v1/completions", **body)["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    def chat_cached(**more: Any) -> int:
        messages = [{"role": "user", "content": PROMPT}]
        body = {"messages": messages, "max_tokens": 1, "temperature": 0} | more
        usage = client.post("/v1/chat/completions", **body)["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    assert greedy(client, extra_key="a" * 3)["meta_info"]["cached_tokens"] == 0
    assert greedy(client, extra_key="a" * 3)["meta_info"]["cached_tokens"] > 0
    assert cached(cache_salt="aaa") > 0
    assert cached(cache_salt="a", extra_key="aa") > 0
    assert cached(cache_salt="fresh") == 0
    assert (chat_cached(cache_salt="b"), chat_cached(cache_salt="c")) == (0, 0)
    assert chat_cached(cache_salt="b") > 0


def test_many_at_once_give_what_each_gives_alone(client: Client) -> None:
    bodies = [
        {"prompt": f"{n}. {PROMPT}", "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        for n in range(6)
    ]
    alone = [client.post("/v1/completions", **body)["choices"][0]["text"] for body in bodies]
    with ThreadPoolExecutor(6) as pool:
        streams = pool.map(lambda body: client.stream("/v1/completions", **body), bodies)
        together = ["".join(e["choices"][0]["text"] for e in events) for events in streams]
    assert together == alone


def test_a_stop_string_ends_the_request_and_frees_its_slots(client: Client) -> None:
    text = greedy(client)["text"]
    params = {"max_new_tokens": 700, "temperature": 0, "ignore_eos": True, "stop": text[3:5]}
    reply = client.post("/generate", text=PROMPT, sampling_params=params)
    assert reply["text"] == text[: text.index(text[3:5])]
    assert reply["meta_info"]["finish_reason"]["type"] == "stop"
    assert client.http.post("/flush_cache").status_code == 200
    assert client.metric('slotscope_slots{state="pinned"}') == 0
    assert client.metric('slotscope_slots{state="free"}') == 24


def test_chat_and_sampling(client: Client) -> None:
    messages = [{"role": "user", "content": "When is the tide?"}]
    body = {"messages": messages, "max_tokens": 8, "temperature": 0.8, "top_p": 0.9, "top_k": 20}
    assert client.post("/v1/chat/completions", **body)["usage"]["completion_tokens"] <= 8


def test_speculation_is_counted(client: Client, request: pytest.FixtureRequest) -> None:
    meta = greedy(client)["meta_info"]
    if "spec_verify_ct" in meta:
        assert meta["spec_accept_length"] >= 1
        assert client.metric("slotscope_accept_length") >= 1
    else:
        assert client.metric("slotscope_accept_length") == 0


def test_the_engine_s_own_errors_are_replies(client: Client) -> None:
    error = client.error("/generate", input_ids=[1] * 1024)
    assert "1024 tokens" in error["message"]
    assert client.http.get("/health_generate").status_code == 200
