"""EngineConfig: every knob, read and validated once. Flags carry SGLang's names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

STRATEGIES = ("no_buffer", "extra_buffer", "extra_buffer_lazy")
SPECULATION = ("NGRAM", "NEXTN", "EAGLE", "DFLASH", "DSPARK")
TREES = ("NEXTN", "EAGLE")
"""Who may draft a tree. The two are one here: the draft head is the model's own."""
DTYPES = ("float32", "float64", "bfloat16")
SIZE_MAX = 2**31 - 1
"""Depths and slots travel as 32-bit integers, in the trace and on the device."""
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")


class ConfigError(ValueError):
    """A configuration that can't be served. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """What the engine is told at start. Nothing else is configurable.

    Each field's help is its command line help; `docs/flags.md` is made from it.
    """

    model_path: Path = field(
        metadata={"help": "Hugging Face folder; `bundled` is the small model inside"}
    )
    served_model_name: str = field(default="", metadata={"help": "name that clients use"})
    device: str = field(default="cpu", metadata={"help": "cpu or cuda"})
    dtype: str = field(default="float32", metadata={"help": f"one of {', '.join(DTYPES)}"})
    context_length: int = field(
        default=4096, metadata={"help": "tokens of prompt and output, at most"}
    )
    page_size: int = field(default=1, metadata={"help": "tokens in a KV page"})
    dcp_size: int = field(
        default=1,
        metadata={"help": "ranks that share each request's KV; the tree's page is as many pages"},
    )
    max_total_tokens: int = field(default=32768, metadata={"help": "KV locations of each rank"})
    max_running_requests: int = field(
        default=16, metadata={"help": "requests that decode together"}
    )
    chunked_prefill_size: int = field(
        default=512, metadata={"help": "prompt tokens in one forward"}
    )
    enable_mixed_chunk: bool = field(
        default=False, metadata={"help": "a prefill takes a decode step of everybody along"}
    )
    max_mamba_cache_size: int = field(
        default=128, metadata={"help": "state slots, the pad slot not counted"}
    )
    mamba_radix_cache_strategy: str = field(
        default="extra_buffer_lazy", metadata={"help": f"one of {', '.join(STRATEGIES)}"}
    )
    mamba_track_interval: int = field(
        default=256, metadata={"help": "decode leaves a checkpoint so often"}
    )
    enable_linear_replayssm: bool = field(
        default=False,
        metadata={"help": "decode keeps inputs in a ring beside the state, and folds them later"},
    )
    linear_replayssm_cache_len: int = field(
        default=16, metadata={"help": "inputs that a slot's replay ring holds"}
    )
    disable_overlap_schedule: bool = field(
        default=False, metadata={"help": "retire each forward before the next is launched"}
    )
    pp_size: int = field(
        default=1, metadata={"help": "pipeline stages that the model's layers are cut into"}
    )
    tp_size: int = field(default=1, metadata={"help": "1: tensor parallelism is SGLang's"})
    dp_size: int = field(default=1, metadata={"help": "1: data parallelism is SGLang's"})
    disaggregation_mode: str = field(
        default="null", metadata={"help": "null: prefill and decode apart are SGLang's"}
    )
    pp_processes: bool = field(
        default=False, metadata={"help": "each pipeline stage is a process of its own"}
    )
    disable_radix_cache: bool = field(default=False, metadata={"help": "reuse nothing"})
    enable_hierarchical_cache: bool = field(
        default=False,
        metadata={"help": "what is evicted from the device is kept in the host's memory"},
    )
    hicache_ratio: float = field(
        default=2.0, metadata={"help": "the host's slots and KV, in times of the device's"}
    )
    speculative_algorithm: str = field(
        default="", metadata={"help": f"one of {', '.join(SPECULATION)}, or empty for none"}
    )
    speculative_draft_model_path: str = field(
        default="",
        metadata={"help": "folder of DFLASH's or DSPARK's draft; `draft` in the model's"},
    )
    speculative_num_steps: int = field(
        default=3, metadata={"help": "drafted tokens in a row: the depth of a draft"}
    )
    speculative_eagle_topk: int = field(
        default=1, metadata={"help": "guesses that each step keeps; above 1 drafts are trees"}
    )
    speculative_num_draft_tokens: int = field(
        default=0, metadata={"help": "tokens that a verify feeds; 0 is 1 + steps x topk"}
    )
    without_patch: tuple[str, ...] = field(
        default=(), metadata={"help": "bring an upstream bug back: name of a patch, repeatable"}
    )
    fault: tuple[str, ...] = field(
        default=(), metadata={"help": "a bug that others had: name of a fault, see docs/faults.md"}
    )
    fail_spare_slots: bool = field(
        default=False, metadata={"help": "test switch: every allocation of a spare slot fails"}
    )
    random_seed: int = field(default=0, metadata={"help": "seed of sampling"})

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_sizes()
        self._check_draft()
        self._check_combinations()

    @property
    def overlap(self) -> int:
        """Forwards that may be in flight while the next one is launched."""
        return 0 if self.disable_overlap_schedule else 1

    @property
    def tree_page(self) -> int:
        """Tokens in a page of the tree: one KV page of each rank."""
        return self.page_size * self.dcp_size

    @property
    def kv_tokens(self) -> int:
        """KV locations of all ranks, in whole pages of the tree."""
        return self.max_total_tokens // self.page_size * self.tree_page

    @property
    def draft_tokens(self) -> int:
        """Tokens that a verify feeds, the root included; 0 without speculation."""
        if not self.speculative_algorithm:
            return 0
        default = 1 + self.speculative_num_steps * self.speculative_eagle_topk
        return self.speculative_num_draft_tokens or default

    @property
    def ring_length(self) -> int:
        """Inputs that a slot's replay ring holds; 0: there is none."""
        return self.linear_replayssm_cache_len if self.enable_linear_replayssm else 0

    @property
    def draft_room(self) -> int:
        """KV locations behind a row's tokens that one draft and its verify write."""
        # The head's last step is not fed back, so its guesses have no KV.
        drafted = self.speculative_eagle_topk * (self.speculative_num_steps - 1)
        return max(self.draft_tokens, drafted) if self.speculative_algorithm else 0

    def _check_choices(self) -> None:
        if not _DEVICE.fullmatch(self.device):
            raise ConfigError(f"--device is {self.device!r}, but must be cpu, cuda or cuda:N.")
        for name, choices in (
            ("dtype", DTYPES),
            ("mamba_radix_cache_strategy", STRATEGIES),
            ("speculative_algorithm", ("", *SPECULATION)),
        ):
            if (value := getattr(self, name)) not in choices:
                names = ", ".join(choice or "(empty)" for choice in choices)
                raise ConfigError(f"{_flag(name)} is {value!r}, but must be one of: {names}.")

    def _check_sizes(self) -> None:
        for name in (
            "context_length",
            "page_size",
            "dcp_size",
            "max_total_tokens",
            "max_running_requests",
            "chunked_prefill_size",
            "max_mamba_cache_size",
            "mamba_track_interval",
            "speculative_num_steps",
            "pp_size",
            "speculative_eagle_topk",
            "linear_replayssm_cache_len",
        ):
            if not 1 <= (value := getattr(self, name)) <= SIZE_MAX:
                raise ConfigError(f"{_flag(name)} is {value}, but must be 1 to {SIZE_MAX}.")

    def _check_draft(self) -> None:
        steps, topk, tokens = (
            self.speculative_num_steps,
            self.speculative_eagle_topk,
            self.draft_tokens,
        )
        if topk > 1 and self.speculative_algorithm not in TREES:
            raise ConfigError(
                f"--speculative-eagle-topk {topk} asks for trees, but "
                f"{self.speculative_algorithm or 'no drafter'} drafts none. Set it to 1, or "
                "--speculative-algorithm NEXTN."
            )
        most = 1 + topk + (steps - 1) * topk * topk
        fits = tokens == steps + 1 if topk == 1 else 1 < tokens <= most
        if self.speculative_algorithm and not fits:
            need = f"{steps + 1}, steps and the root" if topk == 1 else f"2 to {most}"
            raise ConfigError(
                f"--speculative-num-draft-tokens is {tokens}, but a draft of {steps} steps that "
                f"each keep {topk} has {need}. Leave it at 0, or change the steps."
            )

    def _check_combinations(self) -> None:
        if self.mamba_radix_cache_strategy == "no_buffer":
            if self.tree_page != 1:
                raise ConfigError(
                    "no_buffer files a state at whatever depth a request ends, but the tree can "
                    f"name only whole pages, here of {self.page_size} x {self.dcp_size} tokens. "
                    "Set --page-size 1 and --dcp-size 1, or choose extra_buffer."
                )
            if self.overlap:
                raise ConfigError(
                    "no_buffer donates the live state itself, and under overlap the next forward "
                    "has already been launched to move it. Set --disable-overlap-schedule, or "
                    "choose extra_buffer."
                )
        if self.enable_mixed_chunk and self.speculative_algorithm:
            raise ConfigError(
                "--enable-mixed-chunk puts one new token of each request that decodes beside the "
                f"prompts, but {self.speculative_algorithm} needs verifies, which feed several and "
                "commit what they accept. SGLang refuses it too. Leave out one of the two."
            )
        self._check_stages()
        self._check_host_tier()
        if self.enable_linear_replayssm and self.speculative_algorithm:
            raise ConfigError(
                "--enable-linear-replayssm keeps the inputs of decode steps, but "
                f"{self.speculative_algorithm} takes none: all its steps are verifies, whose ring "
                "(SGLang's --enable-linear-replayssm-spec) this engine lacks. Leave out one."
            )
        if 2 * self.draft_tokens > self.mamba_track_interval:
            raise ConfigError(
                f"a verify of {self.draft_tokens} tokens could cross two track depths that are "
                f"{self.mamba_track_interval} apart before the host knows of the first. Raise "
                "--mamba-track-interval or lower --speculative-num-steps."
            )

    def _check_host_tier(self) -> None:
        if not self.enable_hierarchical_cache:
            return
        if self.disable_radix_cache:
            raise ConfigError(
                "--enable-hierarchical-cache keeps on the host what the radix cache evicts, but "
                "--disable-radix-cache leaves nothing to evict. Leave out one of the two."
            )
        pages, most = self.kv_tokens // self.tree_page, SIZE_MAX // max(self.kv_tokens, 1)
        least = 1 / max(min(self.max_mamba_cache_size, pages), 1)
        if not least <= self.hicache_ratio <= most:
            raise ConfigError(
                f"--hicache-ratio is {self.hicache_ratio}, which gives the host tier not one slot "
                f"and one page, or more than can be numbered. Set {least:.3g} to {most}."
            )

    def _check_stages(self) -> None:
        for name, only in (("tp_size", 1), ("dp_size", 1), ("disaggregation_mode", "null")):
            if (value := getattr(self, name)) != only:
                raise ConfigError(
                    f"{_flag(name)} is {value}, but this engine has {only} only: it cuts a model "
                    "into pipeline stages (--pp-size), not otherwise. Use SGLang for that, traced "
                    "with `slotscope run`."
                )
        if self.pp_processes and self.pp_size == 1:
            raise ConfigError(
                "--pp-processes makes a process of each pipeline stage, but there is one stage. "
                "Set --pp-size, or leave --pp-processes out."
            )
        if self.pp_size > 1 and self.overlap:
            raise ConfigError(
                f"--pp-size {self.pp_size} keeps as many micro-batches in flight as there are "
                "stages, and every stage commits what a verify accepted before the next forward "
                "of the same micro-batch; overlap would launch that forward before. Set "
                "--disable-overlap-schedule."
            )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
