"""Install: puts faulty parts in the place of sound ones, once the engine is assembled."""

from __future__ import annotations

from collections.abc import Iterable

from slotscope.engine.cache import Cache
from slotscope.engine.config import ConfigError
from slotscope.engine.slots import SlotPool
from slotscope.engine.tree import RadixTree

from .fault import named
from .unchecked import UncheckedCache, UncheckedSlots, UncheckedTree

_UNCHECKED: dict[type, type] = {
    Cache: UncheckedCache,
    SlotPool: UncheckedSlots,
    RadixTree: UncheckedTree,
}


def install(names: Iterable[str], parts: Iterable[object]) -> None:
    """Make these faults' classes the classes of the parts that they break.

    Raises:
        ConfigError: a name is no fault, two break the same part, or the engine as it is configured
            lacks the part.
    """
    by_class: dict[type, list[object]] = {}
    for part in parts:
        by_class.setdefault(type(part), []).append(part)
    broken: dict[type, type] = {}
    for name, fault in zip(names, named(names), strict=True):
        for sound, faulty in fault.replaces.items():
            if sound not in by_class or sound in broken:
                flags = ", ".join(f"{key} = {value}" for key, value in fault.flags.items())
                why = "another fault breaks too" if sound in broken else "is not in use"
                raise ConfigError(
                    f"the fault {name} breaks the engine's {sound.__name__}, which {why}. It shows "
                    f"with {flags or 'the default flags'}, one fault at a time."
                )
            broken[sound] = faulty
    for sound, faulty in (_UNCHECKED | broken).items() if broken else ():
        for part in by_class.get(sound, ()):
            # Who holds the part keeps it: what changes is what it does.
            object.__setattr__(part, "__class__", faulty)
