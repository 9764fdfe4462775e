"""Headroom: how much KV is kept free for what running requests have yet to put out.

A request may ask for far more tokens than it will need, so reserving all of them would leave most
of the pool unused. SGLang reserves a share, its *new token ratio*, and lets the ratio learn: it
falls while all goes well, and after a retraction it becomes the progress that the others have made.
"""

from __future__ import annotations

from collections.abc import Iterable

from .request import Request
from .running import Running

CLIP = 4096
"""Tokens of output that are planned for, at most."""
_FIRST, _LEAST = 0.7, 0.7 * 0.14
_DECAY = (_FIRST - _LEAST) / 600  # a decode step
_STEPS = 20  # that those who stay should get before the next retraction


def remaining(request: Request) -> int:
    """Tokens that a request may still put out, as far as it is planned for."""
    return min(request.sampling.max_new_tokens - len(request.output), CLIP)


class Headroom:
    """Figures and rule are those of SGLang's `new_token_ratio`."""

    def __init__(self) -> None:
        self.ratio = _FIRST

    def tokens(self, running: Iterable[Running]) -> int:
        """KV locations to keep free for these requests."""
        return sum(int(self.ratio * remaining(each.request)) for each in running)

    def stepped(self) -> None:
        """A step found all the KV that it needed."""
        self.ratio = max(self.ratio - _DECAY, _LEAST)

    def retracted(self, stay: Iterable[Running]) -> None:
        """A request had to give way to these."""
        put_out = asked = 0
        for each in stay:
            put_out += len(each.request.output) + _STEPS
            asked += each.request.sampling.max_new_tokens
        self.ratio = min(1.0, put_out / (asked + 1))
