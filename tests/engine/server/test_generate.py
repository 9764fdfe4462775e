from __future__ import annotations

import math
from typing import Any

import pytest

from slotscope.engine.tokenizer import Tokenizer
from tests.engine.server.parrot import EOS, Parrot
from tests.engine.server.serving import Client, serving


def ask(text: str, tokens: int = 4, **more: Any) -> dict[str, Any]:
    params = {"max_new_tokens": tokens, "temperature": 0, **more.pop("sampling", {})}
    return {"text": text, "sampling_params": params, **more}


def test_text_comes_back_with_its_counts(client: Client, parrot: Parrot) -> None:
    reply = client.post("/generate", **ask("tide at nine", 5))
    meta = reply["meta_info"]
    assert reply["text"] == "tide "
    assert reply["output_ids"] == list(b"tide ")
    assert meta["prompt_tokens"] == 12
    assert meta["completion_tokens"] == 5
    assert meta["cached_tokens"] == 8
    assert meta["finish_reason"] == {"type": "length", "length": 5}
    assert meta["e2e_latency"] >= 0
    assert meta["id"] == meta["request_id"] == parrot.asked[0].request_id
    assert "spec_verify_ct" not in meta


def test_input_ids_are_taken_as_they_are(client: Client) -> None:
    params = {"max_new_tokens": 2}
    reply = client.post("/generate", input_ids=[104, 105], sampling_params=params)
    assert reply["text"] == "hi"


def test_a_list_of_prompts_gives_a_list_in_their_order(client: Client, parrot: Parrot) -> None:
    params = [{"max_new_tokens": 3}, {"max_new_tokens": 1}]
    replies = client.post(
        "/generate", text=["abc", "xyz"], sampling_params=params, rid="pair", return_logprob=True
    )
    assert [r["text"] for r in replies] == ["abc", "x"]
    assert [r["meta_info"]["id"] for r in replies] == ["pair_0", "pair_1"]
    assert client.post("/generate", text=["q"])[0]["text"].startswith("qq")
    assert len({request.request_id for request in parrot.asked}) == 3


def test_an_extra_key_reaches_each_request(client: Client, parrot: Parrot) -> None:
    client.post("/generate", **ask("ab"), extra_key="salt")
    client.post("/generate", text=["ab", "cd"], extra_key=["one", "other"])
    client.post("/generate", text=["ab", "cd"], extra_key="both")
    client.post("/generate", **ask("ab"))
    keys = [request.extra_key for request in parrot.asked]
    assert keys == ["salt", "one", "other", "both", "both", ""]
    error = client.error("/generate", text=["ab", "cd"], extra_key=["one"])
    assert "Give one extra_key for each prompt" in error["message"]
    assert "must be a string" in client.error("/generate", text="ab", extra_key=7)["message"]


def test_logprobs_are_triples(client: Client) -> None:
    reply = client.post("/generate", **ask("ab", 3, return_logprob=True))
    triples = [[-0.5, 97, None], [-0.5, 98, None], [-0.5, 97, None]]
    assert reply["meta_info"]["output_token_logprobs"] == triples


def test_a_logprob_that_is_no_number_comes_as_null(tokenizer: Tokenizer) -> None:
    with serving(Parrot(logprob=math.nan), tokenizer) as client:
        body = ask("ab", 1, return_logprob=True)
        assert client.post("/generate", **body)["meta_info"]["output_token_logprobs"][0][0] is None
        assert client.stream("/generate", **body)[-1]["meta_info"]["output_token_logprobs"] == [
            [None, 97, None]
        ]


def test_a_stream_holds_all_so_far_and_ends_as_the_whole_reply(client: Client) -> None:
    body = ask("été!", 6)
    events = client.stream("/generate", **body)
    whole = client.post("/generate", **body)
    assert events[-1]["text"] == whole["text"] == "été!"
    assert events[-1]["output_ids"] == whole["output_ids"]
    texts = [event["text"] for event in events]
    assert all(later.startswith(earlier) for earlier, later in zip(texts, texts[1:], strict=False))
    # The first byte of a character is no text yet.
    assert texts[0] == ""
    assert [e["meta_info"]["finish_reason"] for e in events[:-1]] == [None] * (len(events) - 1)


def test_a_streamed_list_names_the_prompt_of_each_event(client: Client) -> None:
    events = client.stream("/generate", text=["ab", "cd"], sampling_params={"max_new_tokens": 3})
    last = {event["index"]: event for event in events}
    assert {index: event["text"] for index, event in last.items()} == {0: "aba", 1: "cdc"}


def test_a_stop_string_is_cut_and_ends_the_request_in_the_engine(
    client: Client, parrot: Parrot
) -> None:
    reply = client.post("/generate", **ask("one. two", 400, sampling={"stop": [". t", "zz"]}))
    assert reply["text"] == "one"
    assert reply["meta_info"]["finish_reason"] == {"type": "stop", "matched": ". t"}
    assert reply["meta_info"]["completion_tokens"] == 6
    parrot.wait_until_idle()
    assert parrot.complete == [parrot.asked[0].request_id]
    assert parrot.aborted == []


@pytest.mark.parametrize("width", [1, 2, 3, 5, 16])
def test_a_stop_string_is_cut_wherever_a_verify_ends(tokenizer: Tokenizer, width: int) -> None:
    with serving(Parrot(width=width), tokenizer) as client:
        body = ask("one. two", 400, sampling={"stop": ". t"}, return_logprob=True)
        reply = client.post("/generate", **body)
        events = client.stream("/generate", **body)
    assert reply["text"] == "one"
    assert reply["output_ids"] == list(b"one. t")
    assert len(reply["meta_info"]["output_token_logprobs"]) == 6
    assert all("one".startswith(event["text"]) for event in events)
    assert events[-1]["text"] == "one"


def test_a_stop_token_ends_the_text_before_it(client: Client, parrot: Parrot) -> None:
    reply = client.post("/generate", **ask("ab-c", 9, sampling={"stop_token_ids": [45]}))
    assert reply["text"] == "ab"
    assert reply["output_ids"] == [97, 98, 45]
    assert reply["meta_info"]["finish_reason"] == {"type": "stop", "matched": 45}
    assert parrot.aborted == []


def test_the_end_of_text_stops_unless_ignored(client: Client) -> None:
    ids = [97, EOS, 98]
    reply = client.post("/generate", input_ids=ids, sampling_params={"max_new_tokens": 5})
    assert reply["text"] == "a"
    assert reply["meta_info"]["finish_reason"] == {"type": "stop", "matched": EOS}
    params = {"max_new_tokens": 5, "ignore_eos": True}
    reply = client.post("/generate", input_ids=ids, sampling_params=params)
    assert reply["text"] == "aba"
    shown = {**params, "skip_special_tokens": False}
    reply = client.post("/generate", input_ids=ids, sampling_params=shown)
    assert reply["text"] == "a<|endoftext|>ba<|endoftext|>"


def test_a_stop_string_may_be_a_special_token(client: Client) -> None:
    reply = client.post(
        "/generate", input_ids=[97, 258], sampling_params={"stop": "<|im_end|>", "top_k": 1000}
    )
    assert reply["text"] == "a"
    assert reply["meta_info"]["finish_reason"] == {"type": "stop", "matched": "<|im_end|>"}


def test_what_may_become_a_stop_is_sent_when_it_does_not(client: Client) -> None:
    reply = client.post("/generate", **ask("ab##", 4, sampling={"stop": "###"}))
    assert reply["text"] == "ab##"
    assert reply["meta_info"]["finish_reason"]["type"] == "length"


def test_speculation_is_reported(tokenizer: Tokenizer) -> None:
    with serving(Parrot(width=3), tokenizer) as client:
        meta = client.post("/generate", **ask("abc", 7))["meta_info"]
    assert meta["spec_verify_ct"] == 3
    assert meta["spec_accept_length"] == pytest.approx(7 / 3)


def test_the_limit_left_out_gives_way_to_the_context(client: Client) -> None:
    reply = client.post("/generate", input_ids=[97] * 510)
    assert reply["meta_info"]["completion_tokens"] == 2


def test_names_and_trace_reach_the_engine(client: Client, parrot: Parrot) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = {"traceparent": trace, "X-Request-Id": "from-header"}
    client.http.post("/generate", json=ask("a", 1, rid="mine'; --"), headers=headers)
    client.http.post("/generate", json=ask("a", 1), headers=headers | {"traceparent": "00-no"})
    zeros = {"traceparent": trace.replace("b7ad6b7169203331", "0" * 16)}
    client.http.post("/generate", json=ask("a", 1), headers=zeros)
    assert [r.client_id for r in parrot.asked] == ["mine'; --", "from-header", ""]
    assert [r.trace_parent for r in parrot.asked] == [trace, "", ""]
    assert all(len(r.request_id) == 32 for r in parrot.asked)


def test_sampling_reaches_the_engine(client: Client, parrot: Parrot) -> None:
    sampling = {"top_p": 0.9, "top_k": 5, "temperature": 0.7, "sampling_seed": 11}
    client.post("/generate", **ask("a", 1, sampling=sampling))
    client.post("/generate", **ask("a", 1, sampling={"temperature": 1e-9, "top_k": 10**12}))
    first, second = (request.sampling for request in parrot.asked)
    assert (first.top_p, first.top_k, first.temperature, first.seed) == (0.9, 5, 0.7, 11)
    assert (second.temperature, second.top_k) == (0.0, parrot.vocab_size)


def test_without_a_tokenizer_token_ids_are_served(parrot: Parrot) -> None:
    with serving(parrot, None) as client:
        reply = client.post("/generate", input_ids=[7, 8], sampling_params={"max_new_tokens": 3})
        assert reply["output_ids"] == [7, 8, 7]
        assert "text" not in reply
        for path, body in (
            ("/generate", {"text": "a"}),
            ("/generate", {"input_ids": [1], "sampling_params": {"stop": "a"}}),
            ("/v1/completions", {"prompt": "a"}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ):
            assert "tokenizer.json" in client.error(path, **body)["message"]
