"""The interface of an input format: the records that a format returns, and the context that it receives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from functools import partial
from typing import BinaryIO, Literal, NamedTuple

from traceweir.schemas.base import JsonObject
from traceweir.schemas.times import UNKNOWN_TIME
from traceweir.schemas.trace import Visibility
from traceweir.streams.intake.formats.documents import Document, InputError, read_document
from traceweir.streams.intake.formats.tables import ReadCell, Row, row_of
from traceweir.streams.intake.formats.unread_keys import UnreadKeys

DEFAULT_DOMAIN = "general"
DEFAULT_MAX_SESSION_BYTES = 800_000


class AgentRecord(NamedTuple):
    """A record as an agent would have sent it to Kafka."""

    kind: Literal["trace", "event"]
    session_id: str | None
    """The session that the record belongs to; None if the record names no session."""
    value: bytes
    """UTF-8 JSON: a ReasoningTrace or an invocation event."""


class DocumentRecords(NamedTuple):
    """The records of one document, or of one row of a table."""

    document: Document
    """The source of the records; the bytes of a row are empty."""
    records: list[AgentRecord]
    problem: InputError | None = None
    """The reason why the document has no records, or why a part of the document has none."""


class PartlyReadError(InputError):
    """A part of a document cannot be used; the other parts have records."""

    def __init__(self, message: str, records: list[AgentRecord]) -> None:
        super().__init__(message)
        self.records = records


@dataclass(frozen=True, slots=True)
class InputContext:
    """The context of the input that a format reads."""

    source: str
    """The path of the file, or another name of the input, for messages."""
    base_time: datetime = UNKNOWN_TIME
    """The recording time of a document without a time of its own; timezone-aware."""
    task_domain: str = DEFAULT_DOMAIN
    """Domain of a document without a domain of its own."""
    max_session_bytes: int = DEFAULT_MAX_SESSION_BYTES
    """The largest session that can be scored, in bytes of its records."""
    visibility: Visibility = "private"
    """Visibility of traces that are made from spans."""
    unread_keys: UnreadKeys = field(default_factory=UnreadKeys, compare=False)
    """Receives the keys of the input that its reader does not read."""

    def document_error(self, document: Document, what: str) -> InputError:
        """Returns an error that names the document, such as `chats.json: document 3: is not JSON`."""
        return InputError(f"{self.source}: document {document.number}: {what}")

    def row_error(self, row: Row, what: str) -> InputError:
        """Returns an error that names the row.

        Examples: `rows.csv: row 2, column 'response': is not UTF-8` and `rows.csv: row 2 has 3 cells`.
        """
        return InputError(f"{self.source}: row {row.number}{', ' if what.startswith('column') else ' '}{what}")


ReadStreams = Callable[[Sequence[BinaryIO], InputContext], Iterator[DocumentRecords]]
ReadDocuments = Callable[[Iterable[Document], InputContext], Iterator[DocumentRecords]]
ReadRows = Callable[[Iterable[Row], InputContext], Iterator[DocumentRecords]]


RecordsOfObject = Callable[[JsonObject, Document], list[AgentRecord]]
"""Returns the records of a document, which is passed both as a parsed object and as its bytes in the file.

Raises:
    InputError: the document cannot be used; a PartlyReadError, that a part of it cannot be used.
"""


class Sureness(IntEnum):
    """How sure a format is that a document is its own. The surest format reads the document."""

    NO = 0
    """The document is of another kind."""
    POSSIBLE = 1
    """The keys fit, but documents of other kinds have them too, as `messages` or `inputs`."""
    CERTAIN = 2
    """A key or a combination of keys that documents of no other kind have."""

    @classmethod
    def of(cls, answer: object) -> Sureness:
        """Returns the answer of a recognizer; one that is no Sureness means CERTAIN if it is true, and else NO."""
        if isinstance(answer, cls):
            return answer
        return cls.CERTAIN if answer else cls.NO


class Recognition(NamedTuple):
    """Recognizes the documents of a format by their keys, and reads them in files that mix several formats."""

    document_name: str
    """A document of this format in a sentence, with its article, such as `a chat transcript`."""
    recognizes: Callable[[JsonObject], bool | Sureness]
    """Returns how sure it is that the document is of this format; True means CERTAIN.

    Called for every document, so it must be cheap.
    """
    reader: Callable[[InputContext], RecordsOfObject]
    """Returns the function that reads the documents of one input; it can remember the earlier documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFormat:
    """An input format: how documents, or rows of a table, become records.

    A format reads documents, rows, or both. Where `read_documents` is None, each document is a row: a JSON object
    with the columns as its keys. A format with `read_streams` reads whole files, and neither documents nor rows.

    Raises:
        ValueError: the format reads nothing, or files and documents, or it has only one of `read_rows` and `columns`.
    """

    name: str
    """The value of `--format`: lower case, words joined by hyphens."""
    description: str
    """The kind of the documents, in a few words of Markdown, for `--help` and the documentation."""
    read_documents: ReadDocuments | None = None
    """Yields the records of each document in order; an unusable document yields its problem, and reading continues."""
    read_rows: ReadRows | None = None
    """The same for rows of CSV, Parquet and DataFrames; None: the format has no tables."""
    read_streams: ReadStreams | None = None
    """Yields the records of several files that are one input, in any encoding."""
    columns: Mapping[str, ReadCell] = field(default_factory=dict)
    """The columns that are read from a table, each with the parser of its CSV cells."""
    task_domain: str = "not used"
    """The use of `InputContext.task_domain`, for the documentation."""
    recognition: Recognition | None = None
    """None: documents are read only if the format is named."""

    def __post_init__(self) -> None:
        reads_documents = self.read_documents is not None or self.read_rows is not None
        if not reads_documents and self.read_streams is None:
            raise ValueError(
                f"input format {self.name!r}: reads nothing; set read_documents, read_rows or both, or read_streams"
            )
        if reads_documents and self.read_streams is not None:
            raise ValueError(
                f"input format {self.name!r}: reads whole files with read_streams; leave out read_documents and read_rows"
            )
        if bool(self.columns) != (self.read_rows is not None):
            raise ValueError(f"input format {self.name!r}: set read_rows and columns together, or neither of them")

    def read(self, documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
        """Yields the records of each document, in order."""
        if self.read_documents is not None:
            return self.read_documents(documents, context)
        assert self.read_rows is not None  # noqa: S101  # checked above
        return self.read_rows(map(row_of, documents), context)


def noted(found: DocumentRecords, notes: Sequence[str], context: InputContext) -> DocumentRecords:
    """Returns the records of a document with what had to be replaced in it as their problem, or as a part of it."""
    if not notes or (found.problem is not None and not found.records):
        return found
    replaced = "; ".join(notes)
    if found.problem is None:
        return found._replace(problem=context.document_error(found.document, replaced))
    return found._replace(problem=InputError(f"{found.problem}; {replaced}"))


def records_of_documents(
    documents: Iterable[Document], records: Callable[[Document], list[AgentRecord]]
) -> Iterator[DocumentRecords]:
    """Yields the result of `records` for each document.

    An InputError becomes the problem of its document, and reading continues with the next document.
    """
    for document in documents:
        yield records_or_problem(document, partial(records, document))


def records_of_objects(
    documents: Iterable[Document], records: RecordsOfObject, context: InputContext, rule: str
) -> Iterator[DocumentRecords]:
    """Yields the result of `records` for each document, parsed as an object.

    Args:
        documents: The documents.
        records: Returns the records of an object. Its errors become problems, and reading continues.
        context: The context of the input.
        rule: The rule that a document breaks if the document is not an object, for the message.
    """

    for document in documents:
        try:
            found = read_document(document.raw)
        except ValueError as error:
            yield DocumentRecords(document, [], context.document_error(document, f"is not JSON ({error})"))
            continue
        if not isinstance(found.value, dict):
            yield DocumentRecords(document, [], context.document_error(document, f"is not a JSON object; {rule}"))
            continue
        yield noted(records_or_problem(document, partial(records, found.value, document)), found.notes, context)


def records_or_problem(document: Document, records: Callable[[], list[AgentRecord]]) -> DocumentRecords:
    """Returns the result of `records` as the records of the document; an InputError becomes its problem."""
    try:
        return DocumentRecords(document, records())
    except PartlyReadError as problem:
        return DocumentRecords(document, problem.records, problem)
    except InputError as problem:
        return DocumentRecords(document, [], problem)


def records_of_rows(
    rows: Iterable[Row], records: Callable[[Row], list[AgentRecord]], context: InputContext
) -> Iterator[DocumentRecords]:
    """Yields the result of `records` for each row.

    An InputError, or the problem that the row already has, becomes the problem of its record; then reading continues
    with the next row.
    """
    for row in rows:
        document = Document(row.number, b"")
        try:
            if row.problem is not None:
                raise context.row_error(row, row.problem)
            note = context.row_error(row, f"was changed: {row.notes}") if row.notes else None
            yield DocumentRecords(document, records(row), note)
        except InputError as problem:
            yield DocumentRecords(document, [], problem)
