"""Plugin: what SGLang loads in place of slotscope's, to measure it from inside the scheduler.

A thread obeys a command file, so that the driver can switch things between two windows.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import weights

PLACE = Path(os.environ.get("DRIVE_COMMANDS", "/tmp/drive"))


class Steps:
    """A row for each `Scheduler.run_batch`: when, mode, requests, the meter's count."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int, int]] = []
        self.profile: Any = None
        self.left = 0  # forwards that the profile still takes
        self.wanted: tuple[int, str] | None = None  # forwards of a profile, and its file
        self.digests: Any = None  # the plugin's, while they are switched off

    def run_batch(self, original: Any, scheduler: Any, batch: Any, *args: Any, **kw: Any) -> Any:
        """Hook: note when a forward is launched; begin and end a profile in this very thread."""
        import meter

        if self.wanted is not None and self.profile is None:
            self._begin()
        counted = (meter.METER.ns, meter.METER.calls)
        mode = int(batch.forward_mode)
        self.rows.append((time.perf_counter_ns(), mode, len(batch.reqs), *counted))
        result = original(scheduler, batch, *args, **kw)
        if self.profile is not None:
            self.left -= 1
            if self.left == 0:
                self._end()
        return result

    def _begin(self) -> None:
        import meter
        from torch.profiler import ProfilerActivity, profile

        assert self.wanted is not None
        self.left = self.wanted[0]
        self.profile = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        self.profile.__enter__()
        meter.METER.marking = True

    def _end(self) -> None:
        import meter

        assert self.wanted is not None
        meter.METER.marking = False
        self.profile.__exit__(None, None, None)
        self.profile.export_chrome_trace(self.wanted[1])
        self.profile = self.wanted = None


STEPS = Steps()


def register() -> None:
    """SGLang's entry point."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    weights.install()
    if "DRIVE_COMMANDS" not in os.environ:
        return
    import meter

    from slotscope.instrument.sglang import plugin

    at = "sglang.srt.managers.scheduler.Scheduler.run_batch"
    HookRegistry.register(at, _first, HookType.BEFORE)
    HookRegistry.register(at, STEPS.run_batch, HookType.AROUND)
    meter.install()
    plugin.register()


def _first(*_: Any, **__: Any) -> None:
    """Only the process that runs batches obeys."""
    if not any(thread.name == "obey" for thread in threading.enumerate()):
        threading.Thread(target=_obey, name="obey", daemon=True).start()


def _obey() -> None:
    import meter

    switch = meter.Switch()
    command = PLACE / "command"
    while True:
        time.sleep(0.02)
        if not command.exists():
            continue
        words = command.read_text().split()
        try:
            answer = _carry_out(words, switch, meter.METER)
        except Exception as error:
            answer = {"error": repr(error)}
        (PLACE / "answer").write_text(json.dumps(answer))
        command.unlink()


def _carry_out(words: list[str], switch: Any, meter: Any) -> Any:
    match words:
        case ["hooks", state]:
            switch.turn(state == "on")
            return len(switch._places)
        case ["level", level]:
            scene = meter.watch._scene
            STEPS.digests = STEPS.digests or scene.digests
            scene.digests = STEPS.digests if level == "2" else None
        case ["strict", state]:
            meter.strict = state == "on"
        case ["set", name, value]:
            os.environ[name] = value
        case ["unset", name]:
            os.environ.pop(name, None)
        case ["profile", forwards, file]:
            STEPS.wanted = int(forwards), file
        case ["reset"]:
            STEPS.rows.clear()
        case ["rows"]:
            return list(STEPS.rows)
        case ["failures"]:
            return meter.watch.failures
    return None
