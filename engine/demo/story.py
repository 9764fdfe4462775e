"""The story that the demo tells: which bug, which load brings it out, what must be found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Story:
    """One upstream bug, and the server and the load under which it shows."""

    patch: str
    title: str
    what: str
    flags: tuple[str, ...]
    detectors: frozenset[str]  # causes that this bug may have; any other is a false alarm
    prompts: int = 40
    prompt_tokens: int = 255
    answer_tokens: int = 96
    clients: int = 3


DONATION = Story(
    patch="prefill-donation-guard",
    title="A checkpoint is donated while a verify in flight still writes it",
    what=(
        "Under extra_buffer_lazy with speculation and overlap, the first verify is launched before "
        "the prefill's result is retired. Where no spare slot can be had, it writes the state of "
        "256 tokens into the very slot that the prefill then files under 192. The next request "
        "with that prefix resumes from a state that has already seen its next 64 tokens."
    ),
    flags=(
        *("--mamba-radix-cache-strategy", "extra_buffer_lazy"),
        *("--speculative-algorithm", "NEXTN"),
        *("--mamba-track-interval", "256"),
        # Twelve slots for three clients: full of cached checkpoints before long.
        *("--max-mamba-cache-size", "12"),
        *("--max-running-requests", "3"),
        *("--context-length", "512"),
        # In float64 no near tie can excuse a different answer.
        *("--dtype", "float64"),
    ),
    detectors=frozenset({"D1", "D2"}),
)
