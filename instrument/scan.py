"""Scan: reads a trace directory's segments, each record once, from wherever it stands."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from . import expand
from .batch import Batch, Offset, Row, anchor_row, gap_row, operation, request_row
from .control import ControlError, ControlImage, uid
from .expand import Events
from .layout import (
    CONTROL_FILES,
    SEGMENT_FILES,
    SEGMENT_HEADER_DATA,
    Fact,
    Reason,
    control_name,
)
from .segment import Records, SegmentError, SegmentFile

BATCH_EVENTS = 500_000
"""What is stored at once: a bound of memory."""

NO_SEGMENT = -1
"""Stands for the control file among the segments of its process."""

_NOWHERE = (None, None, None, None)
"""The window of a gap of which no order and no time is known."""


@dataclass(slots=True)
class _Cursor:
    file: SegmentFile
    offset: Offset

    @property
    def unread(self) -> bool:
        """There is more in it."""
        return self.file.writer is not None and self.file.committed[0] > self.offset.bytes


class Scan:
    """Goes through the segments of a directory, which may grow meanwhile.

    A record counts as read once `batch` has returned it; a scan is moved to where another one
    stood by `resume`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.images: dict[int, ControlImage] = {}
        self._cursors: dict[Path, _Cursor] = {}
        self._seen: set[str] = set()
        self._controls: set[str] = set()
        self._offsets: dict[tuple[int, int], Offset] = {}
        self.next_seq: dict[int, int] = {}  # of each writer's next event
        self._closed: dict[tuple[int, str, str], int] = {}  # writer, reason, op
        self._anchored: set[int] = set()
        self._unreadable: list[tuple[Offset, Row]] = []
        self._ordinals: dict[int, int] = {}  # of each writer's last segment that is there

    def resume(
        self, offsets: list[Offset], next_seq: dict[int, int], gaps: list[Row], anchored: set[int]
    ) -> None:
        """Stand where all this has been stored, whatever `look` has opened before."""
        self._cursors.clear()
        self._seen.clear()
        self._controls.clear()
        self._unreadable.clear()
        self._ordinals.clear()
        self._offsets = {(o.process, o.segment): o for o in offsets}
        self.next_seq = dict(next_seq)
        self._anchored = set(anchored)
        for gap in gaps:
            self._close(gap)
        self.look()

    def batch(self, events_max: float = BATCH_EVENTS) -> Batch:
        """What has been committed since the last call; ask again if not empty.

        Args:
            events_max: the batch ends after the segment in which it passes this.
        """
        self.look()
        batch = Batch()
        for offset, gap in self._unreadable:
            batch.offsets.append(offset)
            batch.gaps.append(gap)
        self._unreadable.clear()
        for image in self.images.values():
            if image.process not in self._anchored:
                self._anchored.add(image.process)
                batch.anchors.append(anchor_row(image.process, image.anchor))
        parts: list[Events] = []
        count = 0
        for cursor in self._in_order():
            if count >= events_max:
                break
            count += self._advance(cursor, batch, parts)
        batch.events = expand.concatenate(parts)
        # The scan goes on with its own, maybe before these are stored.
        batch.offsets = [replace(offset) for offset in batch.offsets]
        return batch

    def open_gaps(self) -> list[Row]:
        """Losses that no record tells of yet, as the latest `batch` found them."""
        rows = []
        for image in self.images.values():
            for writer, losses in image.losses().items():
                window = image.window(writer) or (None, None, None, None)
                for (reason, op), total in losses.items():
                    key = writer, Reason(reason).name.lower(), operation(op)
                    count = total - self._closed.get(key, 0)
                    if count > 0:
                        rows.append(gap_row(image.process, writer, reason, op, count, window))
            rows += self._cut_off(image)
        return rows

    def _cut_off(self, image: ControlImage) -> list[Row]:
        """Writers whose last segments are not there, by what they have counted."""
        begun = image.progress()
        read = sum(
            process == image.process and (offset.done or offset.bytes > SEGMENT_HEADER_DATA)
            for (process, _), offset in self._offsets.items()
        )
        unread = {c.file.writer for c in self._cursors.values() if c.unread}
        rows = []
        for writer, (segments, events) in begun.items():
            if writer in unread:
                continue  # The batch was cut: who knows yet.
            count = max(events - self.next_seq.get(writer, 0), 0)
            short = sum(n for n, _ in begun.values()) > read
            if count or (short and segments - 1 > self._ordinals.get(writer, -1)):
                row = gap_row(image.process, writer, Reason.DAMAGED, None, count, _NOWHERE)
                rows.append(row | {"detail": f"the last segments of writer {writer} are missing"})
        return rows

    def processes(self) -> list[Row]:
        """Who has taken part, and how each of them is now."""
        return [
            {
                "process": image.process,
                "pid": image.pid,
                "state": image.state,
                "started_ns": image.anchor[0],
                "command": image.identity.get("command", ""),
                "host": image.identity.get("host", ""),
                "python": image.identity.get("python", ""),
                "error": image.error or None,
            }
            for _, image in sorted(self.images.items())
        ]

    @property
    def registered(self) -> bool:
        """A process has registered here, be its control file readable or not."""
        return bool(self._controls)

    @property
    def uid(self) -> int:
        """64 bits that tell this trace from others: what its first process wrote of itself."""
        return uid(self.directory / min(self._controls))

    def look(self) -> None:
        """Find new files, and how far known ones are.

        Control files are read before commit words: no loss is counted late.

        Raises:
            ControlError: a control file of another version.
            OSError: a file can't be read.
        """
        if not self.directory.is_dir():
            return  # Packed, or removed, and with it whatever there was to come.
        for image in self.images.values():
            image.refresh()
        for name in sorted(os.listdir(self.directory)):
            if name not in self._controls and fnmatchcase(name, CONTROL_FILES):
                self._register(name)
        # Only now: what a control file has counted is surely there, unless somebody removed it.
        names = sorted(os.listdir(self.directory))
        for path, cursor in list(self._cursors.items()):
            try:
                cursor.file.refresh()
            except FileNotFoundError:
                del self._cursors[path]  # Its process has stopped, and never used it.
            else:
                self._note_ordinal(cursor.file)
        for name in names:
            if name not in self._seen and fnmatchcase(name, SEGMENT_FILES):
                self._find(name)

    def _register(self, name: str) -> None:
        """Take in a new process. Of a damaged control file all is unknown: what its process lost,
        and whether it lives."""
        self._controls.add(name)
        path = self.directory / name
        try:
            image = ControlImage(path)
        except ControlError as error:
            if error.errno != errno.EINVAL:
                raise
            self._refuse((int(name[1:7]), NO_SEGMENT), error)
        else:
            self.images[image.process] = image

    def _find(self, name: str) -> None:
        """Take in a new segment, unless it has been read to its end before."""
        path = self.directory / name
        try:
            file = SegmentFile(path)
        except FileNotFoundError:
            return  # It was never used, and its process has just stopped.
        except SegmentError as error:
            self._seen.add(name)
            self._refuse((int(name[1:7]), int(name[8:14])), error)
            return
        self._seen.add(name)
        self._note_ordinal(file)
        # Its control file was there first, and counts what the process lost: without it who knows.
        control = self.directory / control_name(file.process)
        if control.name not in self._controls and not control.exists():
            self._refuse((file.process, NO_SEGMENT), SegmentError(f"{control} is missing"))
        key = file.process, file.number
        offset = self._offsets.setdefault(key, Offset(*key, SEGMENT_HEADER_DATA, 0))
        if not offset.done:
            self._cursors[path] = _Cursor(file, offset)

    def _note_ordinal(self, file: SegmentFile) -> None:
        if file.writer is not None:
            self._ordinals[file.writer] = max(file.ordinal, self._ordinals.get(file.writer, -1))

    def grown(self) -> bool:
        """There is more to read."""
        self.look()
        return bool(self._unreadable) or any(c.unread for c in self._cursors.values())

    def _refuse(self, key: tuple[int, int], error: Exception) -> None:
        """Keep a file that can't be read as a gap of unknown size, once."""
        if key not in self._offsets:
            self._offsets[key] = Offset(*key, 0, 0, done=True)
            gap = gap_row(key[0], None, Reason.DAMAGED, None, 0, _NOWHERE)
            self._unreadable.append(
                (self._offsets[key], gap | {"open": False, "detail": str(error)})
            )

    def _in_order(self) -> list[_Cursor]:
        """Cursors of used segments, each writer's in the order they were written, and those of
        different writers nearly in the order they were begun, which is that of their numbers."""
        used = [(c, c.file.writer) for c in self._cursors.values() if c.file.writer is not None]
        used.sort(key=lambda u: (u[1], u[0].file.ordinal))
        keys: list[tuple[int, int]] = []
        for i, (cursor, writer) in enumerate(used):
            before = keys[-1][1] if i and used[i - 1][1] == writer else -1
            keys.append((cursor.file.process, max(cursor.file.number, before)))
        return [used[i][0] for i in sorted(range(len(used)), key=lambda i: (keys[i], i))]

    def _advance(self, cursor: _Cursor, batch: Batch, parts: list[Events]) -> int:
        """Read what a segment has; the number of its events."""
        file, offset = cursor.file, cursor.offset
        writer = file.writer
        assert writer is not None
        image = self.images.get(file.process)
        # Who has sealed or stopped has committed its last before that. Of a dead process one
        # can't be as sure: it may live where its pid means nothing here.
        last = file.sealed or (image is not None and image.state == "stopped")
        end, committed = file.committed
        count = 0
        if end > offset.bytes:
            first_read = offset.bytes == SEGMENT_HEADER_DATA
            try:
                records = file.read(offset.bytes, end)
            except FileNotFoundError:  # It has made room. Its writer's next one shows what is gone.
                del self._cursors[file.path]
                return 0
            found = expand.events(records, process=file.process, writer=writer)
            count = len(found["seq"])
            parts.append(found)
            self._facts(records, writer, file.process, batch)
            if first_read:
                batch.anchors.append(anchor_row(file.process, file.anchor))
            self._account(cursor, writer, records, committed, count, batch)
            offset.bytes = end
            batch.offsets.append(offset)
        if last:
            if not offset.done and offset not in batch.offsets:
                batch.offsets.append(offset)
            offset.done = True
            del self._cursors[file.path]
        return count

    def _account(
        self,
        cursor: _Cursor,
        writer: int,
        records: Records,
        committed: int,
        count: int,
        batch: Batch,
    ) -> None:
        """Compare what was read with what the writer says that it has committed."""
        offset, heads = cursor.offset, records.headers
        expected = self.next_seq.get(writer, 0)
        if len(heads) and not records.damage:
            missing = int(heads["seq"][0]) - expected
            if missing > 0:
                before = int(heads["order"][0])
                self._missing(cursor, writer, expected, missing, before, batch)
            self.next_seq[writer] = int(heads["seq"][-1]) + int(heads["n"][-1])
        else:
            self.next_seq[writer] = expected + committed - offset.events
        lost = committed - offset.events - count
        if lost or records.damage:
            detail = "; ".join(
                f"{cursor.file.path}: {d.size} bytes at {d.at} are {d.what}" for d in records.damage
            )
            self._damaged(cursor, writer, max(lost, 0), detail, batch)
        offset.events = committed

    def _missing(
        self,
        cursor: _Cursor,
        writer: int,
        expected: int,
        count: int,
        before: int,
        batch: Batch,
    ) -> None:
        """Events from `expected` on, all of orders before a certain one, are not there: by the
        intent of their process, or not."""
        image = self.images.get(cursor.file.process)
        overwritten = 0
        if image is not None:
            image.refresh()
            overwritten = min(count, max(image.kept_from(writer) - expected, 0))
        detail = f"the segments before {cursor.file.path} are missing"
        if overwritten:
            process, reason = cursor.file.process, Reason.OVERWRITTEN
            window = (None, before, None, None)  # What is kept lies behind, and can be judged.
            row = gap_row(process, writer, reason, None, overwritten, window)
            batch.gaps.append(row | {"open": False, "detail": detail})
        if count > overwritten:
            self._damaged(cursor, writer, count - overwritten, detail, batch)

    def _damaged(self, cursor: _Cursor, writer: int, count: int, detail: str, batch: Batch) -> None:
        row = gap_row(cursor.file.process, writer, Reason.DAMAGED, None, count, _NOWHERE)
        batch.gaps.append(row | {"open": False, "detail": detail})

    def _facts(self, records: Records, writer: int, process: int, batch: Batch) -> None:
        for fact in expand.facts(records):
            content = fact.content
            row: Row = {"process": process, "time_ns": fact.time_ns}
            if fact.fact is Fact.REQUEST:
                batch.requests.append(row | request_row(content) | {"order": fact.order})
            elif fact.fact is Fact.HOOK:
                row |= {"name": content["name"], "live": content["live"]}
                batch.hooks.extend(row | {"op": operation(op)} for op in content["ops"])
            elif fact.fact is Fact.NOTE:
                value = content["value"]
                text = value if isinstance(value, str) else json.dumps(value)
                batch.notes.append(row | {"key": content["key"], "value": text})
            else:
                for reason, op, count in content["lost"]:
                    gap = gap_row(process, writer, reason, op, count, tuple(content["window"]))
                    gap["open"] = False
                    self._close(gap)
                    batch.gaps.append(gap)

    def _close(self, gap: Row) -> None:
        """A gap that is stored is not counted as open any more."""
        if gap["op"] is not None:
            key = gap["writer"], gap["reason"], gap["op"]
            self._closed[key] = self._closed.get(key, 0) + gap["count"]
