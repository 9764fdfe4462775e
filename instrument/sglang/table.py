"""Table: where SGLang is watched, when, what is said there.

Read in the wheels of 0.5.17 to 0.5.23. `since` and `until` bound the releases that have a place; a
release in between that lacks it is blind for its operations. The Rust and the Python core of the
prefix tree lie behind the same class.
"""

from __future__ import annotations

from slotscope.instrument.event import Op

from . import ends, forwards, locks, pools, starts, tier, tree, verify
from .hook import Hook, When
from .release import Number

_SRT = "sglang.srt"
_FREE_LIST = f"{_SRT}.mem_cache.allocator.mamba.MambaSlotAllocator"
_ROWS = f"{_SRT}.mem_cache.memory_pool.HybridReqToTokenPool"
_STATES = f"{_SRT}.mem_cache.memory_pool.MambaPool"
_TREE = f"{_SRT}.mem_cache.unified_radix_cache.UnifiedRadixCache"
_PART = f"{_SRT}.mem_cache.unified_cache.components.mamba.MambaComponent"
_PART_OLD = f"{_SRT}.mem_cache.unified_cache.components.mamba_component.MambaComponent"
_CORE = f"{_SRT}.mem_cache.unified_cache.unified_tree_core.UnifiedTreeCore"
_HOST = f"{_SRT}.mem_cache.hybrid_cache.hybrid_cache_controller.HybridCacheController"
_ADDER = f"{_SRT}.managers.schedule_policy.PrefillAdder"
_BATCH = f"{_SRT}.managers.schedule_batch.ScheduleBatch"
_SCHEDULER = f"{_SRT}.managers.scheduler.Scheduler"
_RESULTS = (
    f"{_SRT}.managers.scheduler_components.batch_result_processor.SchedulerBatchResultProcessor"
)
_RUNNER = f"{_SRT}.model_executor.model_runner.ModelRunner"
_STAGE = f"{_SRT}.managers.scheduler_pp_mixin.SchedulerPPMixin"
_SPECULATION = f"{_SRT}.speculative.spec_utils"
_BACKEND = f"{_SRT}.layers.attention.hybrid_linear_attn_backend.HybridLinearAttnBackend"

_0_5_19: Number = (0, 5, 19)
_0_5_20: Number = (0, 5, 20)
_0_5_22: Number = (0, 5, 22)

_BEFORE, _AFTER, _AROUND = When.BEFORE, When.AFTER, When.AROUND
_LEASE = (Op.ALLOCATE, Op.FREE)
_FREE = (Op.FREE, Op.EVICT)
_DONATE = (Op.DONATE,)

# fmt: off
HOOKS: tuple[Hook, ...] = (
    # Slots, in the free list and to whom.
    Hook(f"{_FREE_LIST}._do_alloc", _AFTER, pools.slots_taken,
         (Op.ALLOCATE,), "slots leave the free list"),
    Hook(f"{_FREE_LIST}.alloc", _AFTER, pools.slot_drawn,
         (Op.ALLOCATE,), "a slot is drawn from a group"),
    Hook(f"{_FREE_LIST}.alloc_group_begin", _AROUND, pools.group_moves,
         _LEASE, "a group is held ready"),
    Hook(f"{_FREE_LIST}.alloc_group_end", _AROUND, pools.group_moves,
         _LEASE, "the rest of it goes back"),
    Hook(f"{_FREE_LIST}.free", _BEFORE, pools.slots_freed, _FREE, "slots end a life"),
    Hook(f"{_FREE_LIST}.clear", _BEFORE, pools.pool_cleared, _FREE, "all slots end a life"),
    Hook(f"{_ROWS}.alloc", _AROUND, pools.rows_given,
         (Op.ALLOCATE, Op.REQUEST_BEGIN), "requests are admitted"),
    Hook(f"{_ROWS}.set_mamba_ping_pong_slot", _AFTER, pools.track_slot_set,
         (Op.ALLOCATE,), "a spare is handed to a request"),
    Hook(f"{_BATCH}.mamba_lazy_prealloc_at_boundary", _AROUND, pools.spares_wanted,
         (Op.ALLOCATE,), "spares, lazy"),
    Hook(f"{_BATCH}.mamba_lazy_spec_prepare", _AROUND, pools.spares_wanted,
         (Op.ALLOCATE,), "spares, lazy with speculation"),
    # The prefix tree.
    Hook(f"{_PART}.finalize_match_result_in_cache", _AROUND, tree.checkpoint_found,
         (Op.MATCH, Op.ALLOCATE), "a request is pointed at a checkpoint", since=_0_5_20),
    Hook(f"{_PART}.prepare_for_caching_req", _AROUND, tree.checkpoint_given,
         _DONATE, "a checkpoint is made ready", since=_0_5_20),
    Hook(f"{_PART}.cleanup_after_caching_req", _BEFORE, tree.checkpoint_kept,
         _DONATE, "nothing is given", since=_0_5_20),
    Hook(f"{_PART_OLD}.finalize_match_result_in_cache", _AROUND, tree.checkpoint_found,
         (Op.MATCH, Op.ALLOCATE), "a request is pointed at a checkpoint", until=_0_5_19),
    Hook(f"{_PART_OLD}.prepare_for_caching_req", _AROUND, tree.checkpoint_given,
         _DONATE, "a checkpoint is made ready", until=_0_5_19),
    Hook(f"{_PART_OLD}.cleanup_after_caching_req", _BEFORE, tree.checkpoint_kept,
         _DONATE, "nothing is given", until=_0_5_19),
    Hook(f"{_TREE}.insert", _AROUND, tree.checkpoint_filed,
         (Op.DONATE, Op.INSERT), "the tree files a state"),
    Hook(f"{_TREE}._drain_device_frees", _AROUND, tree.nodes_emptied,
         (Op.EVICT,), "nodes lose what they held"),
    Hook(f"{_STATES}.copy_from", _BEFORE, tree.state_copied,
         (Op.COPY,), "a running request's state is copied for the tree"),
    # Its host tier.
    Hook(f"{_TREE}._execute_kv_backup", _AROUND, tier.checkpoint_offloaded,
         (Op.OFFLOAD,), "a checkpoint is copied to the host"),
    Hook(f"{_TREE}.load_back", _AROUND, tier.checkpoint_wanted,
         (Op.LOAD_BACK, Op.ALLOCATE), "a request needs a checkpoint of the host's"),
    Hook(f"{_HOST}.load", _AROUND, tier.states_loaded,
         (Op.LOAD_BACK, Op.INSERT, Op.ALLOCATE), "a checkpoint comes back"),
    # Its locks, and for whom they are taken.
    Hook(f"{_TREE}.inc_lock_ref", _AFTER, locks.node_locked, (Op.LOCK,), "a node is pinned"),
    Hook(f"{_TREE}.dec_lock_ref", _AFTER, locks.node_unlocked, (Op.UNLOCK,), "... and let go"),
    Hook(f"{_CORE}._split_node", _AFTER, locks.edge_split, (Op.SPLIT,), "an edge is cut in two"),
    Hook(f"{_TREE}.lock", _AROUND, locks.lock_taken, (), "for a request", since=_0_5_22),
    Hook(f"{_TREE}.unlock", _AROUND, locks.lock_undone, (), "... and back", since=_0_5_22),
    Hook(f"{_ADDER}.add_one_req", _AROUND, locks.request_served,
         (), "a request is to be admitted", since=_0_5_22),
    Hook(f"{_TREE}.checkpoint_into_tree", _AROUND, locks.request_served,
         (), "a request is filed", since=_0_5_22),
    # Forwards.
    Hook(f"{_SCHEDULER}.run_batch", _AROUND, forwards.batch_run,
         (Op.FORWARD_LAUNCH, Op.ADVANCE, Op.SCATTER, Op.COPY, Op.VERIFY_PLAN, Op.SWAP),
         "a batch is launched"),
    Hook(f"{_BATCH}.copy", _AFTER, forwards.batch_copied,
         (Op.FORWARD_DONE, Op.SCATTER), "the result queue keeps a copy"),
    Hook(f"{_BATCH}._mamba_radix_cache_v2_req_prepare_for_extend", _AFTER, forwards.track_planned,
         (Op.SCATTER,), "a prefill's checkpoint is planned"),
    Hook(f"{_BATCH}._collect_deferred_mamba_cow_and_clear", _BEFORE, starts.starts_planned,
         (Op.CLEAR, Op.RESTORE), "how live slots begin"),
    Hook(f"{_RUNNER}._maybe_execute_deferred_mamba_cow_and_clear", _BEFORE, starts.starts_made,
         (Op.CLEAR, Op.RESTORE), "live slots begin"),
    Hook(f"{_SCHEDULER}.process_batch_result", _BEFORE, forwards.result_read,
         (Op.FORWARD_DONE,), "the host turns to a result"),
    Hook(f"{_SCHEDULER}.process_batch_result", _AFTER, forwards.result_used,
         (Op.SWAP,), "ping-pong pointers have moved"),
    Hook(f"{_SCHEDULER}.on_idle", _BEFORE, forwards.idle, (), "late slot numbers are taken in"),
    Hook(f"{_SRT}.mem_cache.common.release_kv_cache", _BEFORE, ends.request_over,
         (Op.REQUEST_END, Op.RETRACT), "a request ends, or is retracted"),
    Hook(f"{_SRT}.managers.schedule_batch.Req.reset_for_retract", _AFTER, ends.request_again,
         (Op.RETRACT,), "a request starts over"),
    Hook(f"{_SRT}.session.streaming_session.StreamingSession.release_session", _BEFORE,
         ends.session_over, (Op.REQUEST_END,), "a session gives up its row"),
    # Speculation.
    Hook(f"{_SPECULATION}.prepare_mamba_track_for_verify", _AFTER, verify.targets_chosen,
         (Op.VERIFY_PLAN,), "a verify's track slots"),
    Hook(f"{_SPECULATION}.commit_mamba_states_after_verify", _AROUND, verify.commit_called,
         (Op.SCATTER,), "accepted states are to be committed"),
    Hook(f"{_BACKEND}.update_mamba_state_after_mtp_verify", _BEFORE, verify.state_committed,
         (Op.SCATTER,), "accepted states are committed"),
    Hook(f"{_RESULTS}._resolve_spec_v2_tokens", _AFTER, verify.result_resolved,
         (Op.SCATTER, Op.FORWARD_DONE), "the host knows what was accepted"),
    # Pipeline stages.
    Hook(f"{_STAGE}._pp_launch_batch", _BEFORE, forwards.micro_batch_run,
         (), "a stage turns to a micro-batch"),
    Hook(f"{_STAGE}._pp_spec_commit_relayed_accept", _BEFORE, verify.accept_relayed,
         (Op.RELAY_RECEIVE,), "a stage gets an accept result", since=_0_5_22),
)
# fmt: on
