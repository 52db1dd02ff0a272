"""Recognizes documents by their keys: reads files of several formats, and names documents of the wrong kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from typing import TypeVar

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.answer_streams import with_whole_answers
from traceweir.streams.intake.formats.base import (
    DocumentRecords,
    InputContext,
    InputFormat,
    RecordsOfObject,
    Sureness,
    noted,
    records_or_problem,
)
from traceweir.streams.intake.formats.databricks_rows import AGENT_EVALUATION, EvaluationRows
from traceweir.streams.intake.formats.documents import NO_JSON, Document, InputError, json_of, read_document
from traceweir.streams.intake.formats.openai_chat import OPENAI_CHAT
from traceweir.streams.intake.formats.other_document import OtherDocument
from traceweir.streams.intake.formats.other_documents import OTHER_DOCUMENTS
from traceweir.streams.intake.formats.registry import BUILT_IN, installed_formats
from traceweir.streams.intake.formats.tables import Row
from traceweir.streams.intake.formats.traceweir_json import TRACEWEIR, is_trace_or_event, read_record, wire_record_of

Kind = InputFormat | OtherDocument
Recognizes = Callable[[JsonObject], bool | Sureness]
AnyKind = TypeVar("AnyKind", InputFormat, Kind)


def built_in_kind(found: JsonValue) -> Kind | None:
    """Returns the built-in format or the other kind that is surest of a document; None for an unknown kind.

    >>> kind = built_in_kind({"messages": []})
    >>> isinstance(kind, InputFormat) and kind.name
    'openai-chat'
    """
    return surest(_BUILT_IN_KINDS, found)[1] if isinstance(found, dict) else None


def surest(kinds: Iterable[tuple[AnyKind, Recognizes]], found: JsonObject) -> tuple[Sureness, AnyKind | None]:
    """Returns the kind that is surest of a document, and how sure it is; of equally sure ones the first.

    Args:
        kinds: The kinds, each with its recogniser.
        found: The document.
    """
    best: tuple[Sureness, AnyKind | None] = (Sureness.NO, None)
    for kind, recognizes in kinds:
        sureness = Sureness.of(recognizes(found))
        if sureness > best[0]:
            best = (sureness, kind)
            if sureness is Sureness.CERTAIN:
                break
    return best


_BUILT_IN_KINDS: list[tuple[Kind, Recognizes]] = [
    *((each, each.recognition.recognizes) for each in BUILT_IN.values() if each.recognition),
    *((each, each.recognizes) for each in OTHER_DOCUMENTS),
]
"""The formats, then the other kinds: of equally sure ones a format reads the document."""
_TABLES = [
    (each, each.recognition.recognizes)
    for each in BUILT_IN.values()
    if each.read_rows and each.recognition and each is not TRACEWEIR
]
"""The formats of which the columns of a table can show one."""


class Recognizer:
    """Recognizes the documents of one input: the surest kind wins.

    Of equally sure ones, the built-in kinds come before the formats of installed packages. Their packages are imported
    with the first document of which no built-in kind is certain.
    """

    def kind_of(self, found: JsonValue) -> Kind | None:
        """Returns the format or the other kind of a document; None for an unknown kind."""
        if not isinstance(found, dict):
            return None
        sureness, kind = surest(_BUILT_IN_KINDS, found)
        return kind if sureness is Sureness.CERTAIN else self._surer_installed(found, sureness) or kind

    def format_of(self, found: JsonObject) -> InputFormat | None:
        """Returns the format of a document; a document with an unknown `type` is an event of Traceweir."""
        kind = self.kind_of(found)
        if kind is None and "type" in found:
            return TRACEWEIR
        return kind if isinstance(kind, InputFormat) else None

    def _surer_installed(self, found: JsonObject, sureness: Sureness) -> InputFormat | None:
        """Returns the surest format of a package that is surer than this; None if there is none."""
        best: InputFormat | None = None
        for each in self._installed:
            try:
                own = Sureness.of(each.recognition and each.recognition.recognizes(found))
            except Exception:  # noqa: BLE001, S112  # the code of a package can raise anything; the next one is asked
                continue
            if own > sureness:
                best = each
                sureness = own
        return best

    @cached_property
    def _installed(self) -> list[InputFormat]:
        return installed_formats()


def read_recognized(
    input_format: InputFormat, documents: Iterable[Document], context: InputContext
) -> Iterator[DocumentRecords]:
    """Yields the records of each document, in order.

    With the format `traceweir`, each document is read in the format that its keys show; a document of no known format
    becomes a record as it is. With any other format, a document that cannot be used has a message that names the
    document's own kind.
    """
    if input_format.name in {TRACEWEIR.name, OPENAI_CHAT.name}:
        documents = with_whole_answers(documents)
    return (
        _mixed(documents, context) if input_format.name == TRACEWEIR.name else _named(input_format, documents, context)
    )


def _mixed(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    recognizer = Recognizer()
    rows = EvaluationRows(context)
    readers: dict[str, RecordsOfObject] = {}
    for document in documents:
        try:
            read = read_document(document.raw)
        except ValueError:
            read = NO_JSON
        found = read.value
        # Nearly every document of a large file.
        if not isinstance(found, dict) or is_trace_or_event(found):
            yield DocumentRecords(document, [read_record(found, document, context)])
            continue
        kind = recognizer.kind_of(found)
        if kind is None:
            yield DocumentRecords(document, [wire_record_of(found, document.raw)])
        elif kind is AGENT_EVALUATION:
            yield from rows.convert(Row(document.number, found, notes="; ".join(read.notes)))
        elif isinstance(kind, OtherDocument):
            yield DocumentRecords(document, [], context.document_error(document, looks_like(kind, found)))
        elif kind.recognition is not None:
            if kind.name not in readers:
                readers[kind.name] = kind.recognition.reader(context)
            records = records_or_problem(document, partial(readers[kind.name], found, document))
            yield noted(records, read.notes, context)
    yield from rows.omitted_rows()


def _named(
    input_format: InputFormat, documents: Iterable[Document], context: InputContext
) -> Iterator[DocumentRecords]:
    recognizer = Recognizer()
    latest: Document | None = None

    def remembered() -> Iterator[Document]:
        nonlocal latest
        for document in documents:
            # A format yields the records of a document before it asks for the next document.
            latest = document
            yield document

    for found in input_format.read(remembered(), context):
        is_latest = latest is not None and latest.number == found.document.number
        if found.problem is None or found.records or latest is None or not is_latest:
            yield found
            continue
        try:
            content = json_of(latest.raw)
        except ValueError:
            content = None
        kind = recognizer.kind_of(content)
        if kind is None or kind is input_format:
            yield found
        else:
            yield found._replace(problem=InputError(f"{found.problem}; {looks_like(kind, content)}"))


def format_of_table(input_format: InputFormat, columns: Iterable[str], source: str) -> InputFormat:
    """Returns the format in which a table is read: with the format `traceweir`, the one that is surest of the columns.

    Args:
        input_format: The format that `--format` names, or `traceweir`.
        columns: The names of the table's columns.
        source: The path of the file, for the message.

    Raises:
        InputError: the columns show a format that would ignore other columns of evaluation rows, or a table of another
            tool, such as runs of LangSmith.
    """
    if input_format.name != TRACEWEIR.name:
        return input_format
    header: JsonObject = dict.fromkeys(columns)
    if other := _other_table(header):
        raise InputError(f"{source}: each row {looks_like(other, None)}")
    found = surest(_TABLES, header)[1] or TRACEWEIR
    ignored = [name for name in header if name in TRACEWEIR.columns and name not in found.columns]
    if ignored:
        raise InputError(
            f"{source}: each row looks like {_name_of(found)}, but has {', '.join(map(repr, ignored))} of evaluation rows: "
            f"add --format {found.name}, which ignores {'these columns' if len(ignored) > 1 else 'this column'}, "
            f"or --format {AGENT_EVALUATION.name}"
        )
    return found


def _other_table(columns: Iterable[str]) -> OtherDocument | None:
    """Returns the other tool whose table has these columns; None if they can be those of evaluation rows.

    Evaluation rows can have columns of another tool beside their own. Only `inputs` and `outputs` are columns of other
    tools too: they count as such where without them nothing shows the tool.
    """
    texts: JsonObject = dict.fromkeys(columns, "")
    sureness, kind = surest(_BUILT_IN_KINDS, texts)
    if not isinstance(kind, OtherDocument):
        return None
    own = texts.keys() & TRACEWEIR.columns.keys()
    if not own:
        return kind
    beside: JsonObject = dict.fromkeys(texts.keys() - own, "")
    is_known_by_own = sureness is Sureness.CERTAIN and surest(_BUILT_IN_KINDS, beside)[1] is not kind
    return kind if is_known_by_own and own <= {"inputs", "outputs"} else None


def looks_like(kind: Kind, found: JsonValue) -> str:
    """Returns what a document of the wrong kind looks like, and what to do, for the end of a message."""
    if isinstance(kind, OtherDocument):
        shown = kind.shown(found) if isinstance(found, dict) else ""
        return f"looks like {kind.document_name}{f' ({shown})' if shown else ''}: {kind.advice}"
    if kind is TRACEWEIR:
        return f"looks like {_name_of(kind)}: omit --format"
    return f"looks like {_name_of(kind)}: add --format {kind.name}, or omit --format"


def misplaced(content: bytes | str, expected: OtherDocument) -> str | None:
    """Returns what a file is that should be of one kind, and where it belongs; None for the right or an unknown kind.

    The first document decides, in JSON Lines and in an array too.
    """
    raw = content.encode(errors="replace") if isinstance(content, str) else content
    found: JsonValue = None
    for text in (raw, raw.lstrip().partition(b"\n")[0]):
        with suppress(ValueError):
            found = json_of(text)
            break
    kind = built_in_kind(found[0] if isinstance(found, list) and found else found)
    if kind is None or kind is expected:
        return None
    advice = kind.advice if isinstance(kind, OtherDocument) else _AS_INPUT
    return f"looks like {_name_of(kind)}, not {expected.document_name}: {advice}"


_AS_INPUT = "pass the file to `traceweir score` or `traceweir emit`, or to `traceweir eval` with --sessions"


def _name_of(kind: Kind) -> str:
    if isinstance(kind, OtherDocument):
        return kind.document_name
    return kind.recognition.document_name if kind.recognition else f"a document of the format {kind.name}"
