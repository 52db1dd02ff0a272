"""Assembles the sessions of an input with the real stage, in memory that does not grow with the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter

import msgspec
import orjson

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.streams.base.stages.base import Output
from traceweir.streams.base.stages.counters import COUNTERS_ROW
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.pipeline.assemble.parse import InOtherForm, read_event, read_trace
from traceweir.streams.pipeline.assemble.refusals import place_of_letter, readable_session
from traceweir.streams.pipeline.decoding.envelopes import opened
from traceweir.streams.pipeline.topology import Topology
from traceweir.streams.tools.offline.block_file import BlockFile
from traceweir.streams.tools.offline.in_process_stages import TOPICS, StageRecord, dead_letters_of, new_stage
from traceweir.streams.tools.offline.problems import Problem, Problems
from traceweir.streams.tools.offline.record_buckets import KEPT_BYTES, InputRecord, RecordBuckets
from traceweir.streams.tools.offline.sorted_runs import SortedRuns

_BATCH = 500
"""Records that the stage takes at a time."""


class InputSession(msgspec.Struct, array_like=True, gc=False):
    """A session of the input, or a segment of one."""

    first_offset: int
    """Offset of the first record that names the session."""
    document: int
    """Number of the document of this record."""
    id: bytes
    """Id of the session."""
    value: bytes
    """The session as on the topic `sessions`."""
    last_trace: int
    """Number of the last document of a trace; 0 without traces."""
    traces: dict[str, int] | None
    """Number of the last document of each trace by its id; None for at most one trace."""

    def document_of(self, trace_id: str) -> int:
        """Returns the number of the last document that has the trace with this id."""
        return (self.traces or {}).get(trace_id, self.last_trace)


class InputSessions:
    """Reads an input and assembles its sessions, in the order of their first records.

    All records have the same timestamp, so a session contains all records with its id, at any position in the input;
    only the size limit divides a session. Records that take more than `kept_bytes` are divided by session in temporary
    files, and each part is assembled alone.

    Args:
        topology: Builds the stage.
        file: The file of what is not kept in memory.
        problems: Receives the unusable documents.
        timestamp: Timestamp of all records, in milliseconds since 1970.
        kept_bytes: Size of the records that are kept in memory.
    """

    def __init__(
        self, topology: Topology, file: BlockFile, problems: Problems, timestamp: int, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._topology = topology
        self._file = file
        self._problems = problems
        self._timestamp = timestamp
        self._kept_bytes = kept_bytes
        self._sessions = SortedRuns(InputSession, key=attrgetter("first_offset"))
        self.documents = 0
        """Number of documents."""
        self.sessions = 0
        """Number of sessions; each segment counts."""
        self.duplicates = 0
        """Number of records that had arrived before."""

    def read(self, documents: Iterable[DocumentRecords], progress: Callable[[int], object] = lambda read: None) -> None:
        """Reads the whole input. Call this method once.

        Args:
            documents: The documents of the input.
            progress: Called with the number of documents that were read so far.

        Raises:
            InputError: the rest of the input cannot be read.
            TemporaryFileError: a temporary file cannot be written or read.
        """
        buckets = RecordBuckets(self._file, self._kept_bytes)
        offset = 0
        for found in documents:
            self.documents += 1
            number = found.document.number
            if found.problem is not None:
                self._problems.add(Problem(number, str(found.problem)))
            for kind, named, value in found.records:
                session = _session_of(named, value, is_trace=kind == "trace")
                buckets.add(InputRecord(offset, number, kind == "trace", session, value))
                offset += 1
            progress(self.documents)
        for part in buckets.parts():
            self._assemble(part, self._file if buckets.divided else None)

    def __iter__(self) -> Iterator[InputSession]:
        """Yields the sessions in the order of their first records, and the segments of a session in their order.

        Raises:
            TemporaryFileError: a temporary file cannot be read.
        """
        return iter(self._sessions)

    def _assemble(self, part: Iterable[InputRecord], file: BlockFile | None) -> None:
        rows: dict[bytes, bytes] = {}
        stage = new_stage(self._topology, "assemble", rows.get)
        stage.tick(self._timestamp / 1000, dict.fromkeys(self._topology.spec("assemble").inputs, 0.0))
        origins = _Origins()

        def cut() -> None:
            found = stage.cut()
            for key, row in found.rows:
                if row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
            for letter in dead_letters_of(found.outputs):
                self._problems.add(Problem(origins.refused(letter), letter.detail, letter.reason))
            origins.documents.clear()
            sessions = origins.sessions(found.outputs)
            self.sessions += len(sessions)
            self._sessions.add(sessions, file)

        size = 0
        records = iter(part)
        while batch := list(islice(records, _BATCH)):
            for is_trace, run in groupby(batch, key=attrgetter("is_trace")):
                taken = [self._taken(record, origins) for record in run]
                stage.apply(TOPICS.traces if is_trace else TOPICS.invocations, taken)
            size += sum(len(record.value) for record in batch)
            # A part that cannot be divided: the closed segments of few sessions.
            if size > self._kept_bytes:
                cut()
                size = 0
        closing = self._topology.closing
        # Later than the end of every session.
        stage.tick((self._timestamp + closing.idle_gap_ms + closing.linger_ms) / 1000 + 1, {})
        cut()
        self.duplicates += orjson.loads(rows.get(COUNTERS_ROW) or b"{}").get("duplicate", 0)

    def _taken(self, record: InputRecord, origins: _Origins) -> StageRecord:
        origins.note(record)
        return StageRecord(record.offset, record.session, record.value, self._timestamp)


class _Origins:
    """The documents that the records of one part come from."""

    def __init__(self) -> None:
        self.documents: dict[int, int] = {}
        """The document of each record since the last cut, by the record's offset."""
        self._first: dict[bytes, InputRecord] = {}
        self._last_trace: dict[bytes, InputRecord] = {}
        self._traces: dict[bytes, dict[str, int]] = {}
        self._refused: dict[str, int] = {}

    def refused(self, letter: DeadLetter) -> int:
        """Notes a dead letter, and returns the number of its document."""
        document = self.documents[letter.offset]
        self._refused[place_of_letter(letter.refused_at)] = document
        return document

    def note(self, record: InputRecord) -> None:
        """Notes a record, in the order of the input."""
        self.documents[record.offset] = record.document
        session = record.session
        if session is None:
            return
        self._first.setdefault(session, record)
        if record.is_trace:
            if (earlier := self._last_trace.get(session)) is not None:
                if session not in self._traces:
                    self._traces[session] = {_trace_id(earlier): earlier.document}
                self._traces[session][_trace_id(record)] = record.document
            self._last_trace[session] = record

    def sessions(self, outputs: Iterable[Output]) -> list[InputSession]:
        """Returns the sessions among the outputs of the stage."""
        found = []
        for output in outputs:
            if output.topic == TOPICS.sessions and output.key is not None:
                first = self._first[output.key]
                last_trace = self._last_trace.get(output.key)
                number = 0 if last_trace is None else last_trace.document
                traces = self._traces.get(output.key)
                value = self._with_documents(output.value or b"")
                found.append(InputSession(first.offset, first.document, output.key, value, number, traces))
        return found

    def _with_documents(self, value: bytes) -> bytes:
        """Returns a session whose refused records name documents of the file, which has no dead letters."""
        refused = _only_refused(value).refused if self._refused else []
        if not refused:
            return value
        before = value.rpartition(b',"refused":[')[0]
        named = [{**each, "place": f"document {self._refused[each['place']]}"} for each in refused]
        return before + b',"refused":' + orjson.dumps(named) + b"}"


def _session_of(named: str | None, value: bytes, *, is_trace: bool) -> bytes | None:
    """Returns the session that a record joins, or that a record names which assemble will refuse; None without one.

    Args:
        named: The session that the format has found.
        value: The record, which can be in an envelope.
        is_trace: Whether the record is sent as a trace.
    """
    key = None if named is None else named.encode()
    if key is not None and opened(value) is None:
        return key
    try:
        return (read_trace if is_trace else read_event)(StageRecord(0, key, value), value)[0]
    except InOtherForm as found:
        return found.key[0]
    except RecordRejected:
        readable = readable_session(value)
        return key if readable is None else readable.encode()


class _OnlyRefused(msgspec.Struct):
    refused: list[dict[str, str]] = []


_only_refused = msgspec.json.Decoder(_OnlyRefused).decode


class _OnlyId(msgspec.Struct):
    id: object = None


_only_id = msgspec.json.Decoder(_OnlyId).decode


def _trace_id(record: InputRecord) -> str:
    try:
        return str(_only_id(record.value).id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Assemble refuses the trace.
        return ""
