"""DeadLetter: a record that could not be used, as it came, and why."""

from __future__ import annotations

import hashlib
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
    "trace_id_conflict",
    "unreadable_session",
    "unreadable_candidate",
    "scoring_failed",
    "poison",
]

PREFIX = "traceweir."
ORIGIN = PREFIX + "origin"
"""Header of a stray: the input topic that it was read from."""
REPLAY = PREFIX + "replay"
"""Header of a replayed record: the id of the dead letter that it is from."""
REPLAYED = PREFIX + "replayed"
"""Header of a mark on the `dead-letters` topic: the id of the dead letter that was replayed. A mark has no key and no value."""
KEPT_BYTES = 65_536
"""How much of the value a dead letter keeps; of a longer one the size and the SHA-256 are noted."""

Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be used. On the wire: the record's own key, value and headers, and the rest in `traceweir.*` headers."""

    reason: str
    detail: str
    """One sentence for a person, without control characters."""
    stage: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    size: int | None = None
    """Bytes of the original value, if it was cut."""
    sha256: str | None = None
    timestamp: int | None = None
    """Of the original record, milliseconds since 1970."""
    origin: str | None = None
    """Of a stray, the input topic that it was read from first."""
    replay_of: str | None = None
    """Of a record that was replayed, the id of the dead letter that it was before."""
    left_out: int | None = None
    """Bytes of key and headers that are not here, as they were too many."""

    def wire_value(self) -> bytes | None:
        """The value as it is sent: the original's first 64 kB."""
        return self.value if self.value is None else self.value[:KEPT_BYTES]

    def wire_headers(self) -> list[tuple[str, bytes]]:
        """The original headers, then what is to be known about the failure."""
        about = {
            "reason": self.reason,
            "detail": printable(self.detail),
            "stage": self.stage,
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
        }
        if self.value is not None and len(self.value) > KEPT_BYTES:
            about |= {"size": str(len(self.value)), "sha256": hashlib.sha256(self.value).hexdigest()}
        more = {
            "timestamp": self.timestamp,
            "origin": self.origin,
            "replay": self.replay_of,
            "left_out": self.left_out,
        }
        about |= {name: str(found) for name, found in more.items() if found is not None}
        own = [(name, content) for name, content in self.headers if not name.startswith(PREFIX)]
        return own + [(PREFIX + name, text.encode()) for name, text in about.items()]

    @classmethod
    def read(cls, key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes]]) -> DeadLetter:
        """A dead letter from a record of the `dead-letters` topic. Some records there are marks: see `marked`.

        Raises:
            ValueError: a `traceweir.*` header is missing; the record is a mark, or not one of ours.
        """
        found = list(headers)
        # A header may have no value, where somebody else wrote it.
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
                left_out=int(about["left_out"]) if "left_out" in about else None,
            )
        except KeyError as missing:
            raise ValueError(f"not a dead letter: header {PREFIX}{missing.args[0]} is missing") from None


def last_header(headers: Iterable[tuple[str, bytes]], name: str) -> str | None:
    """The text of a record's last header of this name: a producer may have sent one too, and ours is behind it.

    >>> last_header([("traceweir.origin", b"forged"), ("traceweir.origin", b"traceweir.traces")], ORIGIN)
    'traceweir.traces'
    """
    found = [content for each, content in headers if each == name]
    return (found[-1] or b"").decode(errors="backslashreplace") if found else None


def marked(headers: Iterable[tuple[str, bytes]]) -> str | None:
    """The id of the dead letter that a record of the `dead-letters` topic marks as replayed; None: it is no mark.

    >>> marked([("traceweir.replayed", b"2:17")])
    '2:17'
    """
    return last_header(headers, REPLAYED)


def is_replay(headers: Iterable[tuple[str, bytes]]) -> bool:
    """Whether a record was a dead letter before, and was sent again."""
    return any(name == REPLAY for name, _ in headers)
