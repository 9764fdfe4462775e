"""A profile's summary tells the hooks' device work from the rest, and sees a hook that waits."""

from __future__ import annotations

from typing import Any

from sglang_gpu.profile_ranges import summary


def event(name: str, category: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Any:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "ts": ts,
        "dur": dur,
        "tid": tid,
        "args": args,
    }


HOOK = event("slotscope", "user_annotation", 100, 50)
INSIDE = event("cudaLaunchKernel", "cuda_runtime", 110, 5, correlation=1)
AFTER = event("cudaLaunchKernel", "cuda_runtime", 160, 5, correlation=2)
OTHER_THREAD = event("cudaStreamSynchronize", "cuda_runtime", 120, 5, tid=2, correlation=3)
WORK = [
    event("cat", "kernel", 500, 7, correlation=1),
    event("gemm", "kernel", 510, 9, correlation=2),
]


def test_device_work_belongs_to_the_hook_that_launched_it() -> None:
    found = summary([HOOK, INSIDE, AFTER, OTHER_THREAD, *WORK])
    assert found["calls"] == {"cudaLaunchKernel": 1}
    assert found["device_us"] == {"cat": 7}
    assert found["all_device_us"] == 16
    assert found["waits"] == {}


def test_a_hook_that_waits_is_seen() -> None:
    waits = event("cudaStreamSynchronize", "cuda_runtime", 120, 20, correlation=4)
    assert summary([HOOK, INSIDE, waits])["waits"] == {"cudaStreamSynchronize": 1}
