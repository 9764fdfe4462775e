"""A child process around one `sglang.Engine`: JSON lines in, JSON lines out.

usage: serve.py FLAGS     (a JSON object of the engine's arguments)

Commands on stdin: {"ask": [[token, ..], ..], "tokens": n, "options": {..}, "logprobs": bool,
"session": id or null}, {"abort": [token, ..], "behind": n}, {"open_session": id},
{"close_session": id}, {"flush": true}.
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
            say(answers, obey(engine, command))
    finally:
        engine.shutdown()


def obey(engine: Any, command: dict[str, Any]) -> dict[str, Any]:
    """Carry out one command."""
    if "flush" in command:
        return flush(engine)
    if "abort" in command:
        return abort(engine, command)
    if "open_session" in command:
        engine.open_session(1 << 16, session_id=command["open_session"], streaming=True)
        return {}
    if "close_session" in command:
        engine.close_session(command["close_session"])
        return {}
    return ask(engine, command)


def ask(engine: Any, command: dict[str, Any]) -> dict[str, Any]:
    """Greedy tokens for every prompt of a batch, or for the next turn of a session."""
    sampling = {"max_new_tokens": command["tokens"], "temperature": 0, "ignore_eos": True}
    sampling.update(command.get("options", {}))
    if command.get("session"):
        turn = {"id": command["session"]}
        (prompt,) = command["ask"]
        results = [engine.generate(input_ids=prompt, sampling_params=sampling, session_params=turn)]
    else:
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


def abort(engine: Any, command: dict[str, Any]) -> dict[str, Any]:
    """Abort a request once it has some tokens; how it ended."""

    async def give_up(request: str) -> None:
        engine.tokenizer_manager.abort_request(rid=request)  # its sockets want a running loop

    sampling = {"max_new_tokens": 1000, "temperature": 0, "ignore_eos": True}
    result: dict[str, Any] = {}
    parts = engine.generate(input_ids=command["abort"], sampling_params=sampling, stream=True)
    for i, result in enumerate(parts):
        if i == command["behind"]:
            engine.loop.run_until_complete(give_up(result["meta_info"]["id"]))
    return {"finish_reason": result["meta_info"]["finish_reason"]}


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
