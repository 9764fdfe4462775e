"""Whole states: copied, cleared, scattered after a verify, and digested; all layers at once."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from . import reference


def copy(states: Sequence[Tensor], source: Tensor, target: Tensor) -> None:
    """Copy slots to slots in every component, so that a state can be resumed without being spent.

    Args:
        states: components, each [L, slots, ...]; the rows named by `target` change.
        source: [N] int64 slots to read. No slot but 0 is in both lists.
        target: [N] int64 slots to write, each but 0 once. A pair with a 0 is padding.
    """
    if source.is_cuda:
        from . import moves

        moves.copy(states, source, target)
    else:
        reference.copy(states, source, target)


def clear(states: Sequence[Tensor], slots: Tensor) -> None:
    """Set slots to zero in every component: the state of an empty prefix.

    Args:
        states: components, each [L, slots, ...]; the rows named by `slots` change.
        slots: [N] int64; 0 is padding.
    """
    if slots.is_cuda:
        from . import moves

        moves.clear(states, slots)
    else:
        reference.clear(states, slots)


def scatter(
    conv: Tensor,
    ssm: Tensor,
    conv_steps: Tensor,
    ssm_steps: Tensor,
    rows: Tensor,
    steps: Tensor,
    slots: Tensor,
) -> None:
    """After a verify: the chosen step's state of scratch row `rows[i]` goes to slot `slots[i]`.

    Args:
        conv: [L, slots, C, W-1]; the rows named by `slots` change, in `ssm` too.
        ssm: [L, slots, HV, K, V].
        conv_steps: [L, scratch rows, D, C, W-1], dtype of `conv`; state after each draft token.
        ssm_steps: [L, scratch rows, D, HV, K, V], dtype of `ssm`.
        rows: [N] int64 scratch rows to read.
        steps: [N] int64 step of each, in 0..D-1; -1 = nothing to move.
        slots: [N] int64 slots to write, each but 0 once; 0 is padding.
    """
    if slots.is_cuda:
        from . import moves

        moves.scatter(((conv, conv_steps), (ssm, ssm_steps)), rows, steps, slots)
    else:
        reference.scatter(((conv, conv_steps), (ssm, ssm_steps)), rows, steps, slots)


def digest(conv: Tensor, ssm: Tensor, slots: Tensor) -> Tensor:
    """A 64-bit hash of each slot's bytes, over all layers and both components.

    Equal on every device; README.md has the definition, and what a collision takes. It compares
    bytes: 0.0 and -0.0 differ, equal NaNs don't.

    Args:
        conv: [L, slots, C, W-1], any dtype.
        ssm: [L, slots, HV, K, V], any dtype.
        slots: [N] int64; may repeat.
    Returns:
        [N] int64, 0 for slot 0.
    """
    return digest_parts((conv, ssm), slots)


def digest_parts(states: Sequence[Tensor], slots: Tensor) -> Tensor:
    """`digest` of states that have any number of components, each [L, slots, ...]."""
    if slots.is_cuda:
        from . import digests

        return digests.digest(states, slots)
    return reference.digest(states, slots)
