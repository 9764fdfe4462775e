"""The real SGLang, served on this machine's CPU: for tests that need its scheduler and caches.

    with RealSglang(qwen3_next().folder, mamba_radix_cache_strategy="no_buffer",
                    disable_overlap_schedule=True) as engine:
        cold, = engine.ask([prompt], tokens=16)
        warm, = engine.ask([prompt], tokens=16)

`make test-sglang` builds the environments that it starts in; tests/sglang/README.md tells more.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".venv-sglang"
STAND_IN = ROOT / "tests/sglang/stand_in"
SERVE = ROOT / "tests/sglang/serve.py"
NEWEST = "0.5.23"
EARLY = ("0.5.17", "0.5.18")
START_SECONDS_MAX = 1500.0  # two slow cores that others use too; alone it takes some 40 s
ANSWER_SECONDS_MAX = 900.0

FLAGS: dict[str, Any] = {
    "skip_tokenizer_init": True,
    "device": "cpu",
    "attention_backend": "intel_amx",  # the plugin gives it to processors without AMX
    "disable_cuda_graph": True,
    "mem_fraction_static": 0.3,
    "max_running_requests": 4,
    "max_total_tokens": 4096,
    "max_mamba_cache_size": 40,
    "dtype": "float32",
    "mamba_ssm_dtype": "float32",
    "sampling_backend": "pytorch",
    "grammar_backend": "none",
    "random_seed": 1,
    "log_level": "warning",
}
ENVIRONMENT = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TRITON_INTERPRET": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "",  # else each of its processes compiles all of torch again
    "SGLANG_MAMBA_CONV_DTYPE": "float32",
    "SGLANG_MAMBA_SSM_DTYPE": "float32",
    "SGLANG_CUDA_COREDUMP_BEFORE_CRASH": "0",  # else a crash waits a minute for a core dump
    "SGLANG_NCCL_SO_PATH": "/nonexistent",  # pipeline stages then talk over gloo
}


class EngineFailed(RuntimeError):
    """The child didn't answer: it ended, or it took too long. Carries its last output."""


@dataclass(frozen=True)
class Answer:
    """What one prompt got: new tokens, and SGLang's meta_info."""

    tokens: list[int]
    meta: dict[str, Any]

    @property
    def cached_tokens(self) -> int:
        return int(self.meta["cached_tokens"])

    @property
    def logprobs(self) -> list[float]:
        """Natural log of each token's probability, where they were asked for."""
        return [float(entry[0]) for entry in self.meta["output_token_logprobs"]]


def python(release: str = NEWEST) -> Path:
    """The interpreter that has this release; it need not exist."""
    return ENVIRONMENTS / release / "bin/python"


def environment(plugins: Sequence[Path] = (), release: str = NEWEST) -> dict[str, str]:
    """This process's variables with what a CPU run needs; `plugins` are folders for its path."""
    variables = {**os.environ, **ENVIRONMENT}
    variables["PYTHONPATH"] = os.pathsep.join(map(str, (*plugins, STAND_IN)))
    # The n-gram cache is C++, compiled by the environment's ninja when it is first used.
    variables["PATH"] = f"{python(release).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if release in EARLY:
        variables["CXX"] = "c++ -include cstddef"  # a header that its sources forget
    return variables


def stage_variables(count: int, release: str = NEWEST) -> dict[str, str]:
    """Variables for so many pipeline stages: a core for each, since small machines have one node.

    Releases up to 0.5.18 bind tensor ranks alone, and refuse a list for stages.
    """
    if release in EARLY:
        return {}
    cores = os.cpu_count() or 1
    return {"SGLANG_CPU_OMP_THREADS_BIND": "|".join(str(i % cores) for i in range(count))}


class RealSglang:
    """One `sglang.Engine` in a process of its own, with further processes of SGLang's below it.

    Args:
        model: a checkpoint folder.
        release: which environment of `.venv-sglang` to start in.
        plugins: folders that go on PYTHONPATH, each with a `.dist-info` that names its entry point.
        variables: environment variables on top of ENVIRONMENT.
        log: where the engine's output goes; by default `build/sglang/engine.log`.
        flags: arguments of `sglang.Engine` on top of FLAGS.
    Raises:
        EngineFailed: at the start or at an ask, with the end of the log.
    """

    def __init__(
        self,
        model: Path,
        *,
        release: str = NEWEST,
        plugins: Sequence[Path] = (),
        variables: Mapping[str, str] | None = None,
        log: Path | None = None,
        **flags: Any,
    ) -> None:
        self.log = log or ROOT / "build/sglang/engine.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        reading, writing = os.pipe()
        started = {
            **environment(plugins, release),
            **(variables or {}),
            "SERVE_ANSWERS": str(writing),
        }
        arguments = json.dumps({**FLAGS, "model_path": str(model), **flags})
        with self.log.open("w") as output:
            self._process = subprocess.Popen(
                [python(release), SERVE, arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=started,
                pass_fds=[writing],
                start_new_session=True,  # so that one signal ends SGLang's processes too
            )
        os.close(writing)
        self._answers = open(reading, "rb", buffering=0)  # noqa: SIM115 # closed by close()
        self._unread = b""
        try:
            self._receive(START_SECONDS_MAX)
        except BaseException:
            self.kill()
            raise

    def ask(
        self,
        prompts: Sequence[Sequence[int]],
        tokens: int,
        *,
        logprobs: bool = False,
        session: str | None = None,
        **options: Any,
    ) -> list[Answer]:
        """Greedy tokens for a batch of prompts.

        Args:
            logprobs: also what the model thought of each token, in `Answer.logprobs`.
            session: an open session, whose next turn the only prompt is.
            options: further sampling parameters of SGLang's.
        """
        said = self._command(
            {
                "ask": [list(prompt) for prompt in prompts],
                "tokens": tokens,
                "options": options,
                "logprobs": logprobs,
                "session": session,
            }
        )
        return [Answer(**answer) for answer in said["answers"]]

    def abort(self, prompt: Sequence[int], behind: int) -> str:
        """Ask for very many tokens, and abort behind so many parts of the answer; how it ended."""
        said = self._command({"abort": list(prompt), "behind": behind})
        return str(said["finish_reason"]["type"])

    def open_session(self, name: str) -> None:
        """Open a streaming session: its turns go on from each other's states."""
        self._command({"open_session": name})

    def close_session(self, name: str) -> None:
        """Close it, and with it give up its row and slots."""
        self._command({"close_session": name})

    def flush(self) -> None:
        """Empty SGLang's caches."""
        if not self._command({"flush": True})["flushed"]:
            raise EngineFailed("SGLang refused to flush its caches for ten seconds.")

    def close(self) -> None:
        """End the engine in its own way, and its processes in any."""
        self._end_input()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        self.kill()

    def kill(self) -> None:
        """End every process of the engine now."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._answers.close()
        self._end_input()

    def __enter__(self) -> RealSglang:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill() if kind else self.close()

    def _end_input(self) -> None:
        """End of input is how the child is asked to end; one that is gone needs no asking."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _command(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the answers' pipe tells that it is gone
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        return self._receive(ANSWER_SECONDS_MAX)

    def _receive(self, seconds_max: float) -> dict[str, Any]:
        """The child's next line; the end of its pipe means that it is gone."""
        until = time.monotonic() + seconds_max
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise EngineFailed(f"No answer in {seconds_max:.0f} s.\n{self._tail()}")
                part = self._answers.read(1 << 16)
                if not part:
                    raise EngineFailed(f"The engine ended.\n{self._tail()}")
                self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _tail(self) -> str:
        text = self.log.read_text(errors="replace")
        return f"The end of {self.log}:\n{text[-4000:]}"
