"""Trees of draft tokens: node 0 is the last known token, the others hang below it.

A tree of D nodes is told by three rows of D: `retrive_index` (the node's place in the flat batch),
`retrive_next_token` (first child) and `retrive_next_sibling`, -1 where there is none. The
misspelling is the interface's. B is the number of requests.
"""

import torch
from torch import Tensor

FULL_MASK, QLEN_ONLY = 0, 1  # whether a mask's rows cover the whole sequence or the tree alone


def build_tree_kernel_efficient_cpu(
    parent_list: Tensor,
    selected_index: Tensor,
    verified_seq_len: Tensor,
    tree_mask: Tensor,
    positions: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    topk: int,
    depth: int,
    draft_token_num: int,
    tree_mask_mode: int,
) -> None:
    """Fill mask, positions and links of each request's tree from what the draft selected.

    Args:
        parent_list: [B, P], the score-grid index behind each group of topk candidates; group 0's
            parent is the root. selected_index: [B, D - 1], candidates in node order.
        tree_mask: flat bool, D rows a request; only the D columns of the tree are written.
        positions: [B * D]. The links: [B, D], preset to -1.
    """
    if tree_mask_mode not in (FULL_MASK, QLEN_ONLY):
        raise NotImplementedError(f"The CPU stand-in packs no tree masks; got {tree_mask_mode=}.")
    written = 0
    for b, length in enumerate(verified_seq_len.tolist()):
        parents = _selected_parents(parent_list[b].tolist(), selected_index[b].tolist(), topk)
        visible = _ancestors(parents)
        width = draft_token_num + (length if tree_mask_mode == FULL_MASK else 0)
        rows = tree_mask[written : written + draft_token_num * width].view(draft_token_num, width)
        rows[:, width - draft_token_num :] = visible
        written += draft_token_num * width
        flat = slice(b * draft_token_num, (b + 1) * draft_token_num)
        positions[flat] = visible.sum(1) - 1 + length
        _link(parents, b, retrive_index[b], retrive_next_token[b], retrive_next_sibling[b])


def reconstruct_indices_from_tree_mask(
    tree_mask: Tensor,
    verified_seq_len: Tensor,
    positions: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    batch_size: int,
    draft_token_num: int,
) -> None:
    """Fill positions and links from a mask [B, D, D] of ancestors, as NGRAM gives it."""
    masks = tree_mask.reshape(batch_size, draft_token_num, draft_token_num).bool()
    shape = (batch_size, draft_token_num)
    links = [x.view(shape) for x in (retrive_index, retrive_next_token, retrive_next_sibling)]
    for b, length in enumerate(verified_seq_len.tolist()):
        above = masks[b].tril(-1)
        parents = [max(row.nonzero().flatten().tolist(), default=-1) for row in above]
        positions.view(shape)[b] = above.sum(1) + length
        links[1][b], links[2][b] = -1, -1
        _link(parents, b, *(x[b] for x in links))


def verify_tree_greedy_cpu(
    predicts: Tensor,
    accept_index: Tensor,
    accept_token_num: Tensor,
    candidates: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    target_predict: Tensor,
) -> None:
    """Follow in each tree the children that hold the model's own next token.

    Args:
        predicts: [B * D], gets the model's token at each accepted node, the bonus token last.
        accept_index: [B, S], gets the accepted nodes' flat places, root first.
        accept_token_num: [B], gets the number of accepted nodes without the root.
        candidates: [B, D] draft tokens. target_predict: [B, D], the model's token after each node.
    """
    wanted = target_predict.reshape(-1).tolist()
    for b, tokens in enumerate(candidates.tolist()):
        places = retrive_index[b].tolist()
        children, siblings = retrive_next_token[b].tolist(), retrive_next_sibling[b].tolist()
        node, accepted = 0, [places[0]]
        while len(accepted) < accept_index.shape[1]:
            child = children[node]
            while child != -1 and tokens[child] != wanted[accepted[-1]]:
                child = siblings[child]
            if child == -1:
                break
            node = child
            accepted.append(places[node])
        accept_index[b, : len(accepted)] = torch.tensor(accepted, dtype=accept_index.dtype)
        accept_token_num[b] = len(accepted) - 1
        predicts[accepted] = torch.tensor([wanted[i] for i in accepted], dtype=predicts.dtype)


def _selected_parents(parent_list: list[int], selected: list[int], topk: int) -> list[int]:
    """Each node's parent node; -1 for the root."""
    parents = [-1]
    for candidate in selected:
        group = candidate // topk
        parents.append(0 if group == 0 else selected.index(parent_list[group]) + 1)
    return parents


def _ancestors(parents: list[int]) -> Tensor:
    """[D, D] bool: which nodes each node follows, itself among them."""
    visible = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        while parent != -1:
            visible[node, parent] = True
            parent = parents[parent]
    return visible


def _link(parents: list[int], b: int, index: Tensor, child: Tensor, sibling: Tensor) -> None:
    """Write request b's three rows; children hang in the order of their numbers."""
    index.copy_(torch.arange(len(parents)) + b * len(parents))
    youngest: dict[int, int] = {}
    for node, parent in enumerate(parents):
        if parent == -1:
            continue
        if parent in youngest:
            sibling[youngest[parent]] = node
        else:
            child[parent] = node
        youngest[parent] = node
