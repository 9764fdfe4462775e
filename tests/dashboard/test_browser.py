"""The dashboard as people see it: served by the command, looked at in a real headless browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import BrowserContext, FloatRect, Page, Request, expect, sync_playwright

from slotscope.dashboard import palette
from slotscope.instrument import probe
from tests.dashboard import traces
from tests.dashboard.conftest import HOSTILE

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WAIT_MS = 60_000

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


@contextmanager
def served(trace: Path) -> Iterator[str]:
    """The address of a dashboard on `trace`."""
    code = "import typer; from slotscope.dashboard.cli import dashboard; typer.run(dashboard)"
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(trace), "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        assert found is not None, "the command printed no address"
        yield found[0]
    finally:
        server.terminate()
        server.communicate(timeout=30)


@pytest.fixture(scope="module")
def address(aliased: Path) -> Iterator[str]:
    with served(aliased) as url:
        yield url


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=CHROMIUM,
            args=ARGUMENTS,
            viewport={"width": 1440, "height": 1300},
        )
        context.set_default_timeout(WAIT_MS)
        yield context
        context.close()


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    opened = browser.new_page()
    yield opened
    opened.close()


def look(page: Page, url: str) -> None:
    """Open an address, the server perhaps still starting, and wait until the page is drawn."""
    deadline = time.monotonic() + WAIT_MS / 1e3
    while True:
        try:
            page.goto(url)
            break
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    settle(page)


def settle(page: Page) -> None:
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    expect(page.get_by_test_id("stException")).to_have_count(0)


def drawn(page: Page, key: str) -> FloatRect:
    """The box of the chart with this key, once it is drawn."""
    canvas = page.locator(f".st-key-{key} .marks").first
    canvas.wait_for()
    box = canvas.bounding_box()
    assert box is not None
    return box


def red(page: Page, key: str, folder: Path) -> int:
    """How many pixels of the chart with this key have the colour of a contradiction."""
    drawn(page, key)
    page.wait_for_timeout(300)
    file = folder / f"{key}.png"
    page.locator(f".st-key-{key}").screenshot(path=file)
    pixels = np.asarray(Image.open(file).convert("RGB"), dtype=int)
    wanted = [int(palette.CONTRADICTION[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(pixels - wanted).max(axis=2) < 12).sum())


def test_the_findings_page_shows_the_argument(address: str, page: Page, tmp_path: Path) -> None:
    foreign: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((address, address.replace("http", "ws"), "data:", "blob:")):
            foreign.append(request.url)

    page.on("request", note)
    look(page, address)
    expect(page.get_by_text("D1 depth: slot 6")).to_be_visible()
    expect(page.locator(".st-key-argument")).to_contain_text("256 tokens, a contradiction")
    expect(page.locator(".st-key-tile-found-D1")).to_be_visible()
    drawn(page, "picture")
    page.screenshot(path=tmp_path / "findings.png", full_page=True)
    assert foreign == []


def test_the_name_of_a_request_is_shown_and_not_run(address: str, page: Page) -> None:
    look(page, address)
    expect(page.locator(".st-key-consequences")).to_contain_text("![p](http://evil.example/p)")
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src*=evil], img[src=x]").count() == 0


def test_the_slots_page_zooms_and_selects(address: str, page: Page, tmp_path: Path) -> None:
    look(page, f"{address}/slots?axis=order")
    box = drawn(page, "strip")
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=8)
    page.mouse.up()
    page.wait_for_url(re.compile("from=.*until="))
    settle(page)

    lines = drawn(page, "lines")
    for lane in range(1, 10):  # The first bar that lies under the middle of the axis.
        page.mouse.click(lines["x"] + lines["width"] * 0.55, lines["y"] + 62 + lane * 30)
        page.wait_for_timeout(300)
        if "slot=" in page.url:
            break
    expect(page.get_by_text(re.compile(r"History of slot \d"))).to_be_visible()
    settle(page)
    page.screenshot(path=tmp_path / "slots.png", full_page=True)


def test_a_finding_leads_to_its_slot_and_to_its_sql(
    address: str, page: Page, tmp_path: Path
) -> None:
    look(page, address)
    page.get_by_role("link", name="Slot 6 on the life lines").click()
    expect(page.get_by_text("History of slot 6")).to_be_visible()
    query = parse_qs(urlsplit(page.url).query)
    assert query["slot"] == ["6"]
    assert float(query["from"][0]) < float(query["until"][0])
    look(page, address)
    page.get_by_role("link", name="The witness in SQL").click()
    expect(page.get_by_text("3 rows in")).to_be_visible()
    settle(page)
    page.screenshot(path=tmp_path / "sql.png", full_page=True)


def test_a_wrong_pair_is_seen_and_leads_to_its_argument_and_back(
    paired: Callable[[str], Path], page: Page, tmp_path: Path
) -> None:
    with served(paired("wrong")) as url:
        look(page, f"{url}/pipeline?axis=order")
        expect(page.locator(".st-key-argument-pairs")).to_contain_text(
            "of forward 3 (micro-batch 0)"
        )
        assert red(page, "pipeline", tmp_path) > 500
        page.get_by_role("link", name=re.compile("D5 pairing: slot")).first.click()
        expect(page.get_by_text(re.compile("D5 pairing: slot")).first).to_be_visible()
        settle(page)
        page.get_by_role("link", name=re.compile("in the pipeline")).click()
        page.wait_for_url(re.compile("/pipeline.*at="))
        expect(page.get_by_text(re.compile(r"Forward \d+ on stage 0"))).to_be_visible()
        settle(page)
        assert page.evaluate("window.hit") is None


def test_a_clean_pipeline_has_no_red(
    paired: Callable[[str], Path], page: Page, tmp_path: Path
) -> None:
    with served(paired("right")) as url:
        look(page, f"{url}/pipeline?axis=order")
        assert red(page, "pipeline", tmp_path) == 0


def test_a_mismatched_node_is_seen_and_so_is_its_request(
    address: str, page: Page, tmp_path: Path
) -> None:
    look(page, address)
    page.get_by_role("link", name="Node 3 in the tree").click()
    expect(page.locator(".st-key-argument-nodes")).to_contain_text("has 256")
    settle(page)
    assert red(page, "tree", tmp_path) > 500
    page.get_by_role("link", name="D1 depth: slot 6").click()
    expect(page.get_by_role("link", name="Its request")).to_be_visible()
    settle(page)
    page.get_by_role("link", name="Its request").click()
    expect(page.locator(".st-key-request-name")).to_contain_text("chat-0003")
    settle(page)
    assert red(page, "depths", tmp_path) > 200


def test_odd_names_on_the_new_pages_run_nothing(address: str, page: Page, tmp_path: Path) -> None:
    for path, chart in (("tree", "tree"), ("capacity", "occupancy")):
        look(page, f"{address}/{path}")
        drawn(page, chart)
        page.screenshot(path=tmp_path / f"{path}.png", full_page=True)
    look(page, f"{address}/request?request={quote(HOSTILE)}")
    expect(page.locator(".st-key-request-name")).to_contain_text("![p](http://evil.example/p)")
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src*=evil], img[src=x]").count() == 0


def test_a_growing_trace_is_followed(page: Page, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    probe.start(trace, collector=False)
    try:
        tell = traces.Storyteller()
        traces.conversation(tell, "first", 130, 2)
        with served(trace) as url:
            look(page, url)
            expect(page.locator(".st-key-fact-requests")).to_contain_text("1")
            expect(page.locator(".st-key-identity")).to_contain_text("live")
            traces.conversation(tell, "second", 130, 2)
            expect(page.locator(".st-key-fact-requests")).to_contain_text("2", timeout=WAIT_MS)
            probe.stop()
            expect(page.locator(".st-key-identity")).to_contain_text("ended", timeout=WAIT_MS)
    finally:
        probe.stop()
