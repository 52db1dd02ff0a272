"""Defines PendingRetry, a session that waits for a further attempt, and its row."""

from __future__ import annotations

import msgspec

_VERSION = 2


class PendingRetry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The latest revision of a segment that waits for a further attempt."""

    offset: int
    """Offset of the revision on the topic `sessions`."""
    revision: int
    attempt: int
    """The latest published attempt of this revision; 0 for its first scoring."""
    last_record_ms: int
    """The session's `last_record_at`, in milliseconds since 1970; never less than that of an earlier revision."""
    due_ms: int
    """Time of the next attempt, in milliseconds since 1970."""
    unanswered: int
    """Number of scores that wait for a judge."""
    left: int
    """Number of remaining retries."""
    settle_ms: int = 0
    """How long the session waits for a later revision, in milliseconds, until an attempt after the wait is published;
    `due_ms` is then a time of the watermark. 0: its judge was unavailable."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(PendingRetry).decode


def row_of(pending: PendingRetry) -> bytes:
    """Returns the row of a session that waits."""
    return bytes([_VERSION]) + _encode(pending)


def read_row(row: bytes) -> PendingRetry | None:
    """Returns the session of a row; None for a row of version 1 whose session is not retried again.

    Raises:
        ValueError: this version does not read the format of the row.
    """
    if row[0] == 1:
        return _read_version_1(row[1:])
    if row[0] != _VERSION:
        raise ValueError(
            f"a row of a session that waits for a judge has the format {row[0]}; "
            f"this version reads the formats 1 and {_VERSION}"
        )
    return _decode(row[1:])


def _read_version_1(row: bytes) -> PendingRetry | None:
    """Reads a row of the version that published a successful retry under the next revision number.

    A session with such a retry is not retried again, because its scores already have a higher revision than the
    session.
    """
    revision, _, retried_revisions, waits, last_record_ms = msgspec.msgpack.decode(row)
    if retried_revisions or waits is None:
        return None
    offset, due_ms, unanswered, left = waits
    return PendingRetry(offset, revision, 0, last_record_ms, due_ms, unanswered, left)
