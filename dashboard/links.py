"""Links hold the whole state: what a page shows is read from its address and written back there.

Widgets that are bound to the address keep themselves; this module is for the rest: the window of
the axis, the selected finding and slot, and the links from one page to another.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import streamlit as st

KEPT = ("trace", "process", "live")
"""What every link takes along: which trace and process, and whether the page refreshes itself."""


def whole(name: str) -> int | None:
    """A whole number from the address; None where it's absent or isn't one."""
    try:
        return int(st.query_params.get(name, ""))
    except ValueError:
        return None


def number(name: str) -> float | None:
    """A finite number from the address; None where it's absent or isn't one."""
    try:
        value = float(st.query_params.get(name, ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def choice(name: str, among: tuple[str, ...]) -> str:
    """What the address names of `among`; the first where it names none of them."""
    wanted: str = st.query_params.get(name, "")
    return wanted if wanted in among else among[0]


def keep(**state: object) -> None:
    """Write state into the address; None takes a name out of it."""
    for name, value in state.items():
        if value is None:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != str(value):
            st.query_params[name] = str(value)


def go(page: str, label: str, *, icon: str, **state: object) -> None:
    """A link to another page of the dashboard, with the state that it shall show."""
    kept = {name: st.query_params[name] for name in KEPT if name in st.query_params}
    wanted = {name: str(value) for name, value in state.items() if value is not None}
    st.page_link(
        st.session_state["pages"][page], label=label, icon=icon, query_params=kept | wanted
    )


def for_this(directory: Path) -> bool:
    """Whether the address speaks of this trace. One that names none is made to."""
    named: Any = st.query_params.get("trace")
    if named is None:
        keep(trace=directory.name)
        return True
    return bool(named == directory.name)
