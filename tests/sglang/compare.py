"""The stand-in's operators against SGLang's own Triton kernels, run by Triton's interpreter.

usage: compare.py     (with an environment's Python and a CPU run's variables)

Prints a line for each operator that agrees; raises at the first that doesn't. These are the
recurrence and the trees. The attention and the commits refuse CPU tensors, and the interpreter
trips over the convolution's masks: those have torch's own operators and loops as references.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from sgl_kernel import recurrence, speculative
from sglang.kernels.ops.attention.linear import fused_sigmoid_gating_recurrent as their_recurrence
from sglang.kernels.ops.speculative import reconstruct_tree, spec_tree
from torch import Tensor

STEPS = 4
# 0 -> (1 -> 3, 2)
PARENT = [0, 0, 0, 1]


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def agree(ours: list[Tensor], theirs: list[Tensor]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other.to(mine.dtype), rtol=1e-4, atol=1e-5)


def recurrent_steps(steps: int, tree: bool) -> None:
    heads, value_heads, key, value = 2, 4, 16, 16
    slots, rows = (torch.tensor(x, dtype=torch.int32) for x in ([3, 1], [0, 2]))
    tokens = 2 * steps

    def run(update: Callable[..., Tensor]) -> list[Tensor]:
        states = draw(5, value_heads, value, key)
        scratch = torch.zeros(3, steps, value_heads, value, key)
        verify: dict[str, Any] = {}
        if steps > 1:
            verify = {
                "disable_state_update": True,
                "intermediate_states_buffer": scratch,
                "intermediate_state_indices": rows,
                "cache_steps": steps,
                "retrieve_parent_token": torch.tensor([PARENT] * 2) if tree else None,
            }
        out = update(
            A_log=draw(value_heads), dt_bias=draw(value_heads, seed=1),
            q=draw(1, tokens, heads, key), k=draw(1, tokens, heads, key, seed=1),
            v=draw(1, tokens, value_heads, value), a=draw(tokens, value_heads),
            b=draw(tokens, value_heads, seed=1), initial_state_source=states,
            initial_state_indices=slots, use_qk_l2norm_in_kernel=True, softplus_beta=1.0,
            softplus_threshold=20.0,
            cu_seqlens=torch.arange(0, tokens + 1, steps, dtype=torch.int32), **verify,
        )  # fmt: skip
        return [out.reshape(tokens, value_heads, value), states, scratch]

    ours = run(recurrence.fused_sigmoid_gating_delta_rule_update_cpu)
    agree(ours, run(their_recurrence.fused_sigmoid_gating_delta_rule_update))


def trees() -> None:
    """Build from a selection, take apart from a mask, and walk: three kernels on one tree."""
    parents = torch.tensor([[-1, 0, 1], [-1, 0, 1]])
    selected, lengths = torch.tensor([[0, 1, 2, 3]] * 2), torch.tensor([6, 2])
    nodes = 5
    for mode in (0, 1):
        width = int(lengths.sum()) * nodes * (mode == 0) + 2 * nodes * nodes

        def built(build: Callable[..., None], mode: int = mode, width: int = width) -> list[Tensor]:
            mask, at = torch.ones(width, dtype=torch.bool), torch.zeros(2 * nodes).long()
            links = [torch.full((2, nodes), -1) for _ in range(3)]
            build(parents, selected, lengths, mask, at, *links, 2, 2, nodes, mode)
            return [mask, at, *links]

        mine = built(speculative.build_tree_kernel_efficient_cpu)
        agree(mine, built(spec_tree.sgl_build_tree_kernel_triton))
    links, mask = mine[2:], mine[0]

    def taken_apart(rebuild: Callable[..., None]) -> list[Tensor]:
        out = [torch.zeros(2 * nodes).long() for _ in range(4)]
        rebuild(mask.clone(), lengths, *out, 2, nodes)
        return out

    ours = taken_apart(speculative.reconstruct_indices_from_tree_mask)
    agree(ours, taken_apart(reconstruct_tree.reconstruct_indices_from_tree_mask_triton))
    for seed in range(5):
        choose = random.Random(seed)
        candidates, wanted = (
            torch.tensor([[choose.randrange(3) for _ in range(nodes)] for _ in range(2)])
            for _ in range(2)
        )

        def walked(
            walk: Callable[..., None], candidates: Tensor = candidates, wanted: Tensor = wanted
        ) -> list[Tensor]:
            predicts, count = torch.full((2 * nodes,), -1).int(), torch.zeros(2).int()
            accepted = torch.full((2, 3), -1).int()
            walk(predicts, accepted, count, candidates, *links, wanted)
            return [predicts, accepted, count]

        agree(
            walked(speculative.verify_tree_greedy_cpu), walked(spec_tree.verify_tree_greedy_triton)
        )


def main() -> None:
    comparisons: list[tuple[str, Callable[[], None]]] = [
        ("recurrence, decode", lambda: recurrent_steps(1, tree=False)),
        ("recurrence, chain", lambda: recurrent_steps(STEPS, tree=False)),
        ("recurrence, tree", lambda: recurrent_steps(STEPS, tree=True)),
        ("trees", trees),
    ]
    for name, compare in comparisons:
        compare()
        print(f"agree: {name}", flush=True)  # noqa: T201 # what this script is for


if __name__ == "__main__":
    main()
