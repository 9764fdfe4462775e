"""`slotscope demo`, as whoever tries slotscope runs it: from nothing to the finding on the page."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

import slotscope
from slotscope.engine.demo.servers import showing
from slotscope.instrument import check
from slotscope.instrument.findings import Finding
from tests.dashboard.test_browser import ARGUMENTS, CHROMIUM, WAIT_MS, look
from tests.end_to_end.server import run

DEMO_S = 1500
"""Patience with a demo, on a machine that may be busy."""


@dataclass(frozen=True)
class Demo:
    """One that has been run."""

    done: subprocess.CompletedProcess[str]
    trace: Path

    def causes(self) -> tuple[Finding, ...]:
        """What its trace shows, judged again."""
        with slotscope.open(self.trace) as opened:
            return check.run(opened).findings


def play(directory: Path, *flags: str) -> Demo:
    """Run the demo; its output isn't wrapped."""
    trace = directory / "trace"
    line = ("demo", "--headless", "--trace", trace, *flags)
    return Demo(run(*line, patience_s=DEMO_S, COLUMNS="2000"), trace)


def test_the_demo_shows_its_bug_and_nothing_else(tmp_path: Path) -> None:
    demo = play(tmp_path)
    assert demo.done.returncode == 0, demo.done.stdout + demo.done.stderr
    causes = demo.causes()
    assert {cause.detector for cause in causes} == {"D1"}
    assert causes[0].because in demo.done.stdout
    assert f"slot {causes[0].slot}, {causes[0].request_id}" in demo.done.stdout
    assert "every one HTTP 200" in demo.done.stdout
    assert "Each wrong answer is explained, and nothing else was found." in demo.done.stdout
    # Not a test of its own: workers would play the demo twice.
    if CHROMIUM is None:
        pytest.skip("the demo went as told, but there is no chromium to look at its page with")
    the_page_shows(causes[0], demo.trace, tmp_path)


def the_page_shows(cause: Finding, trace: Path, tmp_path: Path) -> None:
    with showing(trace, 0, tmp_path / "log") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            tmp_path / "profile", executable_path=CHROMIUM, args=ARGUMENTS
        )
        browser.set_default_timeout(WAIT_MS)
        page = browser.new_page()
        look(page, address)
        title = f"{cause.detector} {cause.name}: slot {cause.slot}"
        expect(page.get_by_text(title).first).to_be_visible()
        expect(page.locator(".st-key-argument")).to_contain_text(cause.because)
        browser.close()


def test_with_the_patch_on_the_demo_finds_nothing(tmp_path: Path) -> None:
    demo = play(tmp_path, "--fixed")
    assert demo.done.returncode == 0, demo.done.stdout + demo.done.stderr
    assert demo.causes() == ()
    assert "nothing wrong, nothing found" in demo.done.stdout
