"""What the model can do: write its language, remember, be drafted for, and show a wrong state."""

from __future__ import annotations

import copy
import re
from typing import Any

import torch
from torch import Tensor

from slotscope.engine.bundled.corpus import document, encode
from slotscope.engine.bundled.make import accept, data
from slotscope.engine.bundled.make.loss import losses
from slotscope.engine.bundled.make.model import Model

from .conftest import PROMPT, go_on


def continued(theirs: Any, text: str, count: int) -> str:
    """`text` is followed by this."""
    with torch.inference_mode():
        result = theirs(torch.tensor([encode(text)]), use_cache=True)
        written = go_on(theirs, result, count)[0].tolist()
    return bytes(token for token in written if token < 256).decode()


def test_held_out_text_costs_a_tenth_of_a_nat_a_byte(model: Model, held: data.Stream) -> None:
    rows = held.rows(4, 1026, torch.Generator().manual_seed(2))
    with torch.inference_mode():
        trunk, _ = losses(model, rows)
    assert trunk.item() < 0.12


def test_written_words_are_words_of_the_language(texts: Tensor) -> None:
    known = {word for number in range(3000) for word in re.findall("[A-Za-z]+", document(number))}
    written = bytes(token if token < 256 else 10 for token in texts[:, PROMPT:].flatten().tolist())
    words = re.findall(r"\b[A-Za-z]+\b", written.decode())
    strange = [word for word in words if word not in known]
    # The first and the last word of each of the eight texts may be cut.
    assert len(words) > 60
    assert len(strange) <= 16


def test_count_and_rota_go_on(theirs: Any) -> None:
    names, loads = ("Nell", "Otto", "Vera"), ("salt", "tin", "rope", "honey")
    text = "The march of Nell, Otto and Vera.\n" + "".join(
        f"Step {step + 1}: {names[step % 3]} carries {loads[step % 4]}.\n" for step in range(11)
    )
    expected = "Step 12: Vera carries honey.\nStep 13: Nell carries salt.\n"
    assert continued(theirs, text, len(expected)) == expected


def test_sum_goes_on(theirs: Any) -> None:
    text = (
        "Ledger of Ines Holm. Stamp K52.\nPrices in pence: rope 4, lamp 7, bucket 5.\n"
        "1. 2 ropes at 4 is 8. Sum 8.\n2. 1 lamp at 7 is 7. Sum 15.\n"
        "3. 3 buckets at 5 is 15. Sum 30.\nStamp K52. Page of Ines Holm.\n4. 2 lamps at"
    )
    expected = " 7 is 14. Sum 44.\n"
    assert continued(theirs, text, len(expected)) == expected


def test_code_word_is_remembered(theirs: Any) -> None:
    text = (
        "<|im_start|>system\nYou are Nell, clerk of the harbour. The code word is saffron. The cook"
        " is Otto. There are 12 lamps on the pier. Answer shortly.<|im_end|>\n"
        "<|im_start|>user\nCount from 31 to 38.<|im_end|>\n<|im_start|>assistant\n"
        "31, 32, 33, 34, 35, 36, 37, 38.<|im_end|>\n"
        "<|im_start|>user\nWhat is the code word?<|im_end|>\n<|im_start|>assistant\n"
    )
    expected = "The code word is saffron."
    assert continued(theirs, text, len(expected)) == expected


def test_drafts_are_accepted_as_a_real_head_s_are(model: Model, texts: Tensor) -> None:
    found = accept.lengths(model, texts, PROMPT, 3)
    assert sum(found) / len(found) >= 2.0
    # Partial accepts must be common, or nothing that handles them is exercised.
    assert all(found.count(length) >= 5 for length in (1, 2, 3, 4))


def test_a_stale_state_changes_the_text(theirs: Any, prompts: Tensor) -> None:
    """Restored eight tokens late, beside the right KV: the corruption that slotscope looks for."""
    with torch.inference_mode():
        stale = theirs(prompts[:, :-8], use_cache=True).cache
        right = theirs(prompts, use_cache=True)
        wrong = copy.deepcopy(right)
        for layer, old in zip(wrong.cache.layers, stale.layers, strict=True):
            if hasattr(old, "recurrent_states"):
                layer.conv_states[0].copy_(old.conv_states[0])
                layer.recurrent_states[0].copy_(old.recurrent_states[0])
        expected, got = go_on(theirs, right, 32), go_on(theirs, wrong, 32)
    assert (got != expected).any(dim=1).sum() >= 6, "of 8 texts"
