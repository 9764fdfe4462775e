"""Does what was found explain what went wrong, all of it and nothing else?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .load import Trial
from .story import Story


@dataclass(frozen=True, slots=True)
class Judgement:
    """The demo's own verdict on the trace's verdict."""

    replies: int
    errors: int  # replies that were not HTTP 200
    reused: int
    wrong: tuple[Trial, ...]
    findings: tuple[dict[str, Any], ...]  # causes, the worst first; consequences lie in them
    blind: tuple[str, ...]
    unexplained: tuple[Trial, ...]  # wrong answers that no finding names
    foreign: tuple[dict[str, Any], ...]  # findings that this bug can't have caused

    @property
    def as_told(self) -> bool:
        """The seeded bug was found, it explains every wrong answer, and nothing else was found."""
        return bool(self.wrong and self.findings) and not (
            self.errors or self.unexplained or self.foreign or self.blind
        )

    @property
    def spotless(self) -> bool:
        """Nothing went wrong, and nothing was found."""
        return not (self.errors or self.wrong or self.findings or self.blind)


def judge(story: Story, trials: Sequence[Trial], report: str) -> Judgement:
    """Hold the report (JSON of `slotscope check`) against the answers."""
    told = json.loads(report)
    answers = [each for trial in trials for each in (trial.first, trial.again, trial.control)]
    findings = tuple(told["findings"])
    named = {name for finding in findings for name in _requests(finding)}
    wrong = tuple(trial for trial in trials if trial.wrong)
    return Judgement(
        replies=len(answers),
        errors=sum(answer.status != 200 for answer in answers),
        reused=sum(trial.again.cached_tokens > 0 for trial in trials),
        wrong=wrong,
        findings=findings,
        blind=tuple(v["detector"] for v in told["verdicts"] if v["verdict"] == "blind"),
        unexplained=tuple(
            trial for trial in wrong if not {trial.first.request_id, trial.again.request_id} & named
        ),
        foreign=tuple(f for f in findings if f["detector"] not in story.detectors),
    )


def _requests(finding: dict[str, Any]) -> set[str]:
    """Requests that a finding names, itself or in what follows from it."""
    return {
        name for each in (finding, *finding["also"]) if (name := each["request_id"]) is not None
    }
