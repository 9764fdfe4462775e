"""One cell, played: donor, cold, warm, cold."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .comparison import Comparison
from .errors import ColdwarmError, Refused
from .grid import Cell, Geometry, Turn
from .server import Answer, Prompt, Server

Verdict = Literal["equal", "differs", "tie", "unstable", "cold", "refused"]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a cell. Counts are the server's own; None where it did not get so far."""

    cell: Cell
    verdict: Verdict
    why: str
    prompt: int | None = None
    finish: int | None = None
    deepest: int | None = None  # checkpoint that the warm request may be served
    cached: int | None = None  # that it was served
    warm: Comparison | None = None  # warm against the first cold answer
    noise: Comparison | None = None  # the second cold answer against the first
    requests: Mapping[str, str] | None = None  # donor, cold, warm, again -> request id


@dataclass(frozen=True, slots=True)
class Player:
    """Plays cells. Several threads may use one.

    A fresh salt makes a request cold. With `flushes` the whole cache is emptied instead, and then
    nothing else may be asked at the same time.
    """

    server: Server
    geometry: Geometry
    tolerance: float
    flushes: bool = False

    def play(self, cell: Cell) -> Result:
        """Raises ColdwarmError where no other cell could be judged either."""
        try:
            return self._play(cell, self.server.prompt(cell.prompt_tokens, cell.index))
        except Refused as error:
            return Result(cell, "refused", str(error))

    def _play(self, cell: Cell, prompt: Prompt) -> Result:
        """A-B-A: cold, warm, cold. A repeated prompt's donor is its first cold answer."""
        salt = self._fresh()
        donor = first = self._cold(prompt, cell.donor_tokens, salt)
        asked = prompt
        if cell.turn is Turn.CONTINUE:
            asked = self.server.extended(prompt, donor)
            first = self._cold(asked, cell.answer_tokens, self._fresh())
            if self.flushes:
                salt = self._fresh()
                donor = self._cold(prompt, cell.donor_tokens, salt)
                if self.server.extended(prompt, donor) != asked:
                    return Result(cell, "unstable", "the donor, asked again, answered otherwise")
        warm = self.server.ask(asked, cell.answer_tokens, salt)
        again = self._cold(asked, cell.answer_tokens, self._fresh())
        return self._judged(cell, donor, first, warm, again)

    def _judged(
        self, cell: Cell, donor: Answer, first: Answer, warm: Answer, again: Answer
    ) -> Result:
        finish = donor.prompt_tokens + cell.donor_tokens
        deepest = self.geometry.deepest(
            prompt=donor.prompt_tokens, finish=finish, asked=warm.prompt_tokens
        )
        compared, noise = Comparison.of(first, warm), Comparison.of(first, again)
        verdict, why = self._verdict(warm.cached_tokens, compared, noise)
        names = {"donor": donor, "cold": first, "warm": warm, "again": again}
        return Result(
            cell,
            verdict,
            why,
            prompt=donor.prompt_tokens,
            finish=finish,
            deepest=deepest,
            cached=warm.cached_tokens,
            warm=compared,
            noise=noise,
            requests={name: answer.request_id for name, answer in names.items()},
        )

    def _verdict(self, cached: int, warm: Comparison, noise: Comparison) -> tuple[Verdict, str]:
        if noise.likeness(self.tolerance) != "equal":
            return "unstable", f"two cold answers differ: {_told(noise)}"
        if cached == 0:
            return "cold", "nothing came from the cache, so nothing was tested"
        likeness = warm.likeness(self.tolerance)
        if likeness == "tie":
            return likeness, f"{_told(warm)}; two tokens as likely as each other may part so"
        return likeness, "" if likeness == "equal" else _told(warm)

    def _cold(self, prompt: Prompt, tokens: int, salt: str) -> Answer:
        """An answer that nothing cached may have a part in."""
        answer = self.server.ask(prompt, tokens, salt)
        if answer.cached_tokens:
            raise ColdwarmError(
                f"A request that should have been cold was served {answer.cached_tokens} of its "
                f"{answer.prompt_tokens} tokens from the cache: "
                + (
                    "somebody else fills it between a flush and the next request. Test an idle "
                    "server, or leave --flush out."
                    if self.flushes
                    else "the server ignores cache salts (extra_key, cache_salt), so nothing can "
                    "be compared. Use a release that knows them, or give --flush, which empties "
                    "the server's whole cache before each cold request."
                )
            )
        return answer

    def _fresh(self) -> str:
        """A salt that nobody has used; none where the cache is emptied instead."""
        if not self.flushes:
            return f"coldwarm-{uuid.uuid4().hex}"
        self.server.flush()
        return ""


def _told(compared: Comparison) -> str:
    if compared.parted is not None:
        return f"token {compared.parted + 1} of {compared.count} differs"
    return f"logprobs lie up to {compared.apart:.2g} apart"
