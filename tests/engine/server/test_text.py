from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from slotscope.engine.server.text import Detokenizer, StopMatcher
from slotscope.engine.tokenizer import Tokenizer
from tests.engine.server.vocabulary import make_core

BYTES = Tokenizer(make_core())
SPECIAL = (256, 257, 258)


def pieces(ids: list[int], tokenizer: Tokenizer = BYTES, *, skip: bool = True) -> list[str]:
    detokenizer = Detokenizer(tokenizer, skip_special_tokens=skip)
    return [*(detokenizer.push(token) for token in ids), detokenizer.flush()]


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(pieces(list(text.encode()))) == text


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "é", "€", "🌊", "\ufffd", *SPECIAL]), max_size=40))
def test_special_tokens_add_nothing_wherever_they_stand(said: list[str | int]) -> None:
    ids = [id_ for one in said for id_ in ([one] if isinstance(one, int) else one.encode())]
    assert "".join(pieces(ids)) == "".join(one for one in said if isinstance(one, str))


def test_a_character_comes_whole() -> None:
    assert pieces(list("a🌊b".encode())) == ["a", "", "", "", "🌊", "b", ""]


def test_bytes_that_are_no_text_are_not_kept_for_ever() -> None:
    out = pieces([0xFF] * 40)
    assert "".join(out) == "\ufffd" * 40
    assert [len(piece) for piece in out if piece] == [13, 13, 14]


def test_a_cut_character_comes_out_at_the_end() -> None:
    assert pieces([*b"a", 0xF0, 0x9F]) == ["a", "", "", "\ufffd"]


def test_a_character_is_whole_even_where_the_limit_falls_into_it() -> None:
    assert "".join(pieces(list("\ufffd\ufffd\ufffd\ufffd\ufffdé".encode()))) == "\ufffd" * 5 + "é"
    assert "".join(pieces([0xFF] * 12 + list("€é".encode()))) == "\ufffd" * 12 + "€é"


def test_special_tokens_may_be_shown() -> None:
    assert "".join(pieces([97, 258, 98], skip=False)) == "a<|im_end|>b"


def test_leading_spaces_of_pieces_stay() -> None:
    """Metaspace tokenizers drop the space of the first token alone, so context matters."""
    vocabulary = {"▁tide": 0, "▁at": 1, "▁nine": 2, "s": 3, "<unk>": 4}
    core = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Metaspace()
    tokenizer = Tokenizer(core)
    assert pieces([0, 3, 1, 2], tokenizer) == ["tide", "s", " at", " nine", ""]


texts = st.text(alphabet="ab.", max_size=40)
stops = st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), max_size=3)


@given(text=texts, stops=stops, cuts=st.lists(st.integers(0, 40)))
def test_a_text_ends_before_the_first_stop_however_it_comes(
    text: str, stops: list[str], cuts: list[int]
) -> None:
    matcher, out = StopMatcher(stops), ""
    bounds = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    for start, end in zip(bounds, bounds[1:], strict=False):
        out += matcher.push(text[start:end])
        seen = text[:end]
        found = [seen.index(stop) for stop in stops if stop in seen]
        if found:
            # What came in one piece is searched as one, so the earliest of it counts.
            assert out == text[: min(found)]
            assert matcher.matched is not None
            assert text.startswith(matcher.matched, min(found))
            return
        assert matcher.matched is None
        assert seen.startswith(out)
        # What is kept back could still begin a stop, and nothing else is kept back.
        held = seen[len(out) :]
        assert not held or any(stop.startswith(held) for stop in stops)
    assert out + matcher.flush() == text


@pytest.mark.parametrize(
    ("pushed", "sent"),
    [(["one. t"], "one"), (["one", ". ", "t"], "one"), (["one. ", "x"], "one. x")],
)
def test_stops_that_overlap_pieces(pushed: list[str], sent: str) -> None:
    matcher = StopMatcher([". t"])
    out = "".join(matcher.push(piece) for piece in pushed)
    assert out + ("" if matcher.matched else matcher.flush()) == sent
