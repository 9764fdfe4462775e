"""How long a call takes, on a GPU or on the CPU, and what a plain copy reaches there."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor


def size(*tensors: Tensor) -> int:
    """Their bytes."""
    return sum(x.numel() * x.itemsize for x in tensors)


def seconds(run: Callable[[], object], device: torch.device, *, graph: bool = True) -> float:
    """Median time of a call, after a first one.

    On a GPU it is replayed as a CUDA graph, since Python takes longer to launch a small kernel
    than that takes to run; and the cache is flushed before each call.
    """
    run()
    if device.type == "cuda":
        from triton.testing import do_bench

        if graph:
            recorded = torch.cuda.CUDAGraph()
            with torch.cuda.graph(recorded):
                run()
            run = recorded.replay
        return float(do_bench(run, return_mode="median")) / 1e3
    times = []
    for _ in range(20):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def copy_bandwidth(device: torch.device) -> float:
    """Bytes read and written in a second by a copy that fits in no cache.

    It isn't replayed as a graph, whose copy nodes reach two thirds of this on an H200.
    """
    source = torch.ones(2**30 if device.type == "cuda" else 2**25, device=device)
    target = torch.ones_like(source)
    return 2 * size(source) / seconds(lambda: target.copy_(source), device, graph=False)
