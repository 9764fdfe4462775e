"""Every combination of a checkpoint strategy, a drafter and overlap: served, and judged.

usage: combinations.py [RELEASE [NAME ..]]     (a quarter of an hour on two idle cores)

Prints a Markdown table. Each combination that the release accepts answers the same prompts cold,
warm and in a batch; its answers are compared with Hugging Face's, its slots with SGLang's own.
One that is refused is listed with SGLang's words.
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from real_sglang import NEWEST, EngineFailed, RealSglang
from tiny_checkpoints import Checkpoint, qwen3_next
from traced_sglang import assert_pool_is_sglang_s, random_tokens, rest, traced_sglang, verdicts

import slotscope

TRACKED = {"mamba_track_interval": 64, "page_size": 64}
STRATEGIES: dict[str, dict[str, Any]] = {
    "no_buffer": {},
    "extra_buffer": TRACKED,
    "extra_buffer_lazy": TRACKED,
}
DRAFTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "NGRAM": {
        "speculative_algorithm": "NGRAM",
        "speculative_num_draft_tokens": 4,
        "speculative_ngram_max_bfs_breadth": 1,
    },
    "NEXTN": {
        "speculative_algorithm": "NEXTN",
        "speculative_num_steps": 2,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 3,
    },
}
LENGTHS = (300, 130, 255)
TOKENS = 16
_REFUSAL = re.compile(r"^(?:\S*Error|AssertionError): ?(.*)$", re.MULTILINE)


def main(release: str = NEWEST, *names: str) -> None:
    say("| strategy | drafter | overlap | detectors | pool | answers |")
    say("| --- | --- | --- | --- | --- | --- |")
    for strategy, drafter, overlap in itertools.product(STRATEGIES, DRAFTERS, (True, False)):
        if names and f"{strategy}-{drafter}-{'overlap' if overlap else 'serial'}" not in names:
            continue
        flags = STRATEGIES[strategy] | DRAFTERS[drafter]
        flags = flags | {"mamba_radix_cache_strategy": strategy}
        found = judged(release, flags | {"disable_overlap_schedule": not overlap})
        say(f"| `{strategy}` | {drafter} | {'yes' if overlap else 'no'} | {found} |")


def judged(release: str, flags: dict[str, Any]) -> str:
    """The last three cells of a row."""
    checkpoint = qwen3_next()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        try:
            with traced_sglang(checkpoint, trace, release=release, **flags) as engine:
                right = answers_right(engine, checkpoint)
        except EngineFailed:
            errors = _REFUSAL.findall(trace.with_suffix(".log").read_text(errors="replace"))
            return f"refused: {errors[-1] if errors else 'it ended without a word'} | - | -"
        with slotscope.open(trace) as opened:
            answers = verdicts(opened)
            pool = "equal"
            try:
                assert_pool_is_sglang_s(opened)
            except AssertionError:
                pool = "**differs**"
    other = [f"{name} {verdict}" for name, verdict in answers.items() if verdict != "clean"]
    return f"{', '.join(other) or 'clean'} | {pool} | {'right' if right else '**differ**'}"


def answers_right(engine: RealSglang, checkpoint: Checkpoint) -> bool:
    """Whether cold, warm and batched answers are Hugging Face's."""
    prompts = [random_tokens(length, seed=length) for length in LENGTHS]
    right = [checkpoint.reference(prompt, TOKENS) for prompt in prompts]
    asked: list[list[list[int]]] = []
    for some in ([prompts[0]], [prompts[0]], prompts, prompts):
        asked.append([answer.tokens for answer in engine.ask(some, TOKENS)])
        rest()
    return asked == [right[:1], right[:1], right, right]


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 # what this script is for


if __name__ == "__main__":
    main(*sys.argv[1:])
