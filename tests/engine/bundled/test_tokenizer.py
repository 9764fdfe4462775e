"""The tokenizer: a token is a byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from slotscope.engine.bundled import PATH
from slotscope.engine.bundled.corpus import IM_END, document, encode
from slotscope.engine.bundled.make.folder import tokenizer

ALL_BYTES = bytes(range(128)).decode() + "àéßŁ文字🦆  \n\n\t"


@pytest.fixture(scope="module")
def stored() -> Tokenizer:
    return Tokenizer.from_file(str(PATH / "tokenizer.json"))


def test_ids_are_the_bytes(stored: Tokenizer) -> None:
    assert stored.encode(ALL_BYTES).ids == list(ALL_BYTES.encode())


def test_text_comes_back(stored: Tokenizer) -> None:
    assert stored.decode(stored.encode(ALL_BYTES).ids, skip_special_tokens=False) == ALL_BYTES


def test_every_byte_has_a_token(stored: Tokenizer) -> None:
    assert all(stored.id_to_token(number) is not None for number in range(259))


def test_corpus_and_tokenizer_agree(stored: Tokenizer) -> None:
    for number in range(40):
        text = document(number)
        assert stored.encode(text).ids == encode(text)
        assert stored.decode(encode(text), skip_special_tokens=False) == text


def test_stored_tokenizer_is_the_one_that_the_script_makes(tmp_path: Path) -> None:
    tokenizer().save(str(tmp_path / "tokenizer.json"))
    made = (tmp_path / "tokenizer.json").read_text()
    assert made == (PATH / "tokenizer.json").read_text()


def test_template_writes_chats_as_the_corpus_does() -> None:
    chosen = AutoTokenizer.from_pretrained(PATH)
    turns = [
        {"role": "system", "content": "You are Mara, clerk of the harbour."},
        {"role": "user", "content": "Hello."},
    ]
    assert chosen.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nYou are Mara, clerk of the harbour.<|im_end|>\n"
        "<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chosen.eos_token_id == IM_END
