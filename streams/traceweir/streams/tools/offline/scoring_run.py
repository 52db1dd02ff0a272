"""Scores an input session by session, with the stages that a worker runs, in memory that does not grow with the input."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import orjson

from traceweir.schemas.score import Score
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.cores import usable_cores
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.pipeline.gate.presidio import load_entities
from traceweir.streams.pipeline.topology import Resources, Topology
from traceweir.streams.scoring.sessions.options import ScoringOptions, ScoringOutputs
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring, score_bytes
from traceweir.streams.tools.offline.block_file import BlockFile
from traceweir.streams.tools.offline.gating import Gating
from traceweir.streams.tools.offline.in_process_stages import one_partition
from traceweir.streams.tools.offline.input_sessions import InputSession, InputSessions
from traceweir.streams.tools.offline.problems import Problem, Problems
from traceweir.streams.tools.offline.record_buckets import KEPT_BYTES
from traceweir.streams.tools.offline.session_chunks import ChunkScoring, ChunkSession, SessionOutputs

# A run of one small file starts no process and asks no judge, and begins earlier without the imports.
if TYPE_CHECKING:
    from traceweir.streams.scoring.judges.service import Judging
    from traceweir.streams.tools.offline.input_processes import InputProcesses

MANY_DOCUMENTS = 10_000
"""Number of documents from which on several processes are worth their start."""
_CHUNK_SESSIONS, _CHUNK_BYTES = 32, 1 << 20
"""The sessions of a chunk, and the size in bytes from which on a chunk gets no further session."""
_SESSIONS_IN_FLIGHT, _BYTES_IN_FLIGHT = 512, 32 << 20
"""The sessions that are scored at the same time, and the size in bytes from which on no further chunk begins.

A session that waits for a judge delays the output of the sessions after it, but not their scoring.
"""


_Scoring = Callable[[Sequence[ChunkSession]], Coroutine[Any, Any, list[SessionOutputs]]]


def why_one_job(plan: Plan, embedder: Embedder | None) -> str | None:
    """Returns why this process has to score; None if several processes can."""
    if plan.judged:
        return "criteria ask a judge, and one process keeps its budget, its rate limits and its verdicts"
    if embedder is not None and not embedder.runs_inline:
        return "the embedding model uses all cores, and each process would load it"
    return None


_CHUNKS_A_PROCESS = 4


class ScoredSession(NamedTuple):
    """A scored session, or a segment of one."""

    id: str
    scores: list[bytes]
    """The scores as on the topic `results`: those of the criteria, then value and decision of each trace."""
    is_last: bool = True
    """Whether no further segment of the session follows."""


class ScoringRun:
    """The scoring of one input: `read` the input, then iterate over `sessions`. Close it at the end.

    Sessions are in the order of their first records; the novelty cache sees their traces in that order.

    Args:
        plan: The criteria and the requirements of the gate.
        embedder: Computes the vectors for novelty; None: novelty is 0.5.
        settings: The limits of a session and of its scoring; the settings of Kafka are ignored.
        clock: Returns the time of the records and of the scores.
        judging: Asks judges; None: judged criteria are NOT_EVALUATED `error`.
        encode_score: Serialises a score.
        jobs: Number of processes that score; with 1, this process scores. None: as many processes as cores for an input
            of `MANY_DOCUMENTS`, otherwise 1. It is 1 where `why_one_job` has a reason.
        kept_bytes: Size of the records that are kept in memory; a larger input is divided in temporary files.

    Raises:
        PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
    """

    def __init__(
        self,
        plan: Plan,
        embedder: Embedder | None,
        settings: Settings,
        *,
        clock: Callable[[], datetime],
        judging: Judging | None = None,
        encode_score: Callable[[Score], bytes] = Score.wire,
        jobs: int | None = 1,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._jobs = 1 if why_one_job(plan, embedder) is not None else jobs
        self._settings = settings
        self._plan = plan
        self._embedder = embedder
        self._clock = clock
        self._processes: InputProcesses | None = None
        entities = load_entities(plan.gate.presidio)
        resources = Resources(clock, scoring=None, encode_score=encode_score, entities=entities)
        self._topology = Topology.of(one_partition(settings), plan, resources)
        scoring = SessionScoring(
            plan,
            embedder,
            clock,
            ScoringOptions.of(settings),
            judging=judging,
            outputs=ScoringOutputs(encode_score),
        )
        self._in_process = ChunkScoring(settings, plan, score_bytes(scoring), clock)
        self._file = BlockFile()
        self.problems = Problems(self._file)
        """The problems so far, in the order of the documents."""
        timestamp = int(clock().timestamp() * 1000)
        self._sessions = InputSessions(self._topology, self._file, self.problems, timestamp, kept_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        if self._processes is not None:
            self._processes.close()

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that score; none while this process scores."""
        return [] if self._processes is None else self._processes.pids

    @property
    def documents(self) -> int:
        """Number of documents read."""
        return self._sessions.documents

    @property
    def total(self) -> int:
        """Number of sessions, known after `read`; each segment counts."""
        return self._sessions.sessions

    @property
    def duplicates(self) -> int:
        """Number of records that had arrived before, known after `read`."""
        return self._sessions.duplicates

    def read(self, documents: Iterable[DocumentRecords], progress: Callable[[int], object] = lambda read: None) -> None:
        """Reads the whole input, because a session can have records anywhere in it. Call this method once.

        Args:
            documents: The output of `read_input`.
            progress: Called with the number of documents that were read so far.

        Raises:
            InputError: the rest of the input cannot be read.
            TemporaryFileError: a temporary file cannot be written or read.
            ConfigError: the criteria cannot be sent to processes.
        """

        def read(count: int) -> None:
            if count == MANY_DOCUMENTS:
                self._start_processes()
            progress(count)

        if self._jobs is not None and self._jobs > 1:
            self._start_processes()
        self._sessions.read(documents, read)

    async def sessions(self) -> AsyncGenerator[ScoredSession, None]:
        """Yields the sessions in order, each as soon as it and all before it are scored.

        Raises:
            TemporaryFileError: a temporary file cannot be read.
            ScoringProcessDiedError: no process can be started.
        """
        if self._processes is None:
            # A judge takes seconds for a session, and nobody should wait for those of 32: each one is a chunk of its own.
            sessions = 1 if self._plan.judged else _CHUNK_SESSIONS
            async for scored in self._scored(self._in_process, _SESSIONS_IN_FLIGHT // sessions, sessions):
                yield scored
            return
        async with self._processes as processes:
            count = len(processes.supervisors)
            chunks = ChunkScoring(self._settings, self._plan, processes, self._clock, count)
            processes.on_failure(chunks.fail)
            async for scored in self._scored(chunks, count * _CHUNKS_A_PROCESS):
                yield scored

    async def _scored(
        self, scoring: _Scoring, most_in_flight: int, chunk_sessions: int = _CHUNK_SESSIONS
    ) -> AsyncGenerator[ScoredSession, None]:
        gating = Gating(self._topology)
        in_flight: deque[tuple[list[InputSession], asyncio.Task[list[SessionOutputs]]]] = deque()
        chunks = _chunks(self._sessions, chunk_sessions)
        size = 0
        try:
            while True:
                while len(in_flight) < most_in_flight and size < _BYTES_IN_FLIGHT:
                    chunk = next(chunks, None)
                    if chunk is None:
                        break
                    size += _size(chunk)
                    asked = scoring([ChunkSession(session.id, session.value) for session in chunk])
                    in_flight.append((chunk, asyncio.create_task(asked)))
                if not in_flight:
                    break
                chunk, task = in_flight[0]
                outputs = await task
                in_flight.popleft()
                size -= _size(chunk)
                for scored in self._decided(chunk, outputs, gating):
                    yield scored
        finally:
            for _, task in in_flight:
                task.cancel()
            await asyncio.gather(*(task for _, task in in_flight), return_exceptions=True)

    def _start_processes(self) -> None:
        """Starts the processes while the input is still read, because a start takes a second."""
        jobs = self._jobs or usable_cores()
        if self._processes is None and jobs > 1:
            from traceweir.streams.scoring.isolation.protocol import Setup
            from traceweir.streams.tools.offline.input_processes import InputProcesses

            setup = replace(Setup.of(self._settings, self._plan), embedder=self._embedder, clock=self._clock)
            try:
                self._processes = InputProcesses(setup, jobs)
            except ConfigError:
                if self._jobs is not None:
                    raise

    def _decided(
        self, chunk: Sequence[InputSession], outputs: Sequence[SessionOutputs], gating: Gating
    ) -> Iterator[ScoredSession]:
        candidates = [value for found in outputs for value in found.candidates]
        decisions = iter(gating.decide(candidates))
        # All segments of a session are in one chunk.
        following = [*(session.id for session in chunk[1:]), None]
        for session, found, next_id in zip(chunk, outputs, following, strict=True):
            if found.unscored is not None:
                self.problems.add(Problem(session.document, found.unscored.detail, found.unscored.reason))
            scores = found.scores
            for candidate, decision in zip(found.candidates, decisions, strict=False):
                scores += decision.scores
                if (letter := decision.refused) is not None:
                    document = session.document_of(_trace_id(candidate))
                    self.problems.add(Problem(document, letter.detail, letter.reason))
            yield ScoredSession(session.id.decode(), scores, session.id != next_id)


def _chunks(sessions: Iterable[InputSession], most: int) -> Iterator[list[InputSession]]:
    """Yields the sessions in chunks of this number; all segments of a session are in one chunk."""
    chunk: list[InputSession] = []
    size = 0
    for _, segments in groupby(sessions, key=attrgetter("first_offset")):
        for segment in segments:
            chunk.append(segment)
            size += len(segment.value)
        if len(chunk) >= most or size >= _CHUNK_BYTES:
            yield chunk
            chunk = []
            size = 0
    if chunk:
        yield chunk


def _size(chunk: Sequence[InputSession]) -> int:
    return sum(len(session.value) for session in chunk)


def _trace_id(candidate: bytes) -> str:
    found: str = orjson.loads(candidate)["trace"]["id"]
    return found
