"""Assemble: from a configuration to a scheduler, each part made once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from slotscope.instrument import probe
from slotscope.instrument.event import Op

from .cache import Cache
from .cadence import Cadence
from .checkpoints import BY_NAME
from .config import ConfigError, EngineConfig
from .decode import Decode
from .faults import install
from .folder import model_folder
from .grids import Grids
from .host.tier import HostTier, Pair
from .memory import Memory
from .models.base import Model
from .models.load import load
from .models.part import Part
from .pages import PagePool
from .patches import Patches
from .pipeline.crew import Crew
from .pipeline.group import StageGroup
from .pipeline.lead import LeadScheduler
from .pipeline.processes import ProcessStages, SharedDrafter
from .pipeline.scheduler import PipelineScheduler
from .pipeline.stages import LocalStages
from .prefill import Prefill, slack
from .retire import Retire
from .rows import Rows
from .runner import Runner
from .sampler import Sampler
from .scheduler import Scheduler, SchedulerParts
from .slots import SlotPool
from .speculation.drafter import Drafter, Omission
from .speculation.make import make_drafter, omission
from .stage import Stage
from .states import States

SAID = tuple(op for op in Op if op is not Op.AMEND)
"""Operations that this engine reports: all. Some it has no act for, and so never says."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the engine itself talks to."""

    model: Model
    cache: Cache
    scheduler: Scheduler


def assemble(config: EngineConfig, group: StageGroup | None = None) -> Parts:
    """Load the model, take its memory, and wire the loop. ConfigError where they don't fit.

    `group` is that of a stage's process which another one has started; it joins afterwards.
    """
    patches = Patches.without(config.without_patch)
    leads = config.pp_processes and group is None
    if leads:
        group = StageGroup(0, config.pp_size)
    device, dtype = _device(config, group), getattr(torch, config.dtype)
    # A request's KV comes in whole pages, and its row must name all of it.
    width = -(-(config.context_length + slack(config)) // config.tree_page) * config.tree_page
    whole = load(model_folder(config.model_path), dtype=dtype, device=device)
    numbers = [group.rank] if group else range(config.pp_size)
    with _asking_for_memory():
        rows = Rows(config.max_running_requests, width, device)
        stages = [_stage(config, whole, number, device, dtype) for number in numbers]
    model, chunk = stages[-1].model, whole.state_chunk
    grids = Grids.derive(chunk, config.tree_page, config.mamba_track_interval, patches)
    drafter = make_drafter(config, model, stages[-1].memory, rows, dtype)
    slots = SlotPool(config.max_mamba_cache_size, pools=numbers)
    cache = Cache(
        slots,
        PagePool(config.kv_tokens, config.tree_page),
        rows,
        patches,
        reuse=not config.disable_radix_cache,
        host=_host_tier(config, stages, drafter, slots),
    )
    states = States([stage.memory for stage in stages], chunk)
    strategy = BY_NAME[config.mamba_radix_cache_strategy](cache, states, grids, patches, config)
    _check_room(config, strategy.slots_per_request, chunk)
    omitted = omission(drafter, config, patches)
    commits = omitted is not Omission.NO_COMMIT
    grids = replace(grids, saves=omitted is not Omission.NO_CHECKPOINT)
    if drafter and group:
        drafter = SharedDrafter(drafter, group)
    piped = config.pp_size > 1
    runner = Runner(
        stages,
        rows,
        Sampler(config.random_seed, device),
        drafter,
        grids,
        commits=commits,
        stable_rows=patches.on("pp-stable-rows") or not piped,
    )
    prefill = Prefill(config, cache, strategy, chunk)
    cadence = Cadence(config.ring_length, grids)
    decode = Decode(config, cache, strategy, cadence)
    eos_ids, tells = frozenset(model.eos_ids), commits and not piped
    retire = Retire(cache, strategy, prefill, decode, grids, eos_ids, tells=tells)
    probe.hook("engine", SAID, live=True)
    parts = SchedulerParts(config, runner, cache, grids, prefill, decode, retire)
    scheduler = _scheduler(parts, patches, group, device, leads=leads)
    probe.note("engine.slots_per_request", strategy.slots_per_request)
    own = (cache.slots, cache.pages, cache.tree, cache.host, states, strategy, drafter, scheduler)
    install(config.fault, (*own, *parts, *stages, *scheduler.stations))
    return Parts(model, cache, scheduler)


def _scheduler(
    parts: SchedulerParts,
    patches: Patches,
    group: StageGroup | None,
    device: torch.device,
    *,
    leads: bool,
) -> Scheduler:
    """The loop: of one stage, of stages in this process, or of a stage's own process."""
    config, runner, grids = parts.config, parts.runner, parts.grids
    if config.pp_size == 1:
        return Scheduler(parts)
    if group is None:
        return PipelineScheduler(parts, LocalStages(runner, grids, patches))
    remote = ProcessStages(runner, grids, patches, group)
    if not leads:
        return PipelineScheduler(parts, remote)
    crew = Crew(config)
    group.join(crew.rendezvous, device)
    return LeadScheduler(parts, remote, crew, group)


@contextmanager
def _asking_for_memory() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # torch has no class of its own for a CPU's memory
        raise ConfigError(
            f"the memory that was asked for can't be had: {str(error).splitlines()[0]} Lower "
            "--max-total-tokens, --max-mamba-cache-size, --context-length, "
            "--max-running-requests or --hicache-ratio."
        ) from error


def _host_tier(
    config: EngineConfig, stages: Sequence[Stage], drafter: Drafter | None, slots: SlotPool
) -> HostTier | None:
    if not config.enable_hierarchical_cache:
        return None
    count = int(config.max_mamba_cache_size * config.hicache_ratio)
    pages = PagePool(int(config.kv_tokens * config.hicache_ratio), config.tree_page)
    memories = [*(stage.memory for stage in stages), *(drafter.memories if drafter else ())]
    with _asking_for_memory():
        # Slot 0 and page 0 are for padding; it is not offloaded, but numbers are as on the device.
        tokens = pages.size // config.dcp_size + config.page_size
        pairs = [Pair.of(memory, slots=count + 1, tokens=tokens) for memory in memories]
    return HostTier(pairs, slots, count, pages)


def _device(config: EngineConfig, group: StageGroup | None) -> torch.device:
    """Stage processes have a GPU each."""
    device = torch.device(config.device)
    return torch.device("cuda", group.rank) if group and device.type == "cuda" else device


def _stage(
    config: EngineConfig, whole: Model, number: int, device: torch.device, dtype: torch.dtype
) -> Stage:
    """With its own layers, keys and values, states and scratch."""
    model = whole.cut(Part(number, config.pp_size)) if config.pp_size > 1 else whole
    memory = _memory(config, model, device, dtype)
    return Stage(model, memory, States([memory], model.state_chunk))


def _memory(config: EngineConfig, model: Model, device: torch.device, dtype: torch.dtype) -> Memory:
    return Memory.allocate(
        model.shape(),
        tokens=config.kv_tokens // config.dcp_size + config.page_size,
        ranks=config.dcp_size,
        slots=config.max_mamba_cache_size + 1,
        rows=config.max_running_requests + 1 if config.draft_tokens else 0,
        draft_tokens=config.draft_tokens,
        ring=config.ring_length,
        dtype=dtype,
        device=device,
    )


def _check_room(config: EngineConfig, slots_per_request: int, state_chunk: int) -> None:
    if config.chunked_prefill_size < state_chunk:
        raise ConfigError(
            f"--chunked-prefill-size {config.chunked_prefill_size} is less than the model's state "
            f"chunk: no part of a long prompt could be launched. Set at least {state_chunk}."
        )
    # Whoever resumes from a checkpoint pins its slot too: with no other slot it would wait forever.
    kept = 0 if config.disable_radix_cache else 1
    if config.max_mamba_cache_size < (needed := slots_per_request + kept):
        raise ConfigError(
            f"--max-mamba-cache-size {config.max_mamba_cache_size} is too small for a single "
            f"request: {config.mamba_radix_cache_strategy} pins {slots_per_request} slots for "
            f"each, and a cached checkpoint that it resumes from {kept}. Set at least {needed}."
        )
