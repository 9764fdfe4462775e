"""Drive: one real SGLang engine on a GPU, asked for what shows the plugin's use, or its cost.

usage: drive.py {plain,nextn} {alias,cost} RESULT.json [ENGINE_ARGUMENTS as JSON]

`alias` asks prompts that end one, two and six tokens before a boundary, cold and warm; the trace is
slotscope's. `cost` compares many short windows, in turn with and without the hooks.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLACE = Path(os.environ.get("DRIVE_COMMANDS", "/tmp/drive"))
BOUNDARY = 256
WINDOWS = int(os.environ.get("WINDOWS", "12"))
TOKENS = int(os.environ.get("TOKENS", "260"))
MODES = os.environ.get("MODES", "off,1").split(",")
EXTEND = 1  # SGLang's ForwardMode of a prefill


def arguments(kind: str, more: dict[str, Any]) -> dict[str, Any]:
    """The engine's."""
    model = str(HERE / "model")
    found: dict[str, Any] = {
        "model_path": model,
        "load_format": "dummy",  # weights.py draws them anew
        "skip_tokenizer_init": True,
        "mamba_radix_cache_strategy": "extra_buffer_lazy",
        "mamba_track_interval": BOUNDARY,
        "attention_backend": "triton",
        "sampling_backend": "pytorch",
        "grammar_backend": "none",
        "mm_feature_transport": "cpu",
        "disable_prefill_cuda_graph": True,
        "cuda_graph_bs_decode": [1, 2, 4, 8, 16, 32, 64, 128],
        "max_running_requests": 130,
        "max_mamba_cache_size": 600,
        "max_total_tokens": 400_000,
        "chunked_prefill_size": 8192,
        "mem_fraction_static": 0.6,
        "random_seed": 1,
    }
    if kind == "nextn":
        found |= {
            "speculative_algorithm": "NEXTN",
            "speculative_draft_model_path": model,
            "speculative_num_steps": 3,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": 4,
        }
    return found | more


class Engine:
    """An SGLang engine, and the commands that its scheduler obeys."""

    def __init__(self, given: dict[str, Any]) -> None:
        import sglang

        since = time.monotonic()
        self._engine = sglang.Engine(**given)
        say(f"engine started in {time.monotonic() - since:.0f} s")

    def ask(self, prompts: list[list[int]], tokens: int, logprob: bool = False) -> list[Any]:
        """Greedy answers of a batch."""
        sampling = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
        found: list[Any] = self._engine.generate(
            input_ids=prompts, sampling_params=sampling, return_logprob=logprob
        )
        return found

    def flush(self) -> None:
        """Empty the caches. A scheduler refuses while it retires a request."""
        for _ in range(100):
            if getattr(self._engine.flush_cache(), "success", True):
                return
            time.sleep(0.02)
        raise RuntimeError("the cache was not flushed")

    def tell(self, command: str) -> Any:
        """Have the scheduler's process carry out a command."""
        (PLACE / "written").write_text(command)
        (PLACE / "written").rename(PLACE / "command")
        until = time.monotonic() + 60
        while (PLACE / "command").exists():
            if time.monotonic() > until:
                raise RuntimeError(f"{command} was not taken")
            time.sleep(0.01)
        return json.loads((PLACE / "answer").read_text())

    def end(self) -> None:
        self._engine.shutdown()


def prompt(length: int, seed: int) -> list[int]:
    """Random tokens."""
    draw = random.Random(seed)
    return [draw.randrange(10, 4000) for _ in range(length)]


def alias(engine: Engine) -> list[dict[str, Any]]:
    """Each prompt cold, warm, and cold again: what was cached, and whether the answers agree."""
    rows = []
    lengths = json.loads(os.environ.get("LENGTHS", "[255, 250, 254]"))
    for length in lengths:
        for tokens in (2, 8):
            for i in range(4):
                asked = [prompt(length, 1000 * length + 10 * tokens + i)]
                engine.flush()
                (donor,) = engine.ask(asked, tokens, logprob=True)
                (warm,) = engine.ask(asked, 24, logprob=True)
                engine.flush()
                (cold,) = engine.ask(asked, 24, logprob=True)
                rows.append(
                    {
                        "length": length,
                        "donor_tokens": tokens,
                        "requests": [each["meta_info"]["id"] for each in (donor, warm, cold)],
                        "cached": [x["meta_info"]["cached_tokens"] for x in (donor, warm, cold)],
                        "warm": warm["output_ids"],
                        "cold": cold["output_ids"],
                        "logprob_difference": abs(_logprob(warm) - _logprob(cold)),
                    }
                )
        some = [row for row in rows if row["length"] == length]
        differs = sum(row["warm"][0] != row["cold"][0] for row in some)
        say(f"length {length}: first token differs in {differs} of {len(some)}", some[0]["cached"])
    return rows


def cost(engine: Engine) -> dict[str, Any]:
    """Windows in turn, for each batch size; then a profile, and windows that forbid waiting."""
    found: dict[str, Any] = {"windows": [], "profiles": {}}
    for batch in (128, 32):
        window(engine, batch, "1")  # warms up
    for batch in (32, 128):
        for turn in range(WINDOWS):
            for mode in MODES if turn % 2 else MODES[::-1]:
                found["windows"].append(window(engine, batch, mode))
        say(json.dumps(table(found["windows"], batch)))
    found["strict"] = []
    for mode in MODES[1:]:
        switch(engine, mode)
        engine.tell("strict on")
        window(engine, 32, mode, 40)
        churn(engine, 64)
        engine.tell("strict off")
        found["strict"].append({"level": mode, "failures": engine.tell("failures")})
        say("strict", found["strict"][-1])
    for mode in MODES[1:]:
        for name, work in (("decode", lambda: None), ("churn", lambda: churn(engine, 128))):
            switch(engine, mode)
            churn(engine, 8)
            file = f"/tmp/profile-{name}-{mode}.json"
            engine.tell(f"profile 60 {file}")
            work() if name == "churn" else engine.ask([prompt(200, i) for i in range(128)], 70)
            engine.ask([prompt(200, 7)], 70)  # should the profile want more forwards
            found["profiles"][f"{name}-{mode}"] = _profile(file)
            say(name, mode, json.dumps(found["profiles"][f"{name}-{mode}"]))
    return found


def switch(engine: Engine, mode: str) -> None:
    """off: all hooks are taken off. 1, 2: they are on, at that level."""
    engine.flush()
    engine.tell(f"hooks {'off' if mode == 'off' else 'on'}")
    if mode != "off" and len(MODES) > 2:
        engine.tell(f"level {mode}")


def window(engine: Engine, batch: int, mode: str, tokens: int = TOKENS) -> dict[str, Any]:
    """One batch of requests that start together, and what its decode steps took."""
    switch(engine, mode)
    engine.flush()
    engine.tell("reset")
    prompts = [prompt(200 + (i * 7) % 64, 7000 + i) for i in range(batch)]
    since = time.monotonic()
    answers = engine.ask(prompts, tokens)
    seconds = time.monotonic() - since
    rows = [row for row in engine.tell("rows") if row[1] != EXTEND and row[2] == batch]
    rows = rows[5:-3]
    steps = [(after[0] - before[0]) / 1e3 for before, after in zip(rows, rows[1:], strict=False)]
    hooks = [(after[3] - before[3]) / 1e3 for before, after in zip(rows, rows[1:], strict=False)]
    calls = [after[4] - before[4] for before, after in zip(rows, rows[1:], strict=False)]
    written = sum(len(answer["output_ids"]) for answer in answers)
    accepted = [answer["meta_info"].get("spec_accept_length") for answer in answers]
    return {
        "batch": batch,
        "mode": mode,
        "steps": len(steps),
        "step_us_median": statistics.median(steps),
        "step_us_mean": statistics.mean(steps),
        "hooks_us_median": statistics.median(hooks),
        "hooks_us_mean": statistics.mean(hooks),
        "hooks_us_p99": sorted(hooks)[int(len(hooks) * 0.99)],
        "calls_mean": statistics.mean(calls),
        "tokens_per_s": written / seconds,
        "accepted": statistics.mean(accepted) if accepted[0] else None,
    }


def churn(engine: Engine, requests: int) -> None:
    """Short requests that come and go, some of them twice, so that checkpoints are restored."""
    draw = random.Random(77)
    prompts = [prompt(draw.randrange(200, 400), i % max(1, requests // 2)) for i in range(requests)]
    engine.ask(prompts, 12)
    engine.ask(prompts, 12)


def table(windows: list[dict[str, Any]], batch: int) -> list[dict[str, Any]]:
    """Medians over windows, with quartiles."""
    rows = []
    for mode in MODES:
        some = [each for each in windows if (each["batch"], each["mode"]) == (batch, mode)]
        row: dict[str, Any] = {"batch": batch, "mode": mode, "windows": len(some)}
        for name in ("step_us_median", "hooks_us_median", "hooks_us_mean", "calls_mean",
                     "tokens_per_s"):  # fmt: skip
            row[name] = [round(x, 1) for x in statistics.quantiles([w[name] for w in some], n=4)]
        rows.append(row)
    return rows


def say(*words: Any) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def _logprob(answer: Any) -> float:
    found: float = answer["meta_info"]["output_token_logprobs"][0][0]
    return found


def _profile(file: str) -> dict[str, Any]:
    import profile_ranges

    until = time.monotonic() + 20
    while not Path(file).exists() and time.monotonic() < until:
        time.sleep(0.2)
    time.sleep(1.5)  # it is being written
    return profile_ranges.summary(json.loads(Path(file).read_text())["traceEvents"])


def main() -> None:
    kind, what, result = sys.argv[1:4]
    given = arguments(kind, json.loads(sys.argv[4]) if len(sys.argv) > 4 else {})
    PLACE.mkdir(parents=True, exist_ok=True)
    engine = Engine(given)
    try:
        engine.ask([prompt(300, 1)], 8)
        found = alias(engine) if what == "alias" else cost(engine)
        Path(result).write_text(json.dumps({"arguments": given, what: found}, indent=1))
        say("done")
    finally:
        engine.end()


if __name__ == "__main__":
    main()
