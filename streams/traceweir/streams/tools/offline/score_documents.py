"""Scores documents without Kafka, and returns all results: runs the three stages in one process, on one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from traceweir.schemas.score import Score
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.pipeline.topology import Resources, Topology
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.tools.offline.block_file import BlockFile
from traceweir.streams.tools.offline.in_process_stages import one_partition
from traceweir.streams.tools.offline.input_sessions import InputSessions
from traceweir.streams.tools.offline.problems import Problem, Problems
from traceweir.streams.tools.offline.scoring_run import ScoringRun


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
        TemporaryFileError: a temporary file cannot be written or read.
        PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
    """
    encoder = _ScoreEncoder()
    with ScoringRun(plan, embedder, settings, clock=clock, judging=judging, encode_score=encoder) as run:
        run.read(documents)
        scores: list[Score] = []
        done = 0
        async for session in run.sessions():
            scores += map(encoder.take, session.scores)
            done += 1
            progress(done, run.total)
        return Result(scores, list(run.problems), run.documents, run.total, run.duplicates)


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
        TemporaryFileError: a temporary file cannot be written or read.
    """
    topology = Topology.of(one_partition(settings), plan, Resources(clock, scoring=None))
    file = BlockFile()
    try:
        problems = Problems(file)
        sessions = InputSessions(topology, file, problems, int(clock().timestamp() * 1000))
        sessions.read(documents)
        return AssembledSessions([session.value for session in sessions], list(problems))
    finally:
        file.close()


class _ScoreEncoder:
    """Serialises scores and keeps them until they are taken, so that no score has to be parsed again."""

    def __init__(self) -> None:
        self._encoded: dict[bytes, Score] = {}

    def __call__(self, score: Score) -> bytes:
        value = score.wire()
        self._encoded[value] = score
        return value

    def take(self, value: bytes) -> Score:
        """Returns the score with this serialised form."""
        return self._encoded.pop(value)
