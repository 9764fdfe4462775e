"""Profile ranges: what slotscope's hooks asked of the device, read from a profile of SGLang.

usage: profile_ranges.py TRACE.json
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any

RANGE = "slotscope"
WAITING = ("Synchronize", "cudaStreamWaitValue")  # runtime calls in which the host waits


def summary(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Runtime calls made inside the hooks' ranges, and the device work that they started.

    Returns:
        calls: runtime calls inside, by name. waits: those in which the host waits.
        device_us, device_ops: of the work inside, by name. all_device_us, all_ops: of the profile.
        ranges, ranges_us: the hooks.
    """
    events = [event for event in events if event.get("ph") == "X"]
    spans = sorted(
        (event["tid"], event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["name"] == RANGE and event.get("cat") == "user_annotation"
    )
    calls: Counter[str] = Counter()
    inside: set[int] = set()
    for event in events:
        if event.get("cat") in ("cuda_runtime", "cuda_driver"):
            at = bisect_right(spans, (event["tid"], event["ts"], float("inf"))) - 1
            if at >= 0 and spans[at][0] == event["tid"] and event["ts"] <= spans[at][2]:
                calls[event["name"]] += 1
                inside.add(event["args"]["correlation"])
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    ours = [event for event in work if event["args"].get("correlation") in inside]
    times: Counter[str] = Counter()
    for event in ours:
        times[event["name"][:60]] += event["dur"]
    return {
        "ranges": len(spans),
        "ranges_us": round(sum(end - start for _, start, end in spans), 1),
        "calls": dict(calls),
        "waits": {n: c for n, c in calls.items() if any(word in n for word in WAITING)},
        "device_ops": dict(Counter(event["name"][:60] for event in ours)),
        "device_us": {name: round(us, 1) for name, us in times.items()},
        "all_ops": len(work),
        "all_device_us": round(sum(event["dur"] for event in work), 1),
    }


if __name__ == "__main__":
    trace = json.loads(Path(sys.argv[1]).read_text())
    sys.stdout.write(json.dumps(summary(trace["traceEvents"]), indent=1) + "\n")
