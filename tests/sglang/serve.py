"""A child process around one `sglang.Engine`: JSON lines in, JSON lines out.

usage: serve.py FLAGS     (a JSON object of the engine's arguments)

Commands on stdin: {"ask": [[token, ..], ..], "tokens": n, "options": {..}, "logprobs": bool},
{"flush": true}.
Answers go to the file descriptor named by SERVE_ANSWERS, since SGLang prints to stdout.
End of input ends the engine.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, TextIO


def main() -> None:
    import sglang

    answers = os.fdopen(int(os.environ["SERVE_ANSWERS"]), "w", buffering=1)
    engine = sglang.Engine(**json.loads(sys.argv[1]))
    try:
        say(answers, {"ready": True})
        for line in sys.stdin:
            command = json.loads(line)
            say(answers, flush(engine) if "flush" in command else ask(engine, command))
    finally:
        engine.shutdown()


def ask(engine: Any, command: dict[str, Any]) -> dict[str, Any]:
    """Greedy tokens for every prompt of a batch."""
    sampling = {"max_new_tokens": command["tokens"], "temperature": 0, "ignore_eos": True}
    sampling.update(command.get("options", {}))
    results = engine.generate(
        input_ids=command["ask"],
        sampling_params=[sampling] * len(command["ask"]),
        return_logprob=command.get("logprobs", False),
    )
    return {
        "answers": [
            {"tokens": result["output_ids"], "meta": result["meta_info"]} for result in results
        ]
    }


def flush(engine: Any) -> dict[str, Any]:
    """Empty the caches. A scheduler refuses while it retires a request; then ask again."""
    for _ in range(50):
        done = engine.flush_cache()
        if getattr(done, "success", True):
            return {"flushed": True}
        time.sleep(0.2)
    return {"flushed": False}


def say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message, default=str) + "\n")


if __name__ == "__main__":
    main()
