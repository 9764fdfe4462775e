from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from slotscope.engine.tokenizer import Tokenizer
from slotscope.instrument import probe
from slotscope.instrument.event import Op
from tests.engine.server.parrot import Parrot
from tests.engine.server.serving import Client, serving


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_the_model_is_listed(client: Client) -> None:
    models = client.http.get("/v1/models").json()
    assert [model["id"] for model in models["data"]] == ["polly"]
    assert models["data"][0]["max_model_len"] == Parrot.context_max


def test_the_server_tells_what_it_was_told(client: Client, parrot: Parrot) -> None:
    info = client.http.get("/server_info").json()
    assert info == client.http.get("/get_server_info").json()
    assert info["mamba_track_interval"] == parrot.config.mamba_track_interval
    assert info["model_path"] == "parrot"


def test_flush_by_get_and_post(client: Client, parrot: Parrot) -> None:
    assert client.http.get("/flush_cache").status_code == 200
    assert client.http.post("/flush_cache").text == "Cache flushed.\n"
    assert parrot.flushed == 2


def test_flush_is_refused_while_requests_are_pending(
    client: Client, parrot: Parrot, pool: ThreadPoolExecutor
) -> None:
    parrot.pause()
    answer = pool.submit(client.post, "/generate", text="ab", sampling_params={})
    parrot.wait_until_asked(1)
    refusal = client.http.post("/flush_cache")
    parrot.go_on()
    assert refusal.status_code == 400
    assert "pending requests (0 running, 1 queued)" in refusal.text
    assert answer.result()["meta_info"]["completion_tokens"] == 128
    assert client.http.get("/flush_cache").status_code == 200


@pytest.mark.parametrize("by", ["client", "server"])
def test_abort_by_either_name(
    client: Client, parrot: Parrot, pool: ThreadPoolExecutor, by: str
) -> None:
    parrot.pause()
    answer = pool.submit(client.post, "/generate", text="ab", rid="mine")
    parrot.wait_until_asked(1)
    name = "mine" if by == "client" else parrot.asked[0].request_id
    assert client.post("/abort_request", rid="another") == {"aborted": []}
    assert client.post("/abort_request", rid=name) == {"aborted": [parrot.asked[0].request_id]}
    assert answer.result()["meta_info"]["finish_reason"]["type"] == "abort"
    assert client.post("/abort_request", rid=name) == {"aborted": []}


def test_abort_all(client: Client, parrot: Parrot, pool: ThreadPoolExecutor) -> None:
    parrot.pause()
    one = pool.submit(client.post, "/v1/completions", prompt="ab")
    many = pool.submit(client.stream, "/generate", text=["a", "b"])
    parrot.wait_until_asked(3)
    assert len(client.post("/abort_request", abort_all=True)["aborted"]) == 3
    assert one.result()["choices"][0]["finish_reason"] == "abort"
    assert [e["meta_info"]["finish_reason"]["type"] for e in many.result()] == ["abort"] * 2


def test_health(client: Client, parrot: Parrot) -> None:
    assert client.http.get("/health").status_code == 200
    assert parrot.asked == []
    assert client.http.get("/health_generate").status_code == 200
    assert parrot.asked[0].sampling.max_new_tokens == 1


def test_health_of_an_engine_that_is_stuck(
    client: Client, parrot: Parrot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotscope.engine.server.admin.HEALTH_TIMEOUT_S", 0.05)
    parrot.pause()
    reply = client.http.get("/health_generate")
    assert reply.status_code == 503
    assert "no token within 0.05 s" in reply.text
    parrot.wait_until_idle()


def test_an_engine_that_has_died_is_told(client: Client, parrot: Parrot) -> None:
    assert client.http.get("/health").status_code == 200
    parrot.stop()
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("/generate", {"text": ["a", "b"]}),
        ("/v1/completions", {"prompt": "a"}),
        ("/flush_cache", {}),
    )
    for path, body in cases:
        error = client.error(path, 503, **body)
        assert error["message"] == "The parrot has died. Get another."
        assert error["type"] == "server_error"
    assert client.http.get("/health_generate").status_code == 503
    assert client.metric('slotscope_requests_total{outcome="refused"}') == 0


def test_metrics_count_requests_tokens_and_slots(tokenizer: Tokenizer) -> None:
    with serving(Parrot(width=2), tokenizer) as client:
        client.post("/generate", text="abcd", sampling_params={"max_new_tokens": 4})
        client.post("/generate", text="ab.", sampling_params={"stop": "."})
        assert client.metric('slotscope_requests_total{outcome="length"}') == 1
        assert client.metric('slotscope_requests_total{outcome="stop"}') == 1
        assert client.metric('slotscope_requests_total{outcome="disconnected"}') == 0
        assert client.metric("slotscope_prompt_tokens_total") == 7
        assert client.metric("slotscope_tokens_generated_total") >= 7
        assert client.metric('slotscope_slots{state="free"}') == 5
        assert client.metric('slotscope_slots{state="pinned"}') == 2
        assert client.metric('slotscope_slots{state="cached"}') == 1
        assert client.metric("slotscope_accept_length") >= 1
        assert client.metric("slotscope_requests_running") == 0
        assert client.metric("slotscope_retractions_total") == 0
        assert client.metric("slotscope_request_latency_seconds_count") == 2
        assert client.metric("slotscope_time_to_first_token_seconds_count") == 2


def test_events_that_the_trace_lost_are_counted(client: Client, tmp_path: Path) -> None:
    assert client.metric("slotscope_events_lost_total") == 0
    probe.start(tmp_path, collector=False)
    try:
        probe.emit(Op.ADVANCE, slots=[1, 2], depth=[1])  # one depth for two slots: no record
        assert client.metric("slotscope_events_lost_total") == 2
    finally:
        probe.stop()


def test_the_engine_ends_with_the_server(tokenizer: Tokenizer) -> None:
    before = threading.active_count()
    parrot = Parrot()
    with serving(parrot, tokenizer) as client:
        assert client.http.get("/health").status_code == 200
        assert "parrot" in [thread.name for thread in threading.enumerate()]
    assert "parrot" not in [thread.name for thread in threading.enumerate()]
    assert threading.active_count() <= before + 1
