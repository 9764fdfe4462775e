"""The causal convolution in front of the recurrence: each channel on its own, W taps.

A pool of windows is [slots, channels, W - 1]: the last inputs of each sequence. Slot index -1 is
a pad: zeros come out and nothing is written.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

SILU = (True, "silu", "swish")


def causal_conv1d_fn_cpu(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | bool | None = None,
    conv_states: Tensor | None = None,
    has_initial_state: Tensor | None = None,
    cache_indices: Tensor | None = None,
    query_start_loc: Tensor | None = None,
    seq_lens_cpu: list[int] | None = None,
) -> Tensor:
    """Prefill. x: [channels, T], sequences side by side; the result has the same shape.

    Each sequence starts from its window where `has_initial_state`, else from zeros, and leaves
    its last W - 1 inputs in the window. `query_start_loc` is [N + 1]; `seq_lens_cpu` is unread.
    """
    if conv_states is None or cache_indices is None or query_start_loc is None:
        raise NotImplementedError("The CPU stand-in convolves from a pool of windows alone.")
    output = torch.zeros_like(x)
    bounds = query_start_loc.tolist()
    for n, slot in enumerate(cache_indices.tolist()):
        inputs = x[:, bounds[n] : bounds[n + 1]]
        if slot < 0 or inputs.shape[1] == 0:
            continue
        window = conv_states[slot].to(x.dtype)
        if has_initial_state is None or not has_initial_state[n]:
            window = torch.zeros_like(window)
        history = torch.cat((window, inputs), dim=-1)
        output[:, bounds[n] : bounds[n + 1]] = _convolve(history, weight, bias, activation)
        conv_states[slot] = history[:, inputs.shape[1] :].to(conv_states.dtype)
    return output


def causal_conv1d_update_cpu(
    x: Tensor,
    conv_states: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | bool | None = None,
    conv_state_indices: Tensor | None = None,
    intermediate_conv_window: Tensor | None = None,
    intermediate_state_indices: Tensor | None = None,
    retrieve_next_token: Tensor | None = None,
    retrieve_next_sibling: Tensor | None = None,
    retrieve_parent_token: Tensor | None = None,
) -> Tensor:
    """Decode and verify. x: [N, channels] or [N, channels, D]; the result has the same shape.

    The window moves on by all D inputs, also in a verify: SGLang's own kernel does so, and the
    commit that follows puts the accepted window in its place. `intermediate_conv_window` [rows,
    steps, channels, W - 1] gets the window after each input. With a tree (`retrieve_*` [N, D]) a
    token's window holds its ancestors, and `retrieve_parent_token` is filled with the parents.
    """
    tokens = x[..., None] if x.dim() == 2 else x
    count, _, steps = tokens.shape
    output = torch.zeros_like(tokens)
    slots = range(count) if conv_state_indices is None else conv_state_indices.tolist()
    for n, slot in zip(range(count), slots, strict=False):
        if slot < 0:
            continue
        history = torch.cat((conv_states[slot].to(x.dtype), tokens[n]), dim=-1)
        conv_states[slot] = history[:, steps:].to(conv_states.dtype)
        if retrieve_next_token is None or retrieve_next_sibling is None:
            paths = history.unfold(-1, weight.shape[1], 1)
        else:
            parents = parents_of(retrieve_next_token[n], retrieve_next_sibling[n])
            paths = _paths(history, parents, weight.shape[1])
            if retrieve_parent_token is not None:
                retrieve_parent_token[n, :steps] = torch.tensor(parents)
        output[n] = _weigh(paths, weight, bias, activation)
        if intermediate_conv_window is not None and intermediate_state_indices is not None:
            row = int(intermediate_state_indices[n])
            if row >= 0:
                windows = paths[..., 1:].transpose(0, 1)
                _store_windows(intermediate_conv_window[row], windows)
    return output[..., 0] if x.dim() == 2 else output


def parents_of(next_token: Tensor, next_sibling: Tensor) -> list[int]:
    """Each node's parent, from the first child and the next sibling of each node [D]; root: 0."""
    parents = [0] * len(next_token)
    links = zip(next_token.tolist(), next_sibling.tolist(), strict=True)
    for node, (child, sibling) in enumerate(links):
        if child >= 0:
            parents[child] = node
        if sibling >= 0:
            parents[sibling] = parents[node]
    return parents


def _paths(history: Tensor, parents: list[int], width: int) -> Tensor:
    """For each node its last `width` inputs from the root's window down: [channels, D, width]."""
    before = history.shape[-1] - len(parents)
    paths = []
    for node in range(len(parents)):
        path = [node]
        while path[0] != 0:
            path.insert(0, parents[path[0]])
        at = [*range(before), *(before + i for i in path)]
        paths.append(history[:, at[-width:]])
    return torch.stack(paths, 1)


def _store_windows(buffer: Tensor, windows: Tensor) -> None:
    """buffer [steps, channels, W - 1] may be a view of overlapping windows: go step by step."""
    for step, window in enumerate(windows):
        buffer[step] = window.to(buffer.dtype)


def _convolve(
    history: Tensor, weight: Tensor, bias: Tensor | None, activation: str | bool | None
) -> Tensor:
    """history [channels, W - 1 + n] -> [channels, n]."""
    return _weigh(history.unfold(-1, weight.shape[1], 1), weight, bias, activation)


def _weigh(
    paths: Tensor, weight: Tensor, bias: Tensor | None, activation: str | bool | None
) -> Tensor:
    """paths [channels, n, W], oldest input first -> [channels, n] in the inputs' dtype."""
    summed = torch.einsum("cnw,cw->cn", paths.float(), weight.float())
    if bias is not None:
        summed = summed + bias.float()[:, None]
    return (F.silu(summed) if activation in SILU else summed).to(paths.dtype)
