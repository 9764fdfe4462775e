"""Plain: text that came from elsewhere, made safe to print."""

from __future__ import annotations

import unicodedata

_OBEYED = {"Cc", "Cf", "Cs"}
"""Unicode's controls, formats (they may turn the reading direction) and lone surrogates."""


def plain(text: str) -> str:
    r"""Text in which a terminal finds nothing to obey: an escape character becomes `\x1b`.

    Clients choose the ids of their requests, so a trace may hold anything. Newlines and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        each.encode("unicode_escape").decode()
        if unicodedata.category(each) in _OBEYED and each not in "\n\t"
        else each
        for each in text
    )
