"""Liveness: whether a process that registered in a trace still lives, wherever it lives.

A process number means something only where it was given: under one boot of the kernel, in one PID
namespace. Elsewhere, in another container that shares the trace directory, or where /proc hides
the processes of others, a lock tells: a process holds one on its control file as long as it lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


def start_ticks(pid: int) -> int:
    """When the process started, in the kernel's ticks: tells a process from a later one of its pid.

    0 where the process is gone, is a zombie, or the kernel does not say.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == b"Z" else int(fields[19])


def home() -> str:
    """Where the number of this process means something; empty where the kernel does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def hold(path: Path) -> int:
    """Take the lock by which others see that this process lives; the descriptor that has it.

    A forked child inherits the lock: it must close the descriptor, or it is taken for its parent.
    A file system without locks leaves it unheld: then only who shares the `home` can tell.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def lives(path: Path, pid: int, ticks: int, where: str) -> bool:
    """The process that holds `path` lives.

    Args:
        pid, ticks: its number, and when it started.
        where: its `home`, or empty where it could not tell.
    """
    if where in ("", home()):
        now = start_ticks(pid)
        if now or not _hidden(pid):
            return bool(now) and now == ticks
    return _held(path)


def _hidden(pid: int) -> bool:
    """There is such a process, and /proc does not show it (`hidepid`)."""
    if Path(f"/proc/{pid}").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    else:
        return False
    finally:
        os.close(descriptor)
