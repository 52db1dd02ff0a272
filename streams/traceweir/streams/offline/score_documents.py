"""Scores documents without Kafka: runs the three stages in one process, on one partition that holds the whole input."""

from __future__ import annotations

import sys
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
from traceweir.streams.gate.presidio import load_entities
from traceweir.streams.judges.service import Judging
from traceweir.streams.scoring.session_scoring import SessionScoring, score_bytes
from traceweir.streams.scoring.user_ids import UserIds
from traceweir.streams.settings import Settings
from traceweir.streams.stages.base import Output, Stage
from traceweir.streams.stages.counters import COUNTERS_ROW
from traceweir.streams.stages.work_pool import WorkPool
from traceweir.streams.topics import StageName, Topics
from traceweir.streams.topology import Resources, ScoringResources, Topology

_PREFIX = ""
_TOPICS = Topics.of(_PREFIX)
_GATE_BATCH = 500
"""Candidates per batch of novelty scoring; a batch compares every pair."""


class Problem(NamedTuple):
    """A document that could not be used or scored, and the reason."""

    document: int
    """Number of the document in the input; for a session, the number of its first document."""
    detail: str
    """One sentence for a person."""
    reason: str | None = None
    """The reason of the dead letter that the worker would write; None if the document resulted in no record."""


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of an input, its problems, and counts."""

    scores: list[Score]
    """The scores by session in input order: scores of the criteria, then value and gate decision of each trace."""
    problems: list[Problem]
    """The problems in document order."""
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
    """Scores the sessions of an input as a worker would if all records arrived now.

    All records have the same timestamp, so a session contains all records with its id, at any position in the input; only
    the size limit splits a session. Sessions are ordered by their first record; the novelty cache sees their traces in
    that order.

    Args:
        documents: The output of `read_input`.
        plan: The criteria and the requirements of the gate.
        embedder: Computes the vectors for novelty; None: novelty is 0.5.
        settings: The limits of a session and of its scoring; the settings of Kafka are ignored.
        clock: Returns the time of the records and of the scores.
        progress: Called with the number of sessions scored so far, and with the number of all sessions.
        judging: Asks judges; None: judged criteria are NOT_EVALUATED `error`.

    Raises:
        InputError: the rest of the input cannot be read.
        PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
    """
    entities = load_entities(plan.gate.presidio)
    received = _Received()
    timestamp = int(clock().timestamp() * 1000)
    failures: list[BaseException] = []
    pool = WorkPool(settings.score_concurrency, failures.append)
    encoder = _ScoreEncoder()
    scoring = SessionScoring(
        plan,
        embedder,
        clock,
        timeout_s=settings.score_timeout_s,
        judging=judging,
        judge_timeout_s=settings.judge_timeout_s,
        user_ids=UserIds.of(settings),
        encode_score=encoder,
    )
    # No earlier state is restored and the clock does not advance, so there is no earlier spending and no rescoring.
    resources = ScoringResources(score_bytes(scoring), pool, record_spend=lambda paid: None, read_record=_nothing)
    topology = Topology.of(_one_partition(settings), plan, Resources(clock, resources, encoder, entities))
    sessions, duplicates = _assemble(documents, received, topology, timestamp)
    places = {_place_of(session): number for number, session in enumerate(sessions)}
    scored = await _score(sessions, list(places), topology, pool, progress)
    if failures:
        raise failures[0]
    # Sessions finish in arbitrary order.
    candidates = sorted(_values(scored, _TOPICS.candidates), key=lambda value: places[_place_of(value)])
    decided = _decide(candidates, topology)

    results = [*_values(scored, _TOPICS.results), *_values(decided, _TOPICS.results)]
    scores = [encoder.encoded[value] for value in results]
    trace_places: dict[tuple[str, int, str | None], int] = {
        _trace_of(value): number for number, value in enumerate(candidates)
    }
    scores.sort(
        key=lambda score: (
            places[score.session_id, score.segment],
            # The gate decides scope by scope; scores of criteria precede its scores and keep their order.
            trace_places[score.session_id, score.segment, score.trace_id] if score.metric in _GATES else -1,
        )
    )
    for letter in _letters(scored):
        received.refuse(received.first_of(sessions[letter.offset]), letter)
    for letter in _letters(decided):
        received.refuse(received.trace_of(candidates[letter.offset]), letter)
    problems = sorted(received.problems, key=lambda problem: problem.document)
    return Result(scores, problems, received.documents, len(sessions), duplicates)


class AssembledSessions(NamedTuple):
    """The sessions of an input, and its unusable documents."""

    sessions: list[bytes]
    """The sessions as on the topic `sessions`, in the order of their first records."""
    problems: list[Problem]
    """The problems in document order."""


def assemble_offline(
    documents: Iterable[DocumentRecords], plan: Plan, settings: Settings, *, clock: Callable[[], datetime]
) -> AssembledSessions:
    """Returns the sessions that a worker would assemble if all records arrived now; scores nothing.

    Args:
        documents: The output of `read_input`.
        plan: Any plan; the assembly of sessions does not depend on it.
        settings: The limits of a session; the settings of Kafka are ignored.
        clock: Returns the time of the records.

    Raises:
        InputError: the rest of the input cannot be read.
    """
    received = _Received()
    topology = Topology.of(_one_partition(settings), plan, Resources(clock, scoring=None))
    sessions, _ = _assemble(documents, received, topology, int(clock().timestamp() * 1000))
    return AssembledSessions(sessions, sorted(received.problems, key=lambda problem: problem.document))


def _one_partition(settings: Settings) -> Settings:
    return settings.model_copy(
        # The documents are in memory anyway, and a session must not be divided because there are many others.
        update={"partitions": 1, "topic_prefix": _PREFIX, "partition_max_open_sessions": sys.maxsize}
    )


_GATES = ("trace_value", "gate")


@dataclass(frozen=True, slots=True)
class _Record:
    """A record in the form that a stage expects."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes
    timestamp: int = 0
    headers: Headers = ()


class _ScoreEncoder:
    """Serialises scores and keeps them, so that no score has to be parsed again from the outputs of the stages."""

    def __init__(self) -> None:
        self.encoded: dict[bytes, Score] = {}

    def __call__(self, score: Score) -> bytes:
        value = score.wire()
        self.encoded[value] = score
        return value


class _Received:
    """The documents read so far: the first offset of each session, and the unusable documents."""

    def __init__(self) -> None:
        self.documents = 0
        self.problems: list[Problem] = []
        self._numbers: list[int] = []
        self._first_offsets: dict[str, int] = {}
        self._traces: dict[tuple[str, str], int] = {}

    def take(self, found: DocumentRecords, timestamp: int) -> list[_Record]:
        """Returns the records of a document; offsets count all records of the input."""
        self.documents += 1
        if found.problem is not None:
            self.problems.append(Problem(found.document.number, str(found.problem)))
        records = []
        for kind, session_id, value in found.records:
            offset, key = len(self._numbers), None
            self._numbers.append(found.document.number)
            if session_id is not None:
                self._first_offsets.setdefault(session_id, offset)
                key = session_id.encode()
                if kind == "trace":
                    self._traces[session_id, str(orjson.loads(value).get("id"))] = offset
            topic = _TOPICS.traces if kind == "trace" else _TOPICS.invocations
            records.append(_Record(topic, offset, key, value, timestamp))
        return records

    def refuse(self, offset: int, letter: DeadLetter) -> None:
        """Adds a dead letter that the worker would write for a record to the problems."""
        self.problems.append(Problem(self._numbers[offset], letter.detail, letter.reason))

    def first_of(self, session: bytes) -> int:
        """Returns the offset of the first record of a session."""
        return self._first_offsets[_place_of(session)[0]]

    def trace_of(self, candidate: bytes) -> int:
        """Returns the offset of the last record with the trace of a candidate."""
        session_id, _, trace_id = _trace_of(candidate)
        return self._traces[session_id, trace_id]


def _assemble(
    documents: Iterable[DocumentRecords], received: _Received, topology: Topology, timestamp: int
) -> tuple[list[bytes], int]:
    """Returns the sessions in the order of their first records, and the number of duplicate records."""
    closing, spec = topology.closing, topology.spec("assemble")
    stage = _stage(topology, "assemble")
    stage.tick(timestamp / 1000, dict.fromkeys(spec.inputs, 0.0))
    for document in documents:
        for record in received.take(document, timestamp):
            stage.apply(record.topic, [record])
    stage.tick(
        (timestamp + closing.idle_gap_ms + closing.linger_ms) / 1000 + 1, {}
    )  # later than the end of every session
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
        keys = [session_id.encode() for session_id, _ in places]  # verdicts are stored by session
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
    # A stage reads rows of earlier checkpoints, and each stage here has only one checkpoint, so every row is missing.
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
    """Returns session id and segment of a session or a candidate."""
    found = orjson.loads(value)
    return found["session_id"], found["segment"]


def _trace_of(candidate: bytes) -> tuple[str, int, str]:
    found = orjson.loads(candidate)
    return found["session_id"], found["segment"], found["trace"]["id"]
