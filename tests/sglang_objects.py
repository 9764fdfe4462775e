"""Objects with the attributes of SGLang's that the plugin looks at, in both layouts of a request.

The free list is SGLang's by behaviour: groups, views of one tensor, a clear that takes all back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from slotscope.instrument.sglang.hook import Hook, Watch, When
from slotscope.instrument.sglang.scene import Scene
from slotscope.instrument.sglang.table import HOOKS

Told = Callable[..., list[dict[str, Any]]]
"""The events of some operations, in order, with the columns that are asked for."""


class FreeList:
    """As SGLang's MambaSlotAllocator."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._group: Iterator[Tensor] | None = None
        self.free_slots = torch.empty(0, dtype=torch.int64)

    def alloc_group_begin(self, num_reqs: int) -> None:
        taken = self._do_alloc(num_reqs)
        self._group = iter(taken.split(1)) if taken is not None else None

    def alloc_group_end(self) -> None:
        rest = list(self._group or [])
        if rest:
            self.free(torch.cat(rest))
        self._group = None

    def alloc(self, need_size: int) -> Tensor | None:
        if self._group is not None and need_size == 1:
            slot = next(self._group, None)
            if slot is not None:
                return slot
        return self._do_alloc(need_size)

    def _do_alloc(self, need_size: int) -> Tensor | None:
        if need_size > len(self.free_slots):
            return None
        taken, self.free_slots = self.free_slots[:need_size], self.free_slots[need_size:]
        return taken

    def free(self, free_index: Tensor) -> None:
        self.free_slots = torch.cat((self.free_slots, free_index))

    def clear(self) -> None:
        self.free_slots = torch.arange(1, self.size + 1)


@dataclass(eq=False)
class State:
    """The fields of a recurrent state: on `req.kv` since 0.5.19, on the request before."""

    req_pool_idx: int | None = None
    mamba_pool_idx: Tensor | None = None
    mamba_ping_pong_track_buffer: Tensor | None = None
    mamba_next_track_idx: int | None = None
    mamba_last_track_idx: int | None = None
    mamba_last_track_seqlen: int | None = None
    mamba_cow_src_index: Tensor | None = None
    mamba_needs_clear: bool = False


@dataclass(eq=False)
class NewReq:
    """A request as 0.5.19 and later have it."""

    rid: str
    origin_input_ids: list[int]
    output_ids: list[int] = field(default_factory=list)
    kv: State = field(default_factory=State)
    finished_reason: Any = None
    session: Any = None

    def finished(self) -> bool:
        return self.finished_reason is not None


@dataclass(eq=False)
class OldReq(State):
    """A request as 0.5.17 and 0.5.18 have it: `kv` holds something else, or nothing."""

    rid: str = ""
    origin_input_ids: list[int] = field(default_factory=list)
    output_ids: list[int] = field(default_factory=list)
    kv: Any = None
    finished_reason: Any = None

    def finished(self) -> bool:
        return self.finished_reason is not None


def state_of(req: Any) -> State:
    """A request's state, in either layout."""
    return req if isinstance(req, State) else req.kv


class Rows:
    """As SGLang's HybridReqToTokenPool: rows, live slots, track slots."""

    enable_mamba_extra_buffer = True

    def __init__(self, free_list: FreeList, track_slots: int = 1) -> None:
        self.mamba_allocator = free_list
        self.mamba_pool = SimpleNamespace()
        self._track_slots = track_slots
        self._rows = iter(range(1, 1000))

    def alloc(self, reqs: list[Any]) -> list[int]:
        rows = []
        for req in reqs:
            state = state_of(req)
            if state.req_pool_idx is None:
                state.req_pool_idx = next(self._rows)
            if state.mamba_pool_idx is None:
                taken = self.mamba_allocator.alloc(1)
                assert taken is not None
                state.mamba_pool_idx, state.mamba_needs_clear = taken[0], True
            if state.mamba_ping_pong_track_buffer is None:
                tracks = self.mamba_allocator.alloc(self._track_slots)
                assert tracks is not None
                buffer = torch.full((2,), -1)
                buffer[: self._track_slots] = tracks
                state.mamba_ping_pong_track_buffer = buffer
                state.mamba_next_track_idx = state.mamba_last_track_idx = 0
            rows.append(state.req_pool_idx)
        return rows

    def set_mamba_ping_pong_slot(self, req: Any, idx: int, value: Tensor | int) -> None:
        buffer = state_of(req).mamba_ping_pong_track_buffer
        assert buffer is not None
        buffer[idx] = value

    def get_mamba_ping_pong_keep_idx(self, req: Any) -> int | None:
        return state_of(req).mamba_last_track_idx


def observed(scene: Scene, kind: str, target: type, hooks: tuple[Hook, ...] = HOOKS) -> Watch:
    """Hook a class as SGLang's registry hooks the one that rows of the table name `kind`."""
    watch = Watch(scene, hooks)
    for hook in hooks:
        owner, _, name = hook.at.rpartition(".")
        if owner.rpartition(".")[2] == kind and hasattr(target, name):
            setattr(target, name, wrapped(getattr(target, name), watch.wrap(hook), hook.when))
    return watch


def wrapped(original: Callable[..., Any], hook: Callable[..., Any], when: When) -> Any:
    """What SGLang's HookRegistry makes of a function and a hook."""

    def before(*args: Any, **kwargs: Any) -> Any:
        changed = hook(*args, **kwargs)
        args, kwargs = changed if changed is not None else (args, kwargs)
        return original(*args, **kwargs)

    def after(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        changed = hook(result, *args, **kwargs)
        return result if changed is None else changed

    def around(*args: Any, **kwargs: Any) -> Any:
        return hook(original, *args, **kwargs)

    return {When.BEFORE: before, When.AFTER: after, When.AROUND: around}[when]


@dataclass(eq=False)
class Batch:
    """As SGLang's ScheduleBatch. The mode's name is the first word of SGLang's."""

    reqs: list[Any]
    req_to_token_pool: Rows
    mode: str = "extend"
    speculative: bool = False
    prefix_lens: list[int] = field(default_factory=list)
    extend_lens: list[int] = field(default_factory=list)
    seq_lens_cpu: Tensor = field(default_factory=lambda: torch.empty(0))
    mamba_track_indices: Tensor | None = None
    mamba_track_mask_cpu: list[bool] | None = None
    mamba_lazy_spec_track_positions_cpu: list[int] | None = None

    @property
    def forward_mode(self) -> Any:
        return SimpleNamespace(is_decode=lambda: self.mode == "decode")

    @property
    def spec_algorithm(self) -> Any:
        return SimpleNamespace(is_none=lambda: not self.speculative)

    def _collect_deferred_mamba_cow_and_clear(self, reqs: list[Any]) -> None:
        for req in reqs:
            state_of(req).mamba_needs_clear = False
            state_of(req).mamba_cow_src_index = None

    def _mamba_radix_cache_v2_req_prepare_for_extend(self, req: Any) -> Any:
        return SimpleNamespace(track_mask=state_of(req).mamba_last_track_seqlen is not None)

    def copy(self) -> Batch:
        return replace(self, reqs=self.reqs[:])


class Scheduler:
    """As SGLang's Scheduler: a forward is whatever `work` does."""

    def __init__(self, work: Callable[[Batch], None]) -> None:
        self.work = work

    def run_batch(self, batch: Batch) -> None:
        self.work(batch)

    def process_batch_result(self, batch: Batch, use: Callable[[], None]) -> None:
        use()
