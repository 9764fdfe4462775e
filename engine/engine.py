"""Engine: a model, a scheduler, and the thread that turns it."""

from __future__ import annotations
