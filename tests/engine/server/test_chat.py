from __future__ import annotations

from slotscope.engine.tokenizer import Tokenizer
from tests.engine.server.parrot import Parrot
from tests.engine.server.serving import Client, serving
from tests.engine.server.vocabulary import make_core

PATH = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]
IM_START, IM_END = 257, 258


def test_the_model_sees_its_chat_template(client: Client, parrot: Parrot) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *HELLO]
    client.post(PATH, messages=messages, max_tokens=1)
    assert parrot.asked[0].prompt == (
        *(IM_START, *b"system\nBe brief.", IM_END, *b"\n"),
        *(IM_START, *b"user\nhello", IM_END, *b"\n"),
        *(IM_START, *b"assistant\n"),
    )


def test_a_message_has_openai_s_form(client: Client) -> None:
    reply = client.post(PATH, messages=HELLO, max_tokens=5, temperature=0)
    assert reply["object"] == "chat.completion"
    choice = reply["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "user"}
    assert choice["finish_reason"] == "length"
    assert reply["usage"]["prompt_tokens_details"] == {"cached_tokens": 8}


def test_the_limit_has_two_names_and_the_context_is_the_default(client: Client) -> None:
    for body in ({"max_tokens": 3}, {"max_completion_tokens": 3, "max_tokens": 9}):
        assert client.post(PATH, messages=HELLO, **body)["usage"]["completion_tokens"] == 3
    usage = client.post(PATH, messages=HELLO)["usage"]
    assert usage["total_tokens"] == Parrot.context_max


def test_content_may_be_text_parts(client: Client, parrot: Parrot) -> None:
    parts = [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]
    client.post(PATH, messages=[{"role": "user", "content": parts}], max_tokens=1)
    client.post(PATH, messages=HELLO, max_tokens=1)
    assert parrot.asked[0].prompt == parrot.asked[1].prompt


def test_template_options_reach_the_template(client: Client, parrot: Parrot) -> None:
    client.post(PATH, messages=HELLO, max_tokens=1, chat_template_kwargs={"mood": "glad"})
    assert bytes(t for t in parrot.asked[0].prompt if t < 256).endswith(b"(glad)assistant\n")


def test_a_stream_begins_with_the_role_and_ends_with_the_reason(client: Client) -> None:
    body = {"messages": HELLO, "max_tokens": 6, "stop": "er"}
    whole = client.post(PATH, **body)["choices"][0]
    assert whole["message"]["content"] == "us"
    events = client.stream(PATH, **body, stream_options={"include_usage": True})
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    assert "".join(delta.get("content", "") for delta in deltas) == "us"
    assert events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-2]["choices"][0]["matched_stop"] == "er"
    assert events[-1]["usage"]["completion_tokens"] == 5
    assert {event["object"] for event in events} == {"chat.completion.chunk"}


def test_logprobs_name_each_token_and_its_bytes(client: Client) -> None:
    body = {"messages": [{"role": "é", "content": ""}], "max_tokens": 3, "logprobs": True}
    content = client.post(PATH, **body)["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in content] == ["<|im_start|>", "\ufffd", "\ufffd"]
    assert [entry["bytes"] for entry in content] == [list(b"<|im_start|>"), None, None]
    assert content[0]["logprob"] == -0.5
    parts = [e["choices"][0]["logprobs"] for e in client.stream(PATH, **body)]
    assert sum((part["content"] for part in parts if part), []) == content


def test_what_the_template_refuses_is_told(client: Client) -> None:
    error = client.error(PATH, messages=[{"role": "bishop", "content": "b4"}])
    assert "a bishop has no part" in error["message"]
    assert error["param"] == "messages"


def test_a_model_without_a_template_has_no_chat(parrot: Parrot) -> None:
    with serving(parrot, Tokenizer(make_core())) as client:
        assert "/v1/completions" in client.error(PATH, messages=HELLO)["message"]
        assert client.post("/v1/completions", prompt="a", max_tokens=1)["choices"]
