"""Manifest: says that a generation is whole, and what a reader needs before it opens it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path

FILES = "gen-*"
_MANIFESTS = f"gen-{'[0-9]' * 6}.json"


class SealedError(ValueError):
    """A generation that is missing or not what its manifest says. The message names it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of a generation without opening it."""

    number: int  # 0 is the oldest of the trace
    schema_version: int
    trace_uid: int
    events: int
    first_ns: int  # CLOCK_MONOTONIC of the earliest event
    last_ns: int
    sealed_ns: int  # Unix time
    bytes: int
    sha256: str

    def write(self, directory: Path) -> None:
        """Make it visible, whole or not at all, and durable."""
        path = directory / manifest_name(self.number)
        fresh = path.with_suffix(".json.new")
        with fresh.open("w") as file:
            json.dump(asdict(self), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        sync(directory)

    def verify(self, directory: Path) -> None:
        """Read the whole file.

        Raises:
            SealedError: it is not what was sealed.
            OSError: it can't be read.
        """
        path = directory / data_name(self.number)
        if (found := digest(path)) != self.sha256:
            raise SealedError(
                f"{path} has the checksum {found}, and {self.sha256} was sealed. What is read from "
                "it may be wrong. Restore it from a copy, or remove it and its .json to go on "
                "without the events that it holds."
            )


def data_name(number: int) -> str:
    """File name of a generation."""
    return f"gen-{number:06d}.duckdb"


def manifest_name(number: int) -> str:
    """File name of its manifest."""
    return f"gen-{number:06d}.json"


def find(directory: Path) -> list[Manifest]:
    """The manifests of a directory, the oldest first. One that is removed meanwhile is left out.

    Raises:
        SealedError: one is damaged.
    """
    return list(_read(sorted(directory.glob(_MANIFESTS))))


def latest(directory: Path) -> int | None:
    """The number of the latest generation; it changes with each roll."""
    names = [p.name for p in directory.glob(_MANIFESTS)]
    return int(max(names)[4:10]) if names else None


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def sync(directory: Path) -> None:
    """Make renames in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(paths: list[Path]) -> Iterator[Manifest]:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            text = path.read_text()
            try:
                yield Manifest(**json.loads(text))
            except (TypeError, ValueError) as error:
                raise SealedError(
                    f"{path} is no manifest of this slotscope: {error}. Restore it from a copy, or "
                    "remove it and its .duckdb to go on without the events that it holds."
                ) from error
