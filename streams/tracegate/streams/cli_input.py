"""The input of `emit` and `score`: from a file's name to the records in it."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import BinaryIO, Literal, NamedTuple

import orjson
from pydantic import JsonValue

from tracegate.streams.documents import Document, InputError
from tracegate.streams.transcripts import DEFAULT_DOMAIN, Recorded, transcript_events

Format = Literal["tracegate", "openai-chat"]
"""What the documents are: traces and events as they go on the wire, or chat transcripts."""

UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class Records(NamedTuple):
    """What one document gives."""

    document: Document
    records: list[Recorded]
    problem: InputError | None = None
    """Why it gives none."""


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """The file of this name, or standard input for `-`.

    Raises:
        InputError: the file cannot be opened.
    """
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115  # closed below; only opening may fail with our message
    except OSError as error:
        raise InputError(
            f"{path}: cannot be opened ({error.strerror}). Name a readable file, or - for standard input."
        ) from None
    with stream:
        yield stream


def base_time_of(stream: BinaryIO) -> datetime:
    """When an undated transcript in this input began: the file's modification time.

    Of a pipe, which has none, 1970. The present would be nearer to the truth, but sending an input twice would then send every trace twice,
    with two contents.
    """
    try:
        found = os.fstat(stream.fileno())
    except OSError:
        return UNKNOWN_TIME
    return datetime.fromtimestamp(found.st_mtime, UTC) if stat.S_ISREG(found.st_mode) else UNKNOWN_TIME


def read_records(
    documents: Iterable[Document],
    *,
    format: Format,  # noqa: A002  # the option's name
    source: str,
    base_time: datetime = UNKNOWN_TIME,
    task_domain: str = DEFAULT_DOMAIN,
) -> Iterator[Records]:
    """What each document gives, in order; one that cannot be used gives its problem, and the next is read.

    In the format `tracegate` every document is a record as it stands, even an unreadable one: judging it is the worker's work.
    """
    taken: dict[str, tuple[int, bytes]] = {}
    for document in documents:
        if format == "tracegate":
            yield Records(document, [recorded(document.raw)])
            continue
        try:
            records = transcript_events(_object(document, source), document.number, source, base_time, task_domain)
            _refuse_shared_session(records, document, source, taken)
        except InputError as problem:
            yield Records(document, [], problem)
        else:
            yield Records(document, records)


def recorded(raw: bytes) -> Recorded:
    """A document as a record: a trace if it has an `@type`, else an event.

    >>> recorded(b'{"type": "session.ended", "session_id": "s1"}')[:2]
    ('event', 's1')
    >>> recorded(b'{"@type": "ReasoningTrace", "id": "kp:trace:1"}')[:2]
    ('trace', 'kp:trace:1')
    >>> recorded(b'not JSON')[:2]
    ('event', None)
    """
    try:
        found: JsonValue = orjson.loads(raw)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        return Recorded("event", None, raw)
    if "@type" not in found:
        return Recorded("event", _text(found.get("session_id")), raw)
    metadata = found.get("metadata")
    named = _text(metadata.get("session_id")) if isinstance(metadata, dict) else None
    return Recorded("trace", named or _text(found.get("id")), raw)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _object(document: Document, source: str) -> dict[str, JsonValue]:
    try:
        found: JsonValue = orjson.loads(document.raw)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{source}: document {document.number}: is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise InputError(
            f"{source}: document {document.number}: is no object; a transcript is one, with its messages in it"
        )
    return found


def _refuse_shared_session(
    records: list[Recorded], document: Document, source: str, taken: dict[str, tuple[int, bytes]]
) -> None:
    """Two transcripts in one session would be read as one, and the later trace as a revision of the earlier."""
    session_id = records[0].session_id or ""
    digest = hashlib.sha256(b"\n".join(record.value for record in records)).digest()
    number, earlier = taken.setdefault(session_id, (document.number, digest))
    if earlier != digest:
        raise InputError(
            f"{source}: document {document.number}: its session id {session_id[:80]!r} is that of document {number}, which is another "
            "transcript; give each its own session_id, or leave the ids out"
        )
