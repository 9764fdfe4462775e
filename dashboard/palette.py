"""Colours, each with one meaning. Red is kept for a contradiction and green for a clean verdict.

Owners take a colour-blind-safe series (after Okabe & Ito and Tol) that has neither. The greys lie
half-way between the light and the dark background, so that one chart serves both themes.
"""

from __future__ import annotations

CONTRADICTION = "#d43d33"
NODE = "#9aa3af"
INK = "#7b8594"

OWNERS = (
    "#3b78b8",  # blue
    "#e0952b",  # amber
    "#45b0c5",  # cyan
    "#8a6bb8",  # violet
    "#a89a2e",  # olive
    "#c978a5",  # rose
    "#2b7f86",  # petrol
    "#8b6b52",  # umber
)

VERDICTS = {"found": "red", "clean": "green", "blind": "orange"}
"""Streamlit's colour name of a verdict."""

ICONS = {
    "found": ":material/error:",
    "clean": ":material/check_circle:",
    "blind": ":material/visibility_off:",
}
"""Beside the colour, since colour alone must not carry the verdict."""

THICKNESS = {"live": 15, "keep": 10, "spare": 5, "node": 10, "pad": 3, "scratch": 3}
"""Height of a role's bar in pixels: the running state is the thickest, a spare a thread."""

SHAPES = {
    "donate": "triangle-down",
    "restore": "triangle-up",
    "swap": "diamond",
    "match": "circle",
    "evict": "cross",
}
"""Mark of an operation that moves a state between owners."""


def owner(request: int | None) -> str:
    """The colour of a request, the same on every page; null is a tree node's.

    It is the digit sum of the number in base `len(OWNERS)`: neighbours differ, and so do requests
    that a batch of a round size apart take the same slot in turn.
    """
    if request is None:
        return NODE
    place, rest = 0, request
    while rest:
        rest, digit = divmod(rest, len(OWNERS))
        place += digit
    return OWNERS[place % len(OWNERS)]
