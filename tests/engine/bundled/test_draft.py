"""The draft head: what is trained in parallel is what a server does step by step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from slotscope.engine.bundled.make import accept
from slotscope.engine.bundled.make.model import Model

STEPS = 3


def chain(model: Model, hidden: Tensor, text: list[int]) -> list[Tensor]:
    """Hidden of three draft steps after `text`, of whose last token no trunk hidden is known."""
    out: list[Tensor] = []
    tokens = list(text)
    for _ in range(STEPS):
        embedded = model.model.embed_tokens(torch.tensor([tokens[1:]]))
        out.append(model.mtp.unroll(hidden, embedded, 1)[0][:, -1:])
        hidden = torch.cat([hidden, out[-1]], dim=1)
        tokens.append(int(model.logits(out[-1]).argmax()))
    return out


def trunk(model: Model, text: list[int]) -> Tensor:
    padded = torch.tensor([text + [0] * (-len(text) % 64)])
    hidden: Tensor = model.model(padded)
    return hidden[:, : len(text)]


@torch.inference_mode()
def speculate(model: Model, prompt: list[int], verifies: int) -> tuple[list[int], list[int]]:
    """The text and the accept lengths of a plain draft-and-verify loop."""
    text = [*prompt, int(model.logits(trunk(model, prompt)[:, -1]).argmax())]
    found = []
    for _ in range(verifies):
        hidden = chain(model, trunk(model, text[:-1]), text)
        drafts = [int(model.logits(step).argmax()) for step in hidden]
        chosen = model.logits(trunk(model, text + drafts)[:, len(text) - 1 :]).argmax(-1)[0]
        wanted = chosen.tolist()
        run = 0
        while run < STEPS and drafts[run] == wanted[run]:
            run += 1
        text += wanted[: run + 1]
        found.append(run + 1)
    return text, found


@torch.inference_mode()
def test_unrolled_steps_equal_a_chain_over_its_own_hidden(model: Model, texts: Tensor) -> None:
    tokens = texts[:1, :66]
    hidden = model.model(tokens[:, :64])
    embedded = model.model.embed_tokens(tokens[:, 1:65])
    unrolled = model.mtp.unroll(hidden, embedded, STEPS)
    start = 40
    spliced = hidden[:, : start + 1]
    for step in range(STEPS):
        last = start + step
        expected = model.mtp.unroll(spliced, embedded[:, : last + 1], 1)[0][:, -1:]
        torch.testing.assert_close(unrolled[step][:, last : last + 1], expected)
        spliced = torch.cat([spliced, expected], dim=1)


def test_counted_lengths_are_those_of_a_real_loop(model: Model, prompts: Tensor) -> None:
    prompt = prompts[0, :64].tolist()
    text, found = speculate(model, prompt, verifies=16)
    assert len(set(found)) > 1, "the example must have more than one accept length"
    rows = torch.tensor([text + [0] * 200])
    assert accept.lengths(model, rows, 64, STEPS)[: len(found) - 1] == found[:-1]


def test_recomputed_text_equals_transformers(model: Model, texts: Tensor) -> None:
    assert torch.equal(accept.write(model, texts[:2, :128], 8), texts[:2, :136])


def test_lengths_refuse_text_that_ends_with_the_prompt(model: Model, texts: Tensor) -> None:
    with pytest.raises(ValueError, match="leave no text after a prompt of 128"):
        accept.lengths(model, texts[:, :129], 128, STEPS)
