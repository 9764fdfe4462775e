"""The host tier of the prefix cache (HiCache): its copies, where both sides are host memory.

SGLang imports the operators on GPUs alone, and registers host buffers with CUDA. The tree, the
queues of transfers and their acknowledgements are the real ones; a copy is done when it is asked.
Serve with `hicache_io_backend="direct"` and `hicache_mem_layout="page_first_direct"`.
"""

import importlib
from types import ModuleType

from sgl_kernel import kvcacheio

POOLS = "sglang.srt.mem_cache.pool_host"
OPERATORS = ("transfer_kv_all_layer_direct_lf_pf", "transfer_kv_per_layer_direct_pf_lf")


def register() -> None:
    """Does nothing in a release that keeps its host pools elsewhere."""
    common = _module("common")
    for pool in (_module("mha"), _module("mamba")):
        for operator in OPERATORS if pool else ():
            setattr(pool, operator, getattr(kvcacheio, operator))
    if common is not None:
        common.ALLOC_MEMORY_FUNCS["cpu"] = common.alloc_with_pin_memory


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"{POOLS}.{name}")
    except ImportError:
        return None
