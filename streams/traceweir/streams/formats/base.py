"""The contract of an input format: what every format gives, and what it is told of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from traceweir.schemas.base import JsonObject
from traceweir.streams.formats.documents import Document, InputError
from traceweir.streams.formats.tables import ReadCell, Row, row_of

UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
DEFAULT_DOMAIN = "general"
DEFAULT_MAX_SESSION_BYTES = 800_000


class AgentRecord(NamedTuple):
    """A record as an agent would have sent it to Kafka."""

    kind: Literal["trace", "event"]
    session_id: str | None
    """The session that the record belongs to; None where the record does not say."""
    value: bytes
    """UTF-8 JSON: a ReasoningTrace or an invocation event."""


class DocumentRecords(NamedTuple):
    """The records of one document, or of one row of a table."""

    document: Document
    """Where the records are from; the bytes of a row are empty."""
    records: list[AgentRecord]
    problem: InputError | None = None
    """Why the document gives no records."""


@dataclass(frozen=True, slots=True)
class InputContext:
    """What a format is told of the input that it reads."""

    source: str
    """The file's path, or what else the input is called in messages."""
    base_time: datetime = UNKNOWN_TIME
    """When a document that does not say so was recorded. It has a zone."""
    task_domain: str = DEFAULT_DOMAIN
    """Domain of a document that names none."""
    max_session_bytes: int = DEFAULT_MAX_SESSION_BYTES
    """The largest session that scoring takes, in bytes of its records."""

    def document_error(self, document: Document, what: str) -> InputError:
        """An error that names the document, as `chats.json: document 3: is not JSON`."""
        return InputError(f"{self.source}: document {document.number}: {what}")

    def row_error(self, row: Row, what: str) -> InputError:
        """An error that names the row, as `rows.csv: row 2, column 'response': is not UTF-8` or `rows.csv: row 2 has 3 cells`."""
        return InputError(f"{self.source}: row {row.number}{', ' if what.startswith('column') else ' '}{what}")


ReadDocuments = Callable[[Iterable[Document], InputContext], Iterator[DocumentRecords]]
ReadRows = Callable[[Iterable[Row], InputContext], Iterator[DocumentRecords]]


class Recognition(NamedTuple):
    """How a single document is known, and read, where nobody names its format: in files that mix several kinds."""

    recognizes: Callable[[JsonObject], bool]
    """Whether the document is of this format, by its keys."""
    records: Callable[[JsonObject, Document, InputContext], list[AgentRecord]]
    """The records of the document, given as an object and as it stands in the file.

    Raises:
        InputError: the document cannot be used.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFormat:
    """An input format: how documents, or rows of a table, become records.

    A format reads documents, rows, or both. Where `read_documents` is None, each document is a row: a JSON object
    with the columns as its keys.

    Raises:
        ValueError: the format reads neither, or it does not say which columns it reads.
    """

    name: str
    """As `--format` takes it: lower case, words joined by hyphens."""
    description: str
    """What the documents are, in a few words of Markdown, for `--help` and the documentation."""
    read_documents: ReadDocuments | None = None
    """Gives the records of each document in order. A document that cannot be used gives its problem, and the next is read."""
    read_rows: ReadRows | None = None
    """The same for rows of CSV, Parquet and DataFrames; None: the format has no tables."""
    columns: Mapping[str, ReadCell] = field(default_factory=dict)
    """The columns that are read from a table, and what reads a cell of each in CSV."""
    task_domain: str = "not used"
    """What `InputContext.task_domain` is used for, for the documentation."""
    recognition: Recognition | None = None
    """None: documents are read only where the format is named."""

    def __post_init__(self) -> None:
        if self.read_documents is None and self.read_rows is None:
            raise ValueError(f"input format {self.name!r}: reads nothing; give read_documents, read_rows or both")
        if bool(self.columns) != (self.read_rows is not None):
            raise ValueError(f"input format {self.name!r}: give read_rows together with the columns that it reads")

    def read(self, documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
        """The records of each document, in order."""
        if self.read_documents is not None:
            return self.read_documents(documents, context)
        assert self.read_rows is not None  # noqa: S101  # checked above
        return self.read_rows(map(row_of, documents), context)


def records_of_documents(
    documents: Iterable[Document], records: Callable[[Document], list[AgentRecord]]
) -> Iterator[DocumentRecords]:
    """The records of each document by themselves; an InputError becomes the document's problem, and the next is read."""
    for document in documents:
        try:
            yield DocumentRecords(document, records(document))
        except InputError as problem:
            yield DocumentRecords(document, [], problem)


def records_of_rows(
    rows: Iterable[Row], records: Callable[[Row], list[AgentRecord]], context: InputContext
) -> Iterator[DocumentRecords]:
    """The records of each row by themselves; an InputError becomes the row's problem, and so does what was wrong with the row itself."""
    for row in rows:
        document = Document(row.number, b"")
        try:
            if row.problem is not None:
                raise context.row_error(row, row.problem)
            yield DocumentRecords(document, records(row))
        except InputError as problem:
            yield DocumentRecords(document, [], problem)
