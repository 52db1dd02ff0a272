"""The input of `emit` and `score`: from a file's name to the records in it."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import PurePath
from typing import BinaryIO, Literal, NamedTuple

import orjson
from pydantic import JsonValue

from traceweir.schemas.evaluation_row import MAX_ROWS, TOO_MANY
from traceweir.streams.formats.databricks_inference_table import InferenceTableReader
from traceweir.streams.formats.databricks_rows import RowReader, looks_like_a_row
from traceweir.streams.formats.documents import Document, InputError, name_of, read_documents
from traceweir.streams.formats.openai_chat import DEFAULT_DOMAIN, Recorded, transcript_events
from traceweir.streams.formats.tables import Row, read_csv, read_parquet

Format = Literal["traceweir", "openai-chat", "databricks-agent-evaluation", "databricks-inference-table"]
"""What the documents are: traces and events as they go on the wire, with rows among them; chat transcripts; rows; rows of logs."""

TABLES = {".csv": read_csv, ".parquet": read_parquet}
"""What reads a table, by the end of its file's name."""

_ASKED = (b'"request"', b'"inputs"')
"""What a row cannot do without."""

MAX_RECORD = 800_000
"""How large the record of a row may be, unless the settings say otherwise."""

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


def read_input(stream: BinaryIO, *, format: Format, task_domain: str, max_bytes: int) -> Iterator[Records]:  # noqa: A002  # the option's name
    """What each document of a file gives, or each row of a table.

    Args:
        stream: The file.
        format: What the documents are.
        task_domain: Domain of a transcript that names none.
        max_bytes: How large the record of a row may be.

    Raises:
        InputError: the input cannot be read to its end.
    """
    source = name_of(stream)
    read_table = TABLES.get(PurePath(source).suffix.lower())
    if read_table is None:
        return read_records(
            read_documents(stream),
            format=format,
            source=source,
            base_time=base_time_of(stream),
            task_domain=task_domain,
            max_bytes=max_bytes,
        )
    if format == "openai-chat":
        raise InputError(f"{source}: is a table, and transcripts are JSON; name another --format, or none")
    rows = read_table(stream, reader_of(format).columns)
    return read_rows(rows, format=format, source=source, base_time=base_time_of(stream), max_bytes=max_bytes)


def reader_of(format: Format) -> type[RowReader]:  # noqa: A002  # the option's name
    """What reads rows of this format."""
    return InferenceTableReader if format == "databricks-inference-table" else RowReader


def read_rows(
    rows: Iterable[Row],
    *,
    format: Format,  # noqa: A002  # the option's name
    source: str,
    base_time: datetime,
    max_bytes: int = MAX_RECORD,
) -> Iterator[Records]:
    """What each row gives, in order; one that cannot be used gives its problem, and the next is read.

    Of an evaluation set the first 10,000 are read, and one problem says how many were left out; logs have no limit.
    """
    reading = _Rows(format, source, base_time, max_bytes)
    for row in rows:
        yield from reading.take(row)
    yield from reading.left_out()


def read_records(
    documents: Iterable[Document],
    *,
    format: Format,  # noqa: A002  # the option's name
    source: str,
    base_time: datetime = UNKNOWN_TIME,
    task_domain: str = DEFAULT_DOMAIN,
    max_bytes: int = MAX_RECORD,
) -> Iterator[Records]:
    """What each document gives, in order; one that cannot be used gives its problem, and the next is read.

    In the format `traceweir` every document is a record as it stands, even an unreadable one: judging it is the worker's work. But for an
    object with a `request` and no `type`, which is a row.
    """
    taken: dict[str, tuple[int, bytes]] = {}
    rows = _Rows(format, source, base_time, max_bytes)
    for document in documents:
        if format.startswith("databricks-"):
            yield from rows.take(_row(document))
            continue
        if format == "traceweir":
            row = _row(document) if any(name in document.raw for name in _ASKED) else None
            if row is not None and looks_like_a_row(row.columns):
                yield from rows.take(row)
            else:
                yield Records(document, [recorded(document.raw)])
            continue
        try:
            records = transcript_events(_object(document, source), document.number, source, base_time, task_domain)
            _refuse_shared_session(records, document, source, taken)
        except InputError as problem:
            yield Records(document, [], problem)
        else:
            yield Records(document, records)
    yield from rows.left_out()


class _Rows:
    """The rows of one input, and how many there were."""

    def __init__(self, format: Format, source: str, base_time: datetime, max_bytes: int) -> None:  # noqa: A002
        self._reader = reader_of(format)(source, base_time, max_bytes)
        self._limit = None if format == "databricks-inference-table" else MAX_ROWS
        self._count = 0
        self._first_left_out = 0

    def take(self, row: Row) -> Iterator[Records]:
        self._count += 1
        if self._limit is not None and self._count > self._limit:
            self._first_left_out = self._first_left_out or row.number
            return
        document = Document(row.number, b"")
        try:
            yield Records(document, self._reader.records(row))
        except InputError as problem:
            yield Records(document, [], problem)

    def left_out(self) -> Iterator[Records]:
        if self._first_left_out:
            row = Row(self._first_left_out, {})
            what = f"and all behind it are left out: {TOO_MANY.format(self._limit, self._count)} Divide the file."
            yield Records(Document(row.number, b""), [], self._reader.error(row, what))


def _row(document: Document) -> Row:
    try:
        found: JsonValue = orjson.loads(document.raw)
    except orjson.JSONDecodeError as error:
        return Row(document.number, {}, f"is not JSON ({error})")
    if not isinstance(found, dict):
        return Row(document.number, {}, "is no object; a row is one, with its columns in it")
    return Row(document.number, found)


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
