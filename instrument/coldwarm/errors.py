"""What can end a survey, or one cell of it."""

from __future__ import annotations


class ColdwarmError(RuntimeError):
    """The server can't be judged any further. The message says why, and the cure."""


class Refused(ColdwarmError):
    """The server refused one request; others may do."""


class GridError(ValueError):
    """A grid or an option that makes no sense. The message says what to change."""
