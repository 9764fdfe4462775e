"""The vocabulary: a token is a byte, or one of three markers."""

from __future__ import annotations

import re

END_OF_TEXT = 256
IM_START = 257
IM_END = 258
VOCAB_SIZE = 264  # 259 rounded up to a multiple of 8; the last five are never used

MARKERS = {"<|endoftext|>": END_OF_TEXT, "<|im_start|>": IM_START, "<|im_end|>": IM_END}
_MARKER = re.compile("(" + "|".join(re.escape(marker) for marker in MARKERS) + ")")


def encode(text: str) -> list[int]:
    """Token ids of `text`: its UTF-8 bytes, with each marker as one id."""
    ids: list[int] = []
    for part in _MARKER.split(text):
        if part in MARKERS:
            ids.append(MARKERS[part])
        else:
            ids.extend(part.encode())
    return ids
