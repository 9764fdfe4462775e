"""What happens when SGLang asks for an operator that the stand-in has not."""

from collections.abc import Callable
from typing import Any, NoReturn


class AbsentOperator(NotImplementedError, AttributeError):
    """An operator of `sgl_kernel` that the stand-in lacks.

    It is an AttributeError, so that `from sgl_kernel import name` becomes the ImportError which
    SGLang's optional imports expect, and a NotImplementedError for whoever calls it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"sgl_kernel.{name} is not in the CPU stand-in, so this configuration can't run here. "
            "Choose flags that avoid it, or add it under tests/sglang/stand_in/sgl_kernel."
        )


def refuse_when_called(name: str) -> Callable[..., NoReturn]:
    """A function that imports well and raises AbsentOperator when called."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AbsentOperator(name)

    refuse.__name__ = name
    return refuse
