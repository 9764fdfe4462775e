"""`slotscope slots`: the slots of a trace, or the life of one."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Format, FormatOption, LimitOption, TraceArgument

_ALL = "SELECT * EXCLUDE (last_ns) FROM slots ORDER BY process, pool, slot"

# What a person follows first; everything else is in `slotscope sql TRACE "FROM history(7)"`.
_LIFE = """
SELECT position, "order", op, generation AS gen, role, request, request_id, forward,
       depth_before, depth, label, src_slot, node, outcome
FROM history({slot}, p := {pool})
"""


def slots(
    trace: TraceArgument,
    slot: Annotated[int | None, typer.Argument(help="Tell this slot's history.")] = None,
    pool: Annotated[int, typer.Option(help="State pool of the slot.")] = 0,
    form: FormatOption = Format.TABLE,
    limit: LimitOption = 200,
) -> None:
    """List the slots of a trace, or tell one slot's history in the order in which it took effect.

    slotscope slots traces/today

    slotscope slots traces/today 7
    """
    import slotscope

    from .table import show

    with slotscope.open(trace) as opened:
        if slot is None:
            rows = opened.sql(_ALL)
        else:
            rows = opened.sql(_LIFE.format(slot=slot, pool=pool))
            if not rows.num_rows:
                raise typer.BadParameter(
                    f"No event names slot {slot} of pool {pool}. List the slots without a number."
                )
    show(rows, form, limit=limit)
