"""Train the bundled model: `python -m slotscope.engine.bundled.make.train OUT`.

One run on one GPU; `--tiny --minutes 0.3` tries every step of it on a CPU.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slotscope.engine.bundled.corpus import HELD_OUT

from . import accept, data, draft, folder
from .config import Sizes
from .loss import DRAFT_STEPS, losses
from .model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What decides the result.

    The last `long_share` of the minutes trains at `long_tokens`. The second training of the draft
    head ends at a mean accept length of `accept_enough`: see `draft.fit`.
    """

    seed: int = 1
    documents: int = 120_000
    held_out: int = 400
    minutes: float = 7.0
    batch_tokens: int = 32_768
    tokens: int = 2048
    long_tokens: int = 4096
    long_share: float = 0.2
    rate: float = 3e-3
    warmup: int = 200
    decay: float = 0.1
    draft_weight: float = 0.2  # of each draft step's loss beside the trunk's
    balance_weight: float = 0.01
    report_every: int = 100
    prompt: int = 256
    written: int = 128
    accept_enough: float = 2.8


def optimizer(model: Model, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; matrices decay, vectors (norms, decays, biases) don't."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.95), fused=True)


def rate(recipe: Recipe, step: int, progress: float) -> float:
    """Linear warm-up, then half a cosine to a fiftieth."""
    cosine = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    return recipe.rate * min(1.0, (step + 1) / recipe.warmup) * cosine


def fit(
    model: Model, stream: data.Stream, recipe: Recipe, device: str, out: Path
) -> dict[str, Any]:
    """Train until the minutes are over. Returns how far it came."""
    draw = torch.Generator().manual_seed(recipe.seed)
    steps, seen = 0, 0
    tuned = optimizer(model, recipe)
    began = last_saved = time.monotonic()
    progress = 0.0
    while progress < 1:
        length = recipe.long_tokens if progress > 1 - recipe.long_share else recipe.tokens
        rows = stream.rows(max(1, recipe.batch_tokens // length), length + 2, draw).to(device)
        for group in tuned.param_groups:
            group["lr"] = rate(recipe, steps, progress)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            trunk, drafts = losses(model, rows)
            loss = trunk + recipe.draft_weight * torch.stack(drafts).sum()
            loss = loss + recipe.balance_weight * model.balance()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        tuned.step()
        tuned.zero_grad(set_to_none=True)
        steps, seen = steps + 1, seen + rows.numel()
        if steps % recipe.report_every == 0 or steps in (1, 10, 30):
            parts = " ".join(f"{part.item():.4f}" for part in drafts)
            _say(
                f"step {steps} trunk {trunk.item():.4f} drafts {parts} norm {norm.item():.2f} "
                f"balance {model.balance().item():.3f} {time.monotonic() - began:.0f} s "
                f"{seen / (time.monotonic() - began):.0f} tokens/s"
            )
        if time.monotonic() - last_saved > 60:
            last_saved = time.monotonic()
            folder.save(model, out)
        # The schedule follows the clock, so a slower GPU ends in time with fewer steps.
        progress = (time.monotonic() - began) / (60 * recipe.minutes)
    return {"steps": steps, "tokens": seen, "seconds": round(time.monotonic() - began, 1)}


@torch.inference_mode()
def measure(model: Model, held: data.Stream, texts: Tensor, recipe: Recipe) -> dict[str, Any]:
    """Held-out figures: nats a byte, and accept lengths over the greedy `texts`."""
    draw = torch.Generator().manual_seed(recipe.seed)
    trunk, drafts = losses(model, held.rows(16, recipe.tokens + 2, draw).to(texts.device))
    found = accept.lengths(model, texts, recipe.prompt, DRAFT_STEPS)
    shares = [found.count(length) / len(found) for length in range(1, DRAFT_STEPS + 2)]
    return {
        "held_out_nats_per_byte": round(trunk.item(), 4),
        "held_out_draft_nats_per_byte": [round(part.item(), 4) for part in drafts],
        "accept_length_mean": round(sum(found) / len(found), 3),
        "accept_length_shares": [round(share, 3) for share in shares],
    }


def main() -> None:
    """Write the corpus, train trunk and head, then the head anew; save, load, measure."""
    chosen = _arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    recipe = replace(Recipe(), minutes=chosen.minutes)
    if chosen.tiny:
        recipe = replace(
            recipe, documents=400, held_out=60, batch_tokens=512, tokens=128, long_tokens=256,
            report_every=5, prompt=64, written=66, warmup=5, accept_enough=1.1,
        )  # fmt: skip
    torch.manual_seed(recipe.seed)
    torch.set_float32_matmul_precision("high")
    stream, held = data.write(0, recipe.documents), data.write(HELD_OUT, recipe.held_out)
    _say(f"{len(stream.tokens)} tokens in {len(stream.starts)} documents")
    figures: dict[str, Any] = {}
    if chosen.trunk:
        model = folder.load(chosen.trunk).to(device)
        figures |= json.loads((chosen.trunk / "figures.json").read_text())
    else:
        model = Model(Sizes()).to(device)
        figures |= fit(model, stream, recipe, device, chosen.out)
    figures["parameters"] = sum(p.numel() for p in model.parameters())
    draw = torch.Generator().manual_seed(recipe.seed)
    texts = accept.write(model, held.rows(16, recipe.prompt, draw).to(device), recipe.written)
    figures["accept_length_mean_joint_head"] = measure(model, held, texts, recipe)[
        "accept_length_mean"
    ]
    stop = draft.Stop(texts, recipe.prompt, recipe.accept_enough)
    rows = partial(stream.rows, recipe.batch_tokens // recipe.tokens, recipe.tokens + 2, draw)
    figures["draft_steps"] = draft.fit(model, rows, stop, _say)
    folder.save(model, chosen.out)
    figures |= measure(folder.load(chosen.out).to(device), held, texts, recipe)
    figures |= {"torch": torch.__version__, "device": _name(device)}
    (chosen.out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")
    _say(json.dumps(figures, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--minutes", type=float, default=Recipe().minutes)
    parser.add_argument("--trunk", type=Path, help="take the trunk of this folder, train the head")
    parser.add_argument("--tiny", action="store_true", help="a try on a CPU: seconds, no quality")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "cpu"


if __name__ == "__main__":
    main()
