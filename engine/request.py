"""A request: what was asked, and where it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from slotscope.instrument import probe

from .prefix import PrefixHash


class RequestError(ValueError):
    """A request that can't be served as asked. The message says why, and what would do."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are chosen. Names and defaults are SGLang's."""

    max_new_tokens: int = 128
    temperature: float = 1.0  # 0 is greedy
    top_p: float = 1.0
    top_k: int = -1  # -1: all
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, good, range_ in (
            ("max_new_tokens", self.max_new_tokens >= 1, "at least 1"),
            ("temperature", self.temperature >= 0, "0 (greedy) or more"),
            ("top_p", 0 < self.top_p <= 1, "in (0, 1]"),
            ("top_k", self.top_k == -1 or self.top_k >= 1, "-1 (all) or at least 1"),
        ):
            if not good:
                raise RequestError(f"{name} is {getattr(self, name)!r}, but must be {range_}.")


@dataclass(frozen=True, slots=True)
class Delta:
    """What became of a request in one turn. The last one has a finish reason."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]  # of the chosen tokens, under temperature 1
    finish_reason: str | None = None  # "stop", "length", "abort"


@dataclass(slots=True)
class Usage:
    """Counts of one request, final once it has finished."""

    cached_tokens: int = 0
    verify_count: int = 0  # verify forwards that it took part in
    accept_count: int = 0  # tokens that they accepted, the fed root included
    retractions: int = 0  # times that it gave up its KV to others and started over

    @property
    def accept_length(self) -> float | None:
        """Mean tokens for one verify; None without speculation."""
        return self.accept_count / self.verify_count if self.verify_count else None


@dataclass(slots=True, eq=False)
class Request:
    """One generation. The asker fills the first group, the scheduler the rest."""

    request_id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams
    sink: Callable[[Delta], None] = lambda _: None  # called on the engine's thread; must not block
    client_id: str = ""
    trace_parent: str = ""
    extra_key: str = ""  # requests share cached prefixes only under an equal key

    # set by the scheduler
    output: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)  # of the output's tokens
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    number: int = 0  # the probe's number for its current attempt
    # Made when it is first asked for: requests are pickled for the processes of pipeline stages.
    _prefix: PrefixHash | None = field(default=None, init=False, repr=False)

    @property
    def tokens(self) -> list[int]:
        """Prompt and output so far."""
        return [*self.prompt, *self.output]

    def token_hash(self, depth: int) -> int | None:
        """What the trace knows its first `depth` tokens by; None while nothing is traced."""
        if not probe.level:
            return None
        self._prefix = self._prefix or PrefixHash(self.extra_key)
        return self._prefix.at(self.tokens, depth)

    @property
    def finished(self) -> bool:
        """Its last delta has been sent."""
        return self.finish_reason is not None
