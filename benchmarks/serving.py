"""The engine's tokens per second, tracing off and on, beside transformers' `generate`.

All on the bundled model, one thread, greedy, the same prompts. Windows alternate, and the figure is
the median window's, because other work on a shared machine comes and goes.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from rich.progress import Progress
from support.texts import distinct
from table import Table

from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.folder import BUNDLED, model_folder
from slotscope.engine.request import SamplingParams
from slotscope.instrument import probe

BATCHES = (1, 8)
WINDOWS = 5
PROMPT, ANSWER = 64, 96
LAZY: dict[str, Any] = {"mamba_radix_cache_strategy": "extra_buffer_lazy"}
ENGINES: dict[str, dict[str, Any]] = {
    "lazy": LAZY,
    "lazy, NGRAM": LAZY | {"speculative_algorithm": "NGRAM"},
    "lazy, NEXTN": LAZY | {"speculative_algorithm": "NEXTN"},
    "extra_buffer, NEXTN": {
        "mamba_radix_cache_strategy": "extra_buffer",
        "speculative_algorithm": "NEXTN",
    },
    "no_buffer, serial": {
        "mamba_radix_cache_strategy": "no_buffer",
        "disable_overlap_schedule": True,
    },
}

Prompts = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Window:
    """One run of a batch to its end, prefill included."""

    wall_s: float
    cpu_s: float  # of this thread


def window(serve: Callable[[], object]) -> Window:
    """Time it."""
    wall_s, cpu_s = time.perf_counter(), time.thread_time()
    serve()
    return Window(time.perf_counter() - wall_s, time.thread_time() - cpu_s)


class Served:
    """An engine that is asked the same again and again, its cache flushed before."""

    def __init__(self, knobs: dict[str, Any]) -> None:
        self.engine = Engine(
            EngineConfig(
                model_path=model_folder(Path(BUNDLED)),
                context_length=1024,
                max_running_requests=max(BATCHES),
                mamba_track_interval=64,
                **knobs,
            )
        )

    def __call__(self, prompts: Prompts) -> list[list[int]]:
        """The answers."""
        self.engine.flush_cache()
        asked = SamplingParams(max_new_tokens=ANSWER, temperature=0, ignore_eos=True)
        return [request.output for request in self.engine.generate(prompts, asked)]


class Transformers:
    """The same weights and prompts, the library's own loop."""

    def __init__(self) -> None:
        from transformers import AutoModelForCausalLM, logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        folder = model_folder(Path(BUNDLED))
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._model.generation_config.eos_token_id = None  # goes on behind it, as the engine does

    @torch.inference_mode()
    def __call__(self, prompts: Prompts) -> list[list[int]]:
        """The answers."""
        given = torch.tensor(prompts)
        out = self._model.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=ANSWER,
            do_sample=False,
        )
        answers: list[list[int]] = out[:, PROMPT:].tolist()
        return answers


def run() -> Table:
    """All engines and transformers, at each batch size."""
    torch.set_num_threads(1)
    table = Table(
        "serving",
        "Tokens generated per second on the bundled model",
        notes=[
            f"Prompts of {PROMPT} tokens, answers of {ANSWER}, float32, one thread; median of "
            f"{WINDOWS} windows, tracing off and on in turn, prefill included.",
            "Per CPU second: of the engine's thread; steadier than the clock on a shared machine.",
        ],
    )
    engines = {name: Served(knobs) for name, knobs in ENGINES.items()}
    plain = Transformers()
    prompts = distinct(max(BATCHES), PROMPT)
    with Progress() as progress:
        task = progress.add_task("serving", total=WINDOWS * len(BATCHES) * (1 + 2 * len(engines)))
        for batch in BATCHES:
            _measure(table, engines, plain, prompts[:batch], lambda: progress.advance(task))
    return table


def _measure(
    table: Table,
    engines: dict[str, Served],
    plain: Transformers,
    prompts: Prompts,
    tick: Callable[[], None],
) -> None:
    expected = plain(prompts)
    windows: dict[tuple[str, bool], list[Window]] = defaultdict(list)
    same = 0
    for served in engines.values():
        same += served(prompts) == expected  # and everything is warm
    for _ in range(WINDOWS):
        windows["", False].append(window(lambda: plain(prompts)))
        tick()
        for name, served in engines.items():
            for traced in (False, True):
                windows[name, traced].append(_window(served, prompts, traced=traced))
                tick()
    tokens = len(prompts) * ANSWER
    for clock in ("wall_s", "cpu_s"):
        unit = "tokens/s" if clock == "wall_s" else "tokens/CPU s"
        rates = {
            key: tokens / median(getattr(each, clock) for each in found)
            for key, found in windows.items()
        }
        for name in engines:
            title = f"B = {len(prompts)}, {name}"
            off, on = rates[name, False], rates[name, True]
            table.add(f"{title}, tracing off", unit, off, rates["", False], "transformers")
            table.add(f"{title}, tracing on", unit, on, off, "tracing off")
    table.add(f"B = {len(prompts)}: same tokens", "engines", same, len(engines), "transformers")


def _window(served: Served, prompts: Prompts, *, traced: bool) -> Window:
    """The collector runs too, and what it costs is in the clock's figure."""
    if not traced:
        return window(lambda: served(prompts))
    with tempfile.TemporaryDirectory() as folder:
        probe.start(folder)
        try:
            return window(lambda: served(prompts))
        finally:
            probe.stop()
