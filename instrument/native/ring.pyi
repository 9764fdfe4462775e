from collections.abc import Callable, Iterator
from typing import Any

class Ring:
    map: Any
    end: int
    seq: int
    first: int
    gap: bool
    busy: bool
    def __init__(self, orders: Iterator[int]) -> None: ...

def speak(op: int, /, **given: Any) -> int: ...
def attach(ring: Ring, /) -> None: ...
def detach_all() -> None: ...
def configure(
    columns: tuple[tuple[str, int, int, int], ...],
    segment_size: int,
    commit_word: int,
    commit_shift: int,
    op_codes: int,
    slowly: Callable[..., int],
    /,
) -> None: ...
