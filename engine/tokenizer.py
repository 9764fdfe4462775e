"""Tokenizer: text to token ids and back, as the model's folder says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
import tokenizers
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

_TEMPLATE_FAILURES = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a template raises when it can't render a conversation: its own refusal, or a slip of it."""


class TokenizerError(ValueError):
    """A tokenizer that can't be read, or a conversation that its chat template refuses."""


class Tokenizer:
    """`tokenizer.json` and the chat template of a model folder. Safe to use from many threads."""

    def __init__(
        self,
        core: tokenizers.Tokenizer,
        *,
        template: str | None = None,
        named_tokens: Mapping[str, str] | None = None,
    ) -> None:
        """Wrap a tokenizer.

        Args:
            core: the tokenizer; truncation and padding are switched off.
            template: Jinja source of the chat template. None: no chat.
            named_tokens: what the template may call `bos_token`, `eos_token` and so on.
        """
        core.no_truncation()
        core.no_padding()
        self._core = core
        self._named_tokens = dict(named_tokens or {})
        self._template = _compile(template) if template is not None else None
        self._special = {
            token.content: token_id
            for token_id, token in core.get_added_tokens_decoder().items()
            if token.special
        }

    @classmethod
    def load(cls, folder: Path) -> Tokenizer | None:
        """The tokenizer of a model folder; None if it has none.

        Raises:
            TokenizerError: `tokenizer.json`, `tokenizer_config.json` or the template is malformed.
        """
        path = folder / "tokenizer.json"
        if not path.exists():
            return None
        try:
            core = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise TokenizerError(
                f"{path} is no tokenizer of the `tokenizers` library: {error}. "
                "Save it again, or remove it to serve token ids only."
            ) from error
        settings = _read_object(folder / "tokenizer_config.json")
        return cls(core, template=_find_template(folder, settings), named_tokens=_named(settings))

    @property
    def vocab_size(self) -> int:
        """Ids that encoding can give: 0 to vocab_size - 1."""
        return self._core.get_vocab_size(with_added_tokens=True)

    @property
    def has_chat_template(self) -> bool:
        """`chat` works."""
        return self._template is not None

    def encode(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """Token ids of a text, which must be free of lone surrogates."""
        return tuple(self._core.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Text of token ids. Bytes that are no UTF-8 come as U+FFFD, unknown ids as nothing."""
        return self._core.decode(ids, skip_special_tokens=skip_special_tokens)

    def special_id(self, text: str) -> int | None:
        """Id of the special token that is spelt so; None if there is none."""
        return self._special.get(text)

    def chat(
        self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any] | None = None
    ) -> tuple[int, ...]:
        """Token ids of a conversation, up to where the assistant's answer begins.

        Args:
            messages: objects with `role` and `content`.
            options: further names for the template, as `chat_template_kwargs` of SGLang.
        Raises:
            TokenizerError: there is no template, or it refuses these messages.
        """
        if self._template is None:
            raise TokenizerError(
                "This model has no chat template, so messages can't be put to it. "
                "Send a prompt to /v1/completions."
            )
        names: dict[str, Any] = {"add_generation_prompt": True, "tools": None}
        names |= self._named_tokens
        names |= options or {}
        names["messages"] = messages
        try:
            text = self._template.render(names)
        except _TEMPLATE_FAILURES as error:
            raise TokenizerError(
                f"The model's chat template refuses these messages: {error}"
            ) from error
        return self.encode(text, add_special_tokens=False)


def _compile(template: str) -> jinja2.Template:
    """The template in the sandbox and with the helpers that Hugging Face gives its templates."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        return environment.from_string(template)
    except jinja2.TemplateSyntaxError as error:
        raise TokenizerError(
            f"Line {error.lineno} of the model's chat template is no Jinja: {error.message}. "
            "Correct it, or remove the template to serve without chat."
        ) from error


def _to_json(value: object, indent: int | None = None) -> str:
    # Jinja's own filter escapes for HTML, which a model would read as other text.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _read_object(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{path} is no JSON: {error}. Save the tokenizer again.") from error
    if not isinstance(value, dict):
        raise TokenizerError(
            f"{path} holds a {type(value).__name__}, but must hold an object. "
            "Save the tokenizer again."
        )
    return value


def _find_template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """Newer folders keep the template in a file of its own, older ones among the settings."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return path.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, named: the one for plain chat is `default`
        named = {entry["name"]: entry["template"] for entry in template}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _named(settings: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token` and its like; each is a string or an object with `content`."""
    named = {}
    for name, value in settings.items():
        content = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(content, str):
            named[name] = content
    return named
