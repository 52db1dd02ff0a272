"""Defines DeadLetter: the bytes of a record that could not be processed, with the reason."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from traceweir.schemas.text import printable

Reason = Literal[
    "empty",
    "too_large",
    "not_json",
    "not_an_object",
    "invalid",
    "future_timestamp",
    "late",
    "missed",
    "trace_id_conflict",
    "unreadable_batch",
    "unreadable_session",
    "unreadable_candidate",
    "scoring_failed",
    "poison",
    "refused",
    "given_up",
]

PREFIX = "traceweir."
ORIGIN = PREFIX + "origin"
"""Header of a misrouted record that a worker forwards: the input topic of the record."""
REPLAY = PREFIX + "replay"
"""Header of a replayed record: the id of its dead letter."""
FIRST_PLACE = PREFIX + "first_place"
"""Header of a replayed record: where the record was that was refused first (`place_text`)."""
REPLAYED = PREFIX + "replayed"
"""Header of a mark on the `dead-letters` topic: the id of the replayed dead letter. A mark has no key and no value."""
KEPT_BYTES = 65_536
"""Maximum number of bytes of the value in a dead letter; headers contain the size and SHA-256 of a longer value."""

Headers = Sequence[tuple[str, bytes]]

_PLACE = re.compile(r"[A-Za-z0-9._-]{1,249}-[0-9]{1,10}@[0-9]{1,19}")
"""A place as `place_text` writes it: a topic, a partition and an offset of Kafka."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Holds a record that could not be processed.

    On the wire, a dead letter has the key, value and headers of the record; all other fields are `traceweir.*`
    headers.
    """

    reason: str
    detail: str
    """A sentence for a person, without control characters."""
    stage: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    size: int | None = None
    """Bytes of the original value, if it was truncated."""
    sha256: str | None = None
    """SHA-256 of the original value, if it was truncated."""
    timestamp: int | None = None
    """Timestamp of the original record, in milliseconds since 1970."""
    origin: str | None = None
    """For a misrouted record, the input topic that the record was first read from."""
    replay_of: str | None = None
    """For a replayed record, the id of its earlier dead letter."""
    first_place: str | None = None
    """For a replayed record, where the record was that was refused first."""
    left_out: int | None = None
    """Bytes of key and headers that were omitted because they were too large."""
    group: str | None = None
    """For a score that an exporter's target has not taken, the consumer group of the exporter."""

    @property
    def refused_at(self) -> str:
        """Where the record was when it was refused first: a replayed record can be refused again."""
        return self.first_place or place_text(self.topic, self.partition, self.offset)

    def wire_value(self) -> bytes | None:
        """Returns the value to send: the first 64 kB of the original value."""
        return self.value if self.value is None else self.value[:KEPT_BYTES]

    def wire_headers(self) -> list[tuple[str, bytes]]:
        """Returns the original headers, then the `traceweir.*` headers with the failure."""
        about = {
            "reason": self.reason,
            "detail": printable(self.detail),
            "stage": self.stage,
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
        }
        if self.value is not None and len(self.value) > KEPT_BYTES:
            about |= about_whole(self.value)
        more = {
            "timestamp": self.timestamp,
            "origin": self.origin,
            "replay": self.replay_of,
            "first_place": self.first_place,
            "left_out": self.left_out,
            "group": self.group,
        }
        about |= {name: str(found) for name, found in more.items() if found is not None}
        own = [(name, content) for name, content in self.headers if not name.startswith(PREFIX)]
        return own + [(PREFIX + name, text.encode()) for name, text in about.items()]

    @classmethod
    def read(cls, key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes]]) -> DeadLetter:
        """Returns the dead letter in a record of the `dead-letters` topic. Some records there are marks: see `marked`.

        Raises:
            ValueError: a `traceweir.*` header is missing: the record is a mark, or Traceweir did not write it.
        """
        found = list(headers)
        # A header of another producer can have no value.
        about = {name.removeprefix(PREFIX): (text or b"").decode() for name, text in found if name.startswith(PREFIX)}
        try:
            return cls(
                reason=about["reason"],
                detail=about["detail"],
                stage=about["stage"],
                topic=about["topic"],
                partition=int(about["partition"]),
                offset=int(about["offset"]),
                key=key,
                value=value,
                headers=[item for item in found if not item[0].startswith(PREFIX)],
                size=int(about["size"]) if "size" in about else None,
                sha256=about.get("sha256"),
                timestamp=int(about["timestamp"]) if "timestamp" in about else None,
                origin=about.get("origin"),
                replay_of=about.get("replay"),
                first_place=about.get("first_place"),
                left_out=int(about["left_out"]) if "left_out" in about else None,
                group=about.get("group"),
            )
        except KeyError as missing:
            raise ValueError(f"not a dead letter: header {PREFIX}{missing.args[0]} is missing") from None


def place_text(topic: str, partition: int, offset: int) -> str:
    """Returns where a record is.

    >>> place_text("traceweir.invocations", 1, 17)
    'traceweir.invocations-1@17'
    """
    return f"{topic}-{partition}@{offset}"


def last_header(headers: Iterable[tuple[str, bytes]], name: str) -> str | None:
    """Returns the text of a record's last header of this name; None if there is none.

    Traceweir appends its headers, so that the last header counts if a producer has sent the same name.

    >>> last_header([("traceweir.origin", b"forged"), ("traceweir.origin", b"traceweir.traces")], ORIGIN)
    'traceweir.traces'
    """
    found = [content for each, content in headers if each == name]
    return (found[-1] or b"").decode(errors="backslashreplace") if found else None


def first_place(headers: Headers) -> str | None:
    """Returns where a replayed record was when it was refused first; None if the record is no replay.

    A producer can send the header with any text, so that only a place counts, and only in a replay.

    >>> first_place([("traceweir.replay", b"2:17"), ("traceweir.first_place", b"traceweir.traces-2@9")])
    'traceweir.traces-2@9'
    >>> first_place([("traceweir.first_place", b"traceweir.traces-2@9")])
    """
    where = last_header(headers, FIRST_PLACE) if is_replay(headers) else None
    return where if where is not None and is_place(where) else None


def is_place(text: str) -> bool:
    """Returns whether a text is a place of Kafka, as `place_text` writes it.

    >>> is_place("traceweir.traces-2@9"), is_place("<b>-2@9")
    (True, False)
    """
    return _PLACE.fullmatch(text) is not None


def marked(headers: Iterable[tuple[str, bytes]]) -> str | None:
    """Returns the id of the dead letter that a record of the `dead-letters` topic marks as replayed; None for no mark.

    >>> marked([("traceweir.replayed", b"2:17")])
    '2:17'
    """
    return last_header(headers, REPLAYED)


def is_replay(headers: Iterable[tuple[str, bytes]]) -> bool:
    """Returns whether a record is a replayed dead letter."""
    return any(name == REPLAY for name, _ in headers)


def about_whole(value: bytes) -> dict[str, str]:
    """Returns what a dead letter tells of a value of which it has a part: its size in bytes and its SHA-256."""
    return {"size": str(len(value)), "sha256": hashlib.sha256(value).hexdigest()}
