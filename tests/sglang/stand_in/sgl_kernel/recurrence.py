"""The gated delta rule, token by token in fp32.

Each head keeps a state S [V, K]. A token with key k, value v, query q, log decay g and write
strength b does (Yang et al., arXiv:2412.06464, equation 10, transposed):

    S <- exp(g) S;   S <- S + b (v - S k) k^T;   o = S q / sqrt(K)

Letters: T tokens, N sequences, D tokens of each in a verify, H key heads, HV value heads, K and V
head sizes. A pool of states is [slots, HV, V, K]; slot index -1 is a pad: it reads zeros, and
nothing is written.
"""

import torch
from torch import Tensor

from .gates import log_decay

CHUNK = 64  # tokens between two states that a prefill hands out


def chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    states: Tensor,
    slots: Tensor,
    cu_seqlens: Tensor,
    normalise: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Prefill: run every sequence from the state in its slot, and leave the last state there.

    Args:
        q, k: [1, T, H, K]. v: [1, T, HV, V]. g, beta: [1, T, HV].
        states: the pool, changed in place. slots: [N]. cu_seqlens: [N + 1].
    Returns:
        o [1, T, HV, V] in v's dtype, the last states [N, HV, V, K] fp32, and h [1, C, HV, V, K]
        fp32: the state before each chunk of CHUNK tokens, sequence after sequence.
    """
    heads = v.shape[-2]
    query, key = _keys(q[0], k[0], heads, normalise)
    value, strength = v[0].float(), beta[0].float()
    decay = g[0].float().exp()
    output = torch.zeros_like(v[0])
    last, before_chunks = [], []
    bounds = cu_seqlens.tolist()
    for n, slot in enumerate(slots.tolist()):
        state = _read(states, slots[n : n + 1])
        for t in range(bounds[n], bounds[n + 1]):
            if (t - bounds[n]) % CHUNK == 0:
                before_chunks.append(state[0])
            one = slice(t, t + 1)
            state, out = _step(state, query[one], key[one], value[one], decay[one], strength[one])
            output[t] = out[0].to(output.dtype)
        last.append(state[0])
        if slot >= 0 and bounds[n + 1] > bounds[n]:
            states[slot] = state[0].to(states.dtype)
    chunks = torch.stack(before_chunks) if before_chunks else states.new_zeros(0, *states.shape[1:])
    return output[None], torch.stack(last), chunks[None]


def fused_sigmoid_gating_delta_rule_update_cpu(
    A_log: Tensor,
    dt_bias: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    initial_state_source: Tensor,
    initial_state_indices: Tensor,
    cu_seqlens: Tensor,
    use_qk_l2norm_in_kernel: bool,
    softplus_beta: float = 1.0,
    softplus_threshold: float = 20.0,
    is_kda: bool = False,
    disable_state_update: bool = False,
    intermediate_states_buffer: Tensor | None = None,
    intermediate_state_indices: Tensor | None = None,
    cache_steps: int | None = None,
    retrieve_parent_token: Tensor | None = None,
) -> Tensor:
    """Decode (one token a sequence) and verify (D tokens a sequence, along a chain or a tree).

    Args:
        q, k: [1, N * D, H, K]. v: [1, N * D, HV, V]. a, b: [N * D, HV].
        initial_state_source: the pool; changed unless `disable_state_update`.
        initial_state_indices: [N] slots. cu_seqlens: [N + 1], equal steps of D.
        intermediate_states_buffer: [rows, steps, HV, V, K]; gets the state after each of the D
            tokens at row `intermediate_state_indices[n]`, unless that row is negative.
        retrieve_parent_token: [N, D], the earlier token of the tree that each one follows.
    Returns:
        o [1, N * D, HV, V] in v's dtype.
    """
    if is_kda or (softplus_beta, softplus_threshold) != (1.0, 20.0):
        raise NotImplementedError(
            "The CPU stand-in has the gated delta rule with softplus(1, 20) alone; it got "
            f"{is_kda=}, {softplus_beta=}, {softplus_threshold=}."
        )
    sequences, heads = len(cu_seqlens) - 1, v.shape[-2]
    steps = _equal_steps(cu_seqlens)
    query, key = _keys(q[0], k[0], heads, use_qk_l2norm_in_kernel)
    decay = log_decay(A_log, a.reshape(-1, heads), dt_bias).exp()
    strength = torch.sigmoid(b.reshape(-1, heads).float())
    tokens = [
        x.unflatten(0, (sequences, steps)) for x in (query, key, v[0].float(), decay, strength)
    ]
    initial = _read(initial_state_source, initial_state_indices[:sequences])
    after: list[Tensor] = []
    outputs = []
    for i in range(steps):
        if i == 0:
            state = initial
        elif retrieve_parent_token is None:
            state = after[-1]
        else:
            parent = retrieve_parent_token[:sequences, i].long()
            state = torch.stack(after, 1)[torch.arange(sequences), parent]
        state, out = _step(state, *(x[:, i] for x in tokens))
        after.append(state)
        outputs.append(out)
    if intermediate_states_buffer is not None and intermediate_state_indices is not None:
        _write(intermediate_states_buffer[:, :steps], intermediate_state_indices[:sequences], after)
    if not disable_state_update and after:
        valid = initial_state_indices[:sequences] >= 0
        slots = initial_state_indices[:sequences][valid].long()
        initial_state_source[slots] = after[-1][valid].to(initial_state_source.dtype)
    return torch.stack(outputs, 1).flatten(0, 1).to(v.dtype)[None]


def _step(
    state: Tensor, query: Tensor, key: Tensor, value: Tensor, decay: Tensor, strength: Tensor
) -> tuple[Tensor, Tensor]:
    """One token of N sequences: state [N, HV, V, K] -> the next one, and the output [N, HV, V]."""
    state = state * decay[..., None, None]
    error = value - torch.einsum("nhvk,nhk->nhv", state, key)
    state = state + torch.einsum("nhv,nhk->nhvk", strength[..., None] * error, key)
    return state, torch.einsum("nhvk,nhk->nhv", state, query)


def _keys(q: Tensor, k: Tensor, heads: int, normalise: bool) -> tuple[Tensor, Tensor]:
    """Query and key [T, HV, K] fp32: unit length where asked, one copy for each value head."""
    query, key = q.float(), k.float()
    if normalise:
        query, key = (
            x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6) for x in (query, key)
        )
    copies = heads // q.shape[-2]
    query = query.repeat_interleave(copies, -2) * q.shape[-1] ** -0.5
    return query, key.repeat_interleave(copies, -2)


def _read(states: Tensor, slots: Tensor) -> Tensor:
    """The states in these slots [N, HV, V, K] fp32; zeros for a pad."""
    return states[slots.clamp(min=0).long()].float() * (slots >= 0)[:, None, None, None]


def _write(buffer: Tensor, rows: Tensor, after: list[Tensor]) -> None:
    """buffer [rows, D, ..] gets the D states of each sequence with a row that is not negative."""
    valid = rows >= 0
    buffer[rows[valid].long()] = torch.stack(after, 1)[valid].to(buffer.dtype)


def _equal_steps(cu_seqlens: Tensor) -> int:
    lengths = cu_seqlens.diff().unique().tolist()
    if len(lengths) > 1:
        raise ValueError(
            f"A decode or verify gives every sequence the same number of tokens; got {lengths}."
        )
    return int(lengths[0]) if lengths else 0
