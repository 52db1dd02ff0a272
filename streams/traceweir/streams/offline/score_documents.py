"""Scores documents without Kafka: the three stages in one process, on one partition that has read everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import orjson

from traceweir.schemas.dead_letter import DeadLetter, Headers
from traceweir.schemas.score import Score
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.formats.base import DocumentRecords
from traceweir.streams.judges.service import Judging
from traceweir.streams.scoring.session_scoring import SessionScoring, score_bytes
from traceweir.streams.settings import Settings
from traceweir.streams.stages.base import Output, Stage
from traceweir.streams.stages.counters import COUNTERS_ROW
from traceweir.streams.stages.work_pool import WorkPool
from traceweir.streams.topics import StageName, Topics
from traceweir.streams.topology import Resources, ScoringResources, Topology

_PREFIX = ""
_TOPICS = Topics.of(_PREFIX)
_GATE_BATCH = 500
"""Candidates whose novelty is measured together; a batch compares each with each."""


class Problem(NamedTuple):
    """What could not be used or scored, and why."""

    document: int
    """Number of the document in the input; of a session, that of its first document."""
    detail: str
    """One sentence for a person."""
    reason: str | None = None
    """The reason of the dead letter that the worker would write; None where no record came of the document."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an input."""

    scores: list[Score]
    """By session in the order of the input: those of its criteria, then value and decision of each trace."""
    problems: list[Problem]
    """In the order of the documents."""
    documents: int
    sessions: int
    duplicates: int


async def score_offline(
    documents: Iterable[DocumentRecords],
    plan: Plan,
    embedder: Embedder | None,
    settings: Settings,
    *,
    clock: Callable[[], datetime],
    progress: Callable[[int, int], None],
    judging: Judging | None = None,
) -> Result:
    """Score the sessions of an input as a worker would, had all of it arrived at this moment.

    Every record has the same timestamp, so a session is everything that shares its id, wherever it stands in the input; only the size
    limit divides one. Sessions are ordered by their first record, and their traces meet the novelty cache in that order.

    Args:
        documents: What `read_input` gives.
        plan: What is measured, and what the gate asks for.
        embedder: Makes the vectors that novelty is measured by; None: novelty is 0.5.
        settings: The limits of a session and of its scoring. Nothing of Kafka is used.
        clock: The time of the records, and of the scores.
        progress: Called with the sessions scored so far, and the number of all.
        judging: Asks judges; None: what asks them is NOT_EVALUATED `error`.

    Raises:
        InputError: the input cannot be read on.
    """
    received = _Received()
    timestamp = int(clock().timestamp() * 1000)
    failures: list[BaseException] = []
    pool = WorkPool(settings.score_concurrency, failures.append)
    scoring = SessionScoring(
        plan,
        embedder,
        clock,
        timeout_s=settings.score_timeout_s,
        judging=judging,
        judge_timeout_s=settings.judge_timeout_s,
    )
    one_partition = settings.model_copy(update={"partitions": 1, "topic_prefix": _PREFIX})
    # Nothing is taken over from a table, and time stands still while sessions are scored: nothing to charge, or to score again.
    resources = ScoringResources(score_bytes(scoring), pool, record_spend=lambda paid: None, read_record=_nothing)
    topology = Topology.of(one_partition, plan, Resources(clock, resources))
    sessions, duplicates = _assemble(documents, received, topology, timestamp)
    places = {_place_of(session): number for number, session in enumerate(sessions)}
    scored = await _score(sessions, list(places), topology, pool, progress)
    if failures:
        raise failures[0]
    # Sessions finish in any order.
    candidates = sorted(_values(scored, _TOPICS.candidates), key=lambda value: places[_place_of(value)])
    decided = _decide(candidates, topology)

    results = [*_values(scored, _TOPICS.results), *_values(decided, _TOPICS.results)]
    scores = [Score.model_validate_json(value) for value in results]
    trace_places: dict[tuple[str, int, str | None], int] = {
        _trace_of(value): number for number, value in enumerate(candidates)
    }
    scores.sort(
        key=lambda score: (
            places[score.session_id, score.segment],
            # The gate decides scope by scope; criteria come before it and stay in their order.
            trace_places[score.session_id, score.segment, score.trace_id] if score.metric in _GATES else -1,
        )
    )
    for letter in _letters(scored):
        received.refuse(received.first_of(sessions[letter.offset]), letter)
    for letter in _letters(decided):
        received.refuse(received.trace_of(candidates[letter.offset]), letter)
    problems = sorted(received.problems, key=lambda problem: problem.document)
    return Result(scores, problems, received.documents, len(sessions), duplicates)


_GATES = ("trace_value", "gate")


@dataclass(frozen=True, slots=True)
class _Record:
    """A record as a stage takes it."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes
    timestamp: int = 0
    headers: Headers = ()


class _Received:
    """The documents that came in: which session began where, and what could not be used."""

    def __init__(self) -> None:
        self.documents = 0
        self.problems: list[Problem] = []
        self._numbers: list[int] = []
        self._began: dict[str, int] = {}
        self._traces: dict[tuple[str, str], int] = {}

    def take(self, found: DocumentRecords, timestamp: int) -> list[_Record]:
        """A document's records; their offsets count all records of the input."""
        self.documents += 1
        if found.problem is not None:
            self.problems.append(Problem(found.document.number, str(found.problem)))
        records = []
        for kind, session_id, value in found.records:
            offset, key = len(self._numbers), None
            self._numbers.append(found.document.number)
            if session_id is not None:
                self._began.setdefault(session_id, offset)
                key = session_id.encode()
                if kind == "trace":
                    self._traces[session_id, str(orjson.loads(value).get("id"))] = offset
            topic = _TOPICS.traces if kind == "trace" else _TOPICS.invocations
            records.append(_Record(topic, offset, key, value, timestamp))
        return records

    def refuse(self, offset: int, letter: DeadLetter) -> None:
        """Note what the worker would write to `dead-letters` because of a record."""
        self.problems.append(Problem(self._numbers[offset], letter.detail, letter.reason))

    def first_of(self, session: bytes) -> int:
        """Offset of a session's first record."""
        return self._began[_place_of(session)[0]]

    def trace_of(self, candidate: bytes) -> int:
        """Offset of the record that a candidate's trace came in last."""
        session_id, _, trace_id = _trace_of(candidate)
        return self._traces[session_id, trace_id]


def _assemble(
    documents: Iterable[DocumentRecords], received: _Received, topology: Topology, timestamp: int
) -> tuple[list[bytes], int]:
    """The sessions in the order of their first records, and how many records came twice."""
    closing, spec = topology.closing, topology.spec("assemble")
    stage = _stage(topology, "assemble")
    stage.tick(timestamp / 1000, spec.inputs)
    for document in documents:
        for record in received.take(document, timestamp):
            stage.apply(record.topic, [record])
    stage.tick((timestamp + closing.idle_gap_ms + closing.linger_ms) / 1000 + 1, ())  # beyond every session's end
    cut = stage.cut()
    for letter in _letters(cut.outputs):
        received.refuse(letter.offset, letter)
    counts = orjson.loads(dict(cut.rows).get(COUNTERS_ROW) or b"{}")
    return sorted(_values(cut.outputs, _TOPICS.sessions), key=received.first_of), counts.get("duplicate", 0)


async def _score(
    sessions: Sequence[bytes],
    places: Sequence[tuple[str, int]],
    topology: Topology,
    pool: WorkPool,
    progress: Callable[[int, int], None],
) -> list[Output]:
    finished = iter(range(1, len(sessions) + 1))
    stage = _stage(topology, "score", lambda: progress(next(finished), len(sessions)))
    if sessions:
        keys = [session_id.encode() for session_id, _ in places]  # what judges said is kept by session
        stage.apply(_TOPICS.sessions, _records(_TOPICS.sessions, sessions, keys))
    await pool.idle()
    return stage.cut().outputs


def _decide(candidates: Sequence[bytes], topology: Topology) -> list[Output]:
    gate = _stage(topology, "gate")
    records = _records(_TOPICS.candidates, candidates, [None] * len(candidates))
    for start in range(0, len(records), _GATE_BATCH):
        gate.apply(_TOPICS.candidates, records[start : start + _GATE_BATCH])
    return gate.cut().outputs


def _stage(topology: Topology, name: StageName, changed: Callable[[], None] = lambda: None) -> Stage:
    # Rows are written when a stage is cut, and here each stage is cut once: there is no row to read.
    return topology.spec(name).new(0, lambda key: None, changed)


async def _nothing(topic: str, partition: int, offset: int) -> None:
    return None


def _records(topic: str, values: Sequence[bytes], keys: Sequence[bytes | None]) -> list[_Record]:
    pairs = zip(keys, values, strict=True)
    return [_Record(topic, offset, key, value) for offset, (key, value) in enumerate(pairs)]


def _values(outputs: Sequence[Output], topic: str) -> list[bytes]:
    return [output.value or b"" for output in outputs if output.topic == topic]


def _letters(outputs: Sequence[Output]) -> list[DeadLetter]:
    found = [output for output in outputs if output.topic == _TOPICS.dead_letters]
    return [DeadLetter.read(output.key, output.value, output.headers) for output in found]


def _place_of(value: bytes) -> tuple[str, int]:
    """Session and segment of a session or a candidate."""
    found = orjson.loads(value)
    return found["session_id"], found["segment"]


def _trace_of(candidate: bytes) -> tuple[str, int, str]:
    found = orjson.loads(candidate)
    return found["session_id"], found["segment"], found["trace"]["id"]
