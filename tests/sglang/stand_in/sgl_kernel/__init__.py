"""A stand-in, in plain torch, for the CUDA-only `sgl_kernel` wheel: what a hybrid model needs.

With this folder's parent first on PYTHONPATH, SGLang's CPU path (`SGLANG_USE_CPU_ENGINE=1`) finds
here the operators that it would take from the wheel. They follow the mathematics of each operator
and favour clarity over speed; every other operator is absent and says so by name.
"""

from typing import Any

from . import operators
from .absent import AbsentOperator, refuse_when_called
from .kvcacheio import copy_all_layer_kv_cache_cpu
from .mamba import causal_conv1d_fn_cpu, causal_conv1d_update_cpu, chunk_gated_delta_rule_cpu
from .speculative import (
    assign_draft_cache_locs_contiguous_cpu,
    assign_extend_cache_locs_cpu,
    assign_req_to_token_pool_cpu,
    build_draft_decode_metadata_cpu,
    build_tree_kernel_efficient_cpu,
    fill_accept_out_cache_loc_cpu,
    fill_bonus_tokens_cpu,
    reconstruct_indices_from_tree_mask,
    rotate_input_ids_cpu,
    verify_tree_greedy_cpu,
)
from .version import __version__

__all__ = [
    "__version__",
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_draft_decode_metadata_cpu",
    "build_tree_kernel_efficient_cpu",
    "causal_conv1d_fn_cpu",
    "causal_conv1d_update_cpu",
    "chunk_gated_delta_rule_cpu",
    "copy_all_layer_kv_cache_cpu",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "reconstruct_indices_from_tree_mask",
    "rotate_input_ids_cpu",
    "verify_tree_greedy_cpu",
]

# SGLang imports these at the top of modules, also where a text model on a CPU never calls them.
IMPORTED_BUT_UNUSED = {"merge_state_v2"}

operators.publish()


def __getattr__(name: str) -> Any:
    if name in IMPORTED_BUT_UNUSED:
        return refuse_when_called(name)
    if name.startswith("__"):
        raise AttributeError(name)
    raise AbsentOperator(name)
