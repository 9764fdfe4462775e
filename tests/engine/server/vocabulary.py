"""A byte-level tokenizer for tests: token id = byte, then three special tokens."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

TEMPLATE = """\
{%- for message in messages -%}
{%- if message.role == 'bishop' -%}{{ raise_exception('a bishop has no part') }}{%- endif -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if mood is defined -%}({{ mood }}){%- endif -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}
"""


def make_core() -> tokenizers.Tokenizer:
    """The tokenizer of the `tokenizers` library."""
    vocabulary = {letter: byte for byte, letter in _letters().items()}
    core = tokenizers.Tokenizer(models.BPE(vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return core


def write_folder(folder: Path) -> Path:
    """Save it as a model folder would have it."""
    folder.mkdir(exist_ok=True)
    make_core().save(str(folder / "tokenizer.json"))
    settings = {"eos_token": "<|endoftext|>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def _letters() -> dict[int, str]:
    """The printable letter that byte-level BPE writes for each byte, as GPT-2 defined it."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    others = [byte for byte in range(256) if byte not in letters]
    return letters | {byte: chr(256 + at) for at, byte in enumerate(others)}
