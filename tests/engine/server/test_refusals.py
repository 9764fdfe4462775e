"""Whatever a client sends, it gets a 4xx that says what is wrong, and the engine goes on."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from slotscope.engine.server.body import BODY_BYTES_MAX
from tests.engine.server.parrot import POISON, Parrot
from tests.engine.server.serving import Client

GENERATE, COMPLETIONS, CHAT = "/generate", "/v1/completions", "/v1/chat/completions"
A = {"text": "a"}
P = {"prompt": "a"}
M = {"messages": [{"role": "user", "content": "a"}]}


def sampling(**params: Any) -> dict[str, Any]:
    return {**A, "sampling_params": params}


CASES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    (GENERATE, {}, ("neither text nor input_ids",)),
    (GENERATE, {**A, "input_ids": [1]}, ("both text and input_ids",)),
    (GENERATE, {"text": 5}, ("text is 5", "must be a string")),
    (GENERATE, {"text": ["a", None]}, ("text is None",)),
    (GENERATE, {"text": ""}, ("prompt is empty", "at least one token")),
    (GENERATE, {"text": []}, ("0 prompts", "1 to 1024")),
    (GENERATE, {"text": "a\ud800"}, ("lone surrogate (U+D800) at character 1",)),
    (GENERATE, {"input_ids": []}, ("prompt is empty",)),
    (GENERATE, {"input_ids": "a"}, ("input_ids is 'a'",)),
    (GENERATE, {"input_ids": [1, "b"]}, ("input_ids is 'b'", "an integer")),
    (GENERATE, {"input_ids": [1, True]}, ("input_ids is True",)),
    (GENERATE, {"input_ids": [1, 2.0]}, ("input_ids is 2.0",)),
    (GENERATE, {"input_ids": [[1], 2]}, ("input_ids is 2",)),
    (GENERATE, {"input_ids": [0, 264]}, ("prompt[1] is 264", "0 to 263", "tokenizer")),
    (GENERATE, {"input_ids": [-1]}, ("prompt[0] is -1",)),
    (GENERATE, {"input_ids": [10**40]}, ("an integer of 133 bits",)),
    (GENERATE, {"input_ids": [1] * 512}, ("512 tokens", "holds 512", "at most 0")),
    (GENERATE, {**A, "stream": "yes"}, ("stream is 'yes'", "true or false")),
    (GENERATE, {**A, "sampling_params": 3}, ("sampling_params is 3", "an object")),
    (GENERATE, {**A, "sampling_params": [{}, {}]}, ("list of 2", "1 prompt, no list")),
    (GENERATE, {"text": ["a", "b"], "sampling_params": [{}]}, ("list of 1", "2 prompts")),
    (GENERATE, {**A, "rid": ["x"]}, ("rid is a list of 1", "1 prompt, no list")),
    (GENERATE, {**A, "rid": 7}, ("rid is 7",)),
    (GENERATE, {**A, "rid": "x" * 257}, ("257 characters", "256")),
    (GENERATE, {**A, "max_new_tokens": 3}, ("'max_new_tokens' is an unknown field",)),
    (GENERATE, {**A, "image_data": "x"}, ("image_data", "Leave it out")),
    (GENERATE, {**A, "logprob_start_len": 0}, ("logprob_start_len is 0", "-1")),
    (GENERATE, {**A, "sampling_params": {"max_tokens": 3}}, ("Did you mean", "max_new_tokens")),
    (GENERATE, sampling(max_new_tokens=0), ("max_new_tokens is 0", "at least 1")),
    (GENERATE, sampling(max_new_tokens=512), ("1 tokens", "512 more", "513", "at most 511")),
    (GENERATE, sampling(max_new_tokens=1.5), ("max_new_tokens is 1.5",)),
    (GENERATE, sampling(temperature=-1), ("temperature is -1",)),
    (GENERATE, sampling(temperature="hot"), ("temperature is 'hot'", "a number")),
    (GENERATE, sampling(temperature=10**400), ("finite number",)),
    (GENERATE, sampling(top_p=0), ("top_p is 0",)),
    (GENERATE, sampling(top_k=0), ("top_k is 0",)),
    (GENERATE, sampling(seed=-1), ("seed is -1",)),
    (GENERATE, sampling(min_p=0.1), ("min_p is 0.1", "set it to 0")),
    (GENERATE, sampling(n=2), ("n is 2", "set it to 1")),
    (GENERATE, sampling(n=True), ("n is True",)),
    (GENERATE, sampling(regex="a*"), ("regex is 'a*'",)),
    (GENERATE, sampling(stop=[""]), ("stop string has 0 characters",)),
    (GENERATE, sampling(stop=["x" * 257]), ("257 characters",)),
    (GENERATE, sampling(stop=["x"] * 65), ("65 strings", "64")),
    (GENERATE, sampling(stop=[3]), ("stop is 3",)),
    (GENERATE, sampling(stop_token_ids=[999]), ("stop_token_ids[0] is 999",)),
    (GENERATE, sampling(stop_token_ids=[POISON]), ("out of feathers",)),
    (COMPLETIONS, {}, ("no prompt",)),
    (COMPLETIONS, {"prompt": {"a": 1}}, ("prompt is {'a': 1}",)),
    (COMPLETIONS, {"prompt": ["a", 1]}, ("prompt is 1",)),
    (COMPLETIONS, {**P, "max_tokens": 0}, ("max_tokens is 0", "at least 1")),
    (COMPLETIONS, {**P, "n": 2}, ("n is 2",)),
    (COMPLETIONS, {**P, "best_of": 3}, ("best_of is 3",)),
    (COMPLETIONS, {**P, "echo": True}, ("echo is True",)),
    (COMPLETIONS, {**P, "logprobs": 5}, ("logprobs is 5",)),
    (COMPLETIONS, {**P, "stream_options": {"usage": True}}, ("'usage'", "include_usage")),
    (COMPLETIONS, {**P, "model": ["polly"]}, ("model is ['polly']",)),
    (COMPLETIONS, {**P, "frobnicate": 1}, ("'frobnicate' is an unknown field",)),
    (CHAT, {}, ("messages is None", "at least one message")),
    (CHAT, {"messages": []}, ("messages is []",)),
    (CHAT, {"messages": ["a"]}, ("messages[0] is 'a'",)),
    (CHAT, {"messages": [{"content": "a"}]}, ("role is None", "messages[0]")),
    (CHAT, {"messages": [{"role": "user", "content": 4}]}, ("content is 4",)),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        ("messages[0].content[0]", 'type "text"'),
    ),
    (CHAT, {**M, "tools": [{"type": "function"}]}, ("tools is",)),
    (CHAT, {**M, "top_logprobs": 3}, ("top_logprobs is 3",)),
    (CHAT, {**M, "response_format": {"type": "json_object"}}, ("response_format",)),
    (CHAT, {**M, "max_completion_tokens": -4}, ("max_completion_tokens is -4",)),
    ("/abort_request", {}, ("no rid", "abort_all")),
    ("/abort_request", {"id": "a"}, ("'id' is an unknown field", "'rid'")),
]


def test_each_mistake_is_named_and_the_engine_goes_on(client: Client, parrot: Parrot) -> None:
    for path, body, said in CASES:
        error = client.error(path, **body)
        for words in said:
            assert words in error["message"], (path, body, error)
        assert error["type"] == "invalid_request_error"
        assert error["code"] == 400
    assert client.post(GENERATE, **sampling(max_new_tokens=1))["text"] == "a"
    assert client.metric('slotscope_requests_total{outcome="refused"}') == len(CASES)
    assert len(parrot.asked) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"text": NaN}', "NaN is no JSON number"),
        (b'{"text": ' + b"9" * 5000 + b"}", "no JSON"),
        (b"[1]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
    ],
)
def test_a_body_that_is_no_object_is_refused(client: Client, body: bytes, said: str) -> None:
    for path in (GENERATE, COMPLETIONS, CHAT, "/abort_request"):
        reply = client.http.post(path, content=body)
        assert reply.status_code == 400
        assert said in reply.json()["error"]["message"]


def test_a_long_body_is_not_read(client: Client) -> None:
    """By its declared length, before any of it is sent."""
    head = f"POST {GENERATE} HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY_BYTES_MAX + 1}\r\n\r\n"
    with socket.create_connection(client.address) as raw:
        raw.sendall(head.encode())
        assert raw.recv(64).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_grows_too_long_is_cut_off(client: Client) -> None:
    """In chunks, without a declared length."""
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with socket.create_connection(client.address) as raw:
        raw.sendall(f"POST {GENERATE} HTTP/1.1\r\nHost: x\r\n".encode())
        raw.sendall(b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 16 + b"1\r\n \r\n")
        assert raw.recv(64).startswith(b"HTTP/1.1 413 ")


def test_a_refusal_in_the_middle_of_a_list_ends_the_others(client: Client, parrot: Parrot) -> None:
    params = [{"max_new_tokens": 400}, {"stop_token_ids": [POISON]}]
    error = client.error(GENERATE, text=["a", "b"], sampling_params=params)
    assert "feathers" in error["message"]
    parrot.wait_until_idle()
    assert parrot.aborted == [parrot.asked[0].request_id]


def test_an_unknown_path_or_method_names_the_known(client: Client) -> None:
    reply = client.http.get("/v2/nothing")
    assert reply.status_code == 404
    assert "/generate" in reply.json()["error"]["message"]
    reply = client.http.get("/generate")
    assert reply.status_code == 405
    assert reply.headers["allow"] == "POST"
