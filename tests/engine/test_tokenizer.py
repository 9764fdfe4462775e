from __future__ import annotations

import json
from pathlib import Path

import pytest

from slotscope.engine.tokenizer import Tokenizer, TokenizerError
from tests.engine.server.vocabulary import TEMPLATE, make_core, write_folder

HELLO = [{"role": "user", "content": "hé"}]


def load(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer.load(folder)
    assert tokenizer is not None
    return tokenizer


def test_a_folder_without_a_tokenizer_has_none(tmp_path: Path) -> None:
    assert Tokenizer.load(tmp_path) is None


def test_text_goes_there_and_back(tmp_path: Path) -> None:
    tokenizer = load(write_folder(tmp_path))
    ids = tokenizer.encode("tide<|im_end|>é")
    assert ids == (*b"tide", 258, *"é".encode())
    assert tokenizer.decode(ids) == "tideé"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "tide<|im_end|>é"
    assert (tokenizer.vocab_size, tokenizer.special_id("<|im_end|>")) == (259, 258)
    assert tokenizer.special_id("tide") is None


def test_a_conversation_is_spelt_by_the_template(tmp_path: Path) -> None:
    ids = load(write_folder(tmp_path)).chat(HELLO)
    assert ids == (257, *b"user\nh", *"é".encode(), 258, *b"\n", 257, *b"assistant\n")


@pytest.mark.parametrize("where", ["file", "settings", "named"])
def test_the_template_may_lie_in_three_places(tmp_path: Path, where: str) -> None:
    template = "{{ bos_token }}{{ messages[0].content | tojson }}"
    write_folder(tmp_path)
    settings: dict[str, object] = {"bos_token": {"content": "<|endoftext|>"}}
    if where == "file":
        (tmp_path / "chat_template.jinja").write_text(template)
        settings["chat_template"] = "the older one"
    elif where == "settings":
        settings["chat_template"] = template
    else:
        others = {"name": "tool_use", "template": "no"}
        settings["chat_template"] = [others, {"name": "default", "template": template}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    assert load(tmp_path).chat(HELLO) == (256, *'"hé"'.encode())


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[0].content.missing.deep }}", "missing"),
        ("{{ messages[9].content + 1 }}", "refuses"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "append"),
    ],
)
def test_a_template_that_fails_says_so(template: str, said: str) -> None:
    tokenizer = Tokenizer(make_core(), template=template)
    with pytest.raises(TokenizerError, match="refuses") as caught:
        tokenizer.chat(HELLO)
    assert said in str(caught.value)


def test_without_a_template_there_is_no_chat() -> None:
    tokenizer = Tokenizer(make_core())
    assert not tokenizer.has_chat_template
    with pytest.raises(TokenizerError, match="/v1/completions"):
        tokenizer.chat(HELLO)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tokenizer.json", "{}", "tokenizer.json is no tokenizer"),
        ("tokenizer_config.json", "{", "tokenizer_config.json is no JSON"),
        ("tokenizer_config.json", "[]", "must hold an object"),
        ("chat_template.jinja", "\n{% if %}", "Line 2 of the model's chat template"),
    ],
)
def test_a_broken_folder_names_the_file(tmp_path: Path, name: str, text: str, said: str) -> None:
    (write_folder(tmp_path) / name).write_text(text)
    with pytest.raises(TokenizerError) as caught:
        Tokenizer.load(tmp_path)
    assert said in str(caught.value)


def test_the_template_of_the_tests_is_one() -> None:
    assert Tokenizer(make_core(), template=TEMPLATE).has_chat_template
