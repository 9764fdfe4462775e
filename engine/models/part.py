"""Part: which layers of a model a pipeline stage has."""

from __future__ import annotations

from dataclasses import dataclass

from .error import ModelError


@dataclass(frozen=True, slots=True)
class Part:
    """Stage `stage` of `count`. The first one embeds; the last one has the final norm, the logits
    and the MTP head."""

    stage: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """It takes tokens, not the hidden states of a stage before it."""
        return self.stage == 0

    @property
    def last(self) -> bool:
        """What it puts out is normed."""
        return self.stage == self.count - 1

    def layers(self, total: int) -> range:
        """Numbers of its layers of `total`: as even a cut as there is, the surplus in front.

        Raises:
            ModelError: some stage would have no layer.
        """
        if self.count > total:
            raise ModelError(
                f"the model has {total} layers, too few for {self.count} pipeline stages. "
                f"Set --pp-size to {total} or less."
            )
        size, surplus = divmod(total, self.count)
        start = self.stage * size + min(self.stage, surplus)
        return range(start, start + size + (self.stage < surplus))


WHOLE = Part()
"""A model that is not cut."""
