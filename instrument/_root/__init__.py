"""See every recurrent-state slot of a serving engine."""

__version__ = "0.1.0"
