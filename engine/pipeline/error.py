"""What can go wrong between pipeline stages."""

from __future__ import annotations


class PipelineError(RuntimeError):
    """Stages don't agree on what they compute. No token of it was handed out."""
