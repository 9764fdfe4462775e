"""Two answers to the same prompt: are they the same, and could rounding alone have parted them?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .server import Answer

TOLERANCE = 1e-2
"""Default of what rounding may do to a logprob, in nats. A restored prefix runs through other
matrix shapes than a whole prompt: 4e-4 was seen in bf16, 1e-5 in fp32."""

Likeness = Literal["equal", "tie", "differs"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where two answers part, and how far their logprobs lie apart until then."""

    parted: int | None  # index of the first token that differs
    count: int  # tokens of the longer answer
    apart: float | None  # max |d logprob| of the tokens before; None: the server tells none
    at_parting: tuple[float, float] | None  # logprobs of the two tokens that differ

    @staticmethod
    def of(one: Answer, other: Answer) -> Comparison:
        """Compare token by token, up to the first that differs: later contexts are not the same."""
        pairs = enumerate(zip(one.tokens, other.tokens, strict=False))
        lengths = len(one.tokens), len(other.tokens)
        shorter = min(lengths) if lengths[0] != lengths[1] else None
        parted = next((at for at, (a, b) in pairs if a != b), shorter)
        if one.logprobs is None or other.logprobs is None:
            return Comparison(parted, max(lengths), None, None)
        both = list(zip(one.logprobs, other.logprobs, strict=False))
        before = both if parted is None else both[:parted]
        here = None if parted is None or parted >= len(both) else both[parted]
        return Comparison(parted, max(lengths), max(map(_apart, before), default=0.0), here)

    @property
    def same(self) -> int:
        """Tokens before the two part."""
        return self.count if self.parted is None else self.parted

    @property
    def diff(self) -> float | None:
        """Max |d logprob|, that of the parting tokens included; None: the server tells none."""
        if self.apart is None or self.at_parting is None:
            return self.apart
        return max(self.apart, _apart(self.at_parting))

    def likeness(self, tolerance: float) -> Likeness:
        """Equal, different, or parted at a tie.

        Where two tokens are nearly as likely, rounding decides which is chosen. Then each has at
        most half of the probability, and the two chosen logprobs are within the tolerance: where
        that fails, rounding can't have done it. Where it holds, it may have.
        """
        if self.apart is not None and self.apart > tolerance:
            return "differs"
        if self.parted is None:
            return "equal"
        if self.at_parting is None:
            return "differs"
        half = max(self.at_parting) <= math.log(0.5) + tolerance
        return "tie" if half and _apart(self.at_parting) <= tolerance else "differs"


def _apart(pair: tuple[float, float]) -> float:
    """Two that are no numbers are alike; one that is none is as far away as can be."""
    one, other = pair
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    return math.inf if math.isnan(one) or math.isnan(other) else abs(one - other)
