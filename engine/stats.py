"""Stats: what the engine counts, as one snapshot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """How the engine stands now (first group), and what it has done since its start (second)."""

    running: int = 0  # requests that hold a live slot
    queued: int = 0  # requests that wait for one
    slots_free: int = 0
    slots_pinned: int = 0  # held by running requests: live, keep and spare
    slots_cached: int = 0  # held by radix nodes
    host_slots_free: int = 0
    host_slots_cached: int = 0  # checkpoints that are on the host alone
    host_tokens_cached: int = 0  # KV that is on the host alone

    tokens_generated: int = 0
    tokens_cached: int = 0  # prompt tokens that were restored, not computed
    verifies: int = 0  # one for each request and verify forward
    accepted: int = 0  # tokens accepted by verifies, the fed root included
    offloads: int = 0  # checkpoints that left for the host
    load_backs: int = 0  # checkpoints that came back from it
    retractions: int = 0  # times that a running request gave up its KV to others

    @property
    def accept_length(self) -> float | None:
        """Mean tokens for one verify; None before the first."""
        return self.accepted / self.verifies if self.verifies else None
