"""The grammar: the same everywhere, and true to itself."""

from __future__ import annotations

import hashlib
import re

import pytest

from slotscope.engine.bundled.corpus import HELD_OUT, VOCAB_SIZE, document, encode

TEXTS = [document(number) for number in range(2000)]


def of_kind(beginning: str) -> list[str]:
    found = [text for text in TEXTS if text.startswith(beginning)]
    assert len(found) > 50
    return found


def test_documents_are_those_that_the_weights_were_trained_on() -> None:
    digest = hashlib.sha256("".join(document(number) for number in range(5000)).encode())
    assert digest.hexdigest() == "cd237e6fcc73133352a9523bbb86b5b16b989ef06b8296641df4189092348aa2"


def test_documents_are_short_ascii() -> None:
    assert all(text.isascii() for text in TEXTS)
    assert all(150 <= len(text) <= 3000 for text in TEXTS)
    assert max(max(encode(text)) for text in TEXTS) < VOCAB_SIZE


def test_held_out_documents_differ_from_trained_ones() -> None:
    assert not set(TEXTS) & {document(HELD_OUT + number) for number in range(2000)}


def test_markers_are_one_token_each() -> None:
    assert encode("<|im_start|>é<|im_end|>\n<|endoftext|>") == [257, 195, 169, 258, 10, 256]


def test_log_counts_its_lines_and_its_ships() -> None:
    for text in of_kind("Harbour log"):
        lines = [int(number) for number in re.findall(r"^Line (\d+)\.", text, re.MULTILINE)]
        assert lines == list(range(lines[0], lines[0] + len(lines)))
        inside = re.search(r"In port: (.*)\.", text)
        assert inside is not None
        count = len(inside[1].split(", "))
        for moved, said in re.findall(r"(came in|went out).* Ships: (\d+)\.", text):
            count += 1 if moved == "came in" else -1
            assert int(said) == count


def test_log_repeats_its_code_word() -> None:
    for text in of_kind("Harbour log"):
        words = re.findall(r"(?:Code word|given): (\w+)\.", text)
        assert len(words) >= 3
        assert len(set(words)) == 1


def test_ledger_adds_up() -> None:
    for text in of_kind("Ledger of"):
        total = 0
        for count, price, cost, said in re.findall(
            r"^\d+\. (\d+) \w+ at (\d+) is (\d+)\. Sum (\d+)\.", text, re.MULTILINE
        ):
            assert int(cost) == int(count) * int(price)
            total += int(cost)
            assert int(said) == total


@pytest.mark.parametrize("asked", ["What is the code word?", "Who is the cook?"])
def test_chat_answers_from_its_system_message(asked: str) -> None:
    answers = 0
    for text in of_kind("<|im_start|>system"):
        found = re.findall(
            re.escape(asked) + r"<\|im_end\|>\n<\|im_start\|>assistant\n(.*?)<", text
        )
        for answer in found:
            assert answer in text.split("<|im_end|>")[0]
        answers += len(found)
    assert answers > 20
