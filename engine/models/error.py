"""What can be wrong with a model folder."""

from __future__ import annotations


class ModelError(ValueError):
    """A folder that can't be served. The message names the folder, the trouble and the cure."""


class UnknownModelError(ModelError):
    """No model here has this `model_type`."""


class ModelConfigError(ModelError):
    """config.json is missing, malformed, or asks for what isn't built."""


class WeightsError(ModelError):
    """Weights are missing, unreadable, or of the wrong shape."""
