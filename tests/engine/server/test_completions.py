from __future__ import annotations

import pytest

from slotscope.engine.tokenizer import Tokenizer
from tests.engine.server.parrot import Parrot
from tests.engine.server.serving import Client, serving

PATH = "/v1/completions"


def test_a_completion_has_openai_s_form(client: Client, parrot: Parrot) -> None:
    reply = client.post(PATH, model="polly", prompt="tide at nine", max_tokens=4)
    assert reply["id"] == parrot.asked[0].request_id
    assert reply["object"] == "text_completion"
    assert reply["model"] == "polly"
    assert reply["choices"] == [
        {
            "index": 0,
            "text": "tide",
            "logprobs": None,
            "finish_reason": "length",
            "matched_stop": None,
        }
    ]
    assert reply["usage"] == {
        "prompt_tokens": 12,
        "completion_tokens": 4,
        "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 8},
    }


def test_sixteen_tokens_are_openai_s_default(client: Client) -> None:
    assert client.post(PATH, prompt="a")["usage"]["completion_tokens"] == 16


def test_each_prompt_of_a_list_gets_a_choice(client: Client) -> None:
    for prompts in (["ab", "cd"], [[97, 98], [99, 100]]):
        reply = client.post(PATH, prompt=prompts, max_tokens=3)
        assert [(c["index"], c["text"]) for c in reply["choices"]] == [(0, "aba"), (1, "cdc")]
        assert reply["usage"]["prompt_tokens"] == 4


def test_token_ids_are_a_prompt(client: Client) -> None:
    assert client.post(PATH, prompt=[104, 105], max_tokens=2)["choices"][0]["text"] == "hi"


def test_a_stop_string_ends_it(client: Client) -> None:
    choice = client.post(PATH, prompt="a, b", stop=[","], max_tokens=9)["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["matched_stop"]) == ("a", "stop", ",")


def test_logprobs_are_those_of_the_chosen_tokens(client: Client) -> None:
    choice = client.post(PATH, prompt="ab", max_tokens=3, logprobs=1)["choices"][0]
    assert choice["logprobs"] == {
        "tokens": ["a", "b", "a"],
        "token_logprobs": [-0.5, -0.5, -0.5],
        "top_logprobs": None,
        "text_offset": [0, 1, 2],
    }


@pytest.mark.parametrize("width", [1, 3])
def test_a_stream_adds_up_to_the_whole_reply(tokenizer: Tokenizer, width: int) -> None:
    with serving(Parrot(width=width), tokenizer) as client:
        body = {"prompt": ["né, ", "xy"], "max_tokens": 7, "logprobs": 0, "stop": ["yx!"]}
        events = client.stream(PATH, **body, stream_options={"include_usage": True})
        whole = client.post(PATH, **body)
    for choice in whole["choices"]:
        parts = [c for event in events for c in event["choices"] if c["index"] == choice["index"]]
        assert "".join(part["text"] for part in parts) == choice["text"]
        for key in ("tokens", "token_logprobs", "text_offset"):
            assert sum((part["logprobs"][key] for part in parts), []) == choice["logprobs"][key]
        assert [p["finish_reason"] for p in parts] == [None] * (len(parts) - 1) + ["length"]
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == whole["usage"]
    assert all(event["usage"] is None for event in events[:-1])


def test_a_stream_has_usage_only_when_asked(client: Client) -> None:
    events = client.stream(PATH, prompt="a", max_tokens=2)
    assert all("usage" not in event for event in events)
    assert len({event["id"] for event in events}) == 1


def test_another_model_is_not_here(client: Client) -> None:
    error = client.error(PATH, 404, model="gpt-4", prompt="a")
    assert "'gpt-4'" in error["message"]
    assert "'polly'" in error["message"]
    assert error["param"] == "model"
    assert client.post(PATH, model="default", prompt="a", max_tokens=1)["model"] == "default"
