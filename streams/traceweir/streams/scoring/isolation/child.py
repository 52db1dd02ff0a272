"""Runs in the scoring process: scores sessions for a worker, so that a slow, large or crashing scorer does not harm the worker.

The worker starts `python -m traceweir.streams.scoring.isolation.child SOCKET LIFELINE` with the numbers of a socket and
of the read end of a pipe. The process ends when the worker's end of the pipe closes.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import cast

from traceweir.schemas.reference import Reference
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.process_log import LogOptions, log_to_stderr
from traceweir.streams.base.process_setup import event_loop, tune_gc
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.scoring.embedders.embedding_batches import Batching
from traceweir.streams.scoring.embedders.loading import EmbedderUnavailableError
from traceweir.streams.scoring.isolation import protocol
from traceweir.streams.scoring.isolation.activity import ActivityNotes, ScoringActivity
from traceweir.streams.scoring.isolation.frame_writer import FrameWriter
from traceweir.streams.scoring.judges.budget import Paid
from traceweir.streams.scoring.judges.budget_group import BudgetGroup
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
from traceweir.streams.scoring.judges.models import scorers_of
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.config_scoring import ConfigScoring
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.options import ScoringOutputs
from traceweir.streams.scoring.sessions.references import References
from traceweir.streams.scoring.sessions.result import Scoring, ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import Measure, SessionScoring, score_bytes
from traceweir.streams.scoring.tracing.switch import spans_of_environment

# `__name__` is `__main__` in the process.
log = logging.getLogger("traceweir.streams.scoring.isolation.child")

EXIT_FAILED = 70
BEAT_S = 1.0
TRACE_DELAY_MS = 1_000
"""Milliseconds that spans wait for others. The worker kills this process at its end, which loses those that wait."""
BACKGROUND_NICE = 10
"""How much a background process lowers its priority: beside a busy process, it gets a tenth of a core."""
DETAIL = 4_000
"""Maximum number of characters in the detail of a rejected session."""


class _Child(asyncio.Protocol):
    def __init__(
        self,
        scoring: Scoring,
        references: References,
        budgets: BudgetGroup,
        configs: ConfigScoring,
        concurrency: int,
    ) -> None:
        self._scoring = scoring
        self._references = references
        self._budgets = budgets
        self._frames = protocol.Frames()
        self._configs = configs
        self._pool: WorkPool = WorkPool(concurrency, fail)
        self._writer: FrameWriter | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._writer = FrameWriter(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.of(data):
            if isinstance(frame, protocol.Ask):
                self._pool.add(self._answer, frame)
            elif isinstance(frame, protocol.UpdateReference):
                found = Reference.model_validate_json(frame.reference) if frame.reference else None
                self._references.put(frame.reference_id, found)
            elif isinstance(frame, protocol.RecordSpend):
                self._budgets.record_spend(frame.paid)
            elif isinstance(frame, protocol.SetBudgetShare):
                self._budgets.set_share(frame.share)
            elif isinstance(frame, protocol.AddConfig):
                self._configs.add(frame.config_id, frame.document)

    def connection_lost(self, error: Exception | None) -> None:
        os._exit(0)

    async def _answer(self, ask: protocol.Ask) -> None:
        scoring = score_bytes(self._configs.under(ask.configs)) if ask.configs else self._scoring
        try:
            answer: protocol.Answer | protocol.ScoringRefusal = protocol.Answer(
                ask.number, await scoring(ask.session, ask.known, ask.attempt)
            )
        except SessionRejected as why:
            answer = protocol.ScoringRefusal(ask.number, why.reason, printable(why.detail, DETAIL), why.judged)
        if self._writer is not None:
            self._writer.write(answer)


class _Parts:
    """Builds the scorings of a process: of the plan of its setup, and of the configs that come later."""

    def __init__(self, setup: protocol.Setup, embedder: Embedder | None, notes: ActivityNotes) -> None:
        self._setup = setup
        self._clock = setup.clock or utc_now
        self._notes = notes
        self.embedder = embedder
        self._batching = embedder and Batching(embedder, embedded=notes.embedded, reused=notes.reused)
        self.references = References()
        self.budgets = BudgetGroup()
        self._spans = None if setup.background else spans_of_environment(delay_ms=TRACE_DELAY_MS)
        self._judging: Judging | None = None

    def scoring_of_file(self, plan: Plan) -> SessionScoring:
        """Returns the scoring by the plan of the setup."""
        scoring, judging = self._built(plan, None)
        self._use(judging)
        return scoring

    def scoring_of_pushed(self, plan: Plan) -> Measure:
        """Returns the scoring by a plan of the topic `configs`.

        It is built in a thread: the first judge imports litellm, which takes seconds, and sessions of other configs go on.
        """
        building = asyncio.get_running_loop().run_in_executor(None, self._built, plan, self._setup.plan)
        building.add_done_callback(lambda done: self._use(done.result()[1]) if done.exception() is None else None)

        async def measure(session: Session, known: Sequence[JudgeVerdict], attempt: int) -> ScoringResult:
            scoring, _ = await asyncio.shield(building)
            return await scoring(session, known, attempt)

        return measure

    def activity(self) -> ScoringActivity:
        """Returns what the process has done, and the state of the judges of its latest plan."""
        return self._notes.take(self._judging)

    def _built(self, plan: Plan, in_place_of: Plan | None) -> tuple[SessionScoring, Judging | None]:
        judging = self._judge(plan) if plan.judged else None
        scoring = SessionScoring(
            plan,
            self._batching,
            self._clock,
            self._setup.options,
            judging=judging,
            references=self.references,
            in_place_of=in_place_of,
            outputs=ScoringOutputs(spans=self._spans),
        )
        return scoring, judging

    def _judge(self, plan: Plan) -> Judging:
        def note(paid: Paid) -> None:
            self.budgets.record_spend(paid, by=judging.budget)

        judging = Judging(
            plan.judge,
            self._setup.access,
            self._clock,
            note=note,
            attempted=self._notes.attempted,
            criteria=scorers_of(plan),
        )
        return judging

    def _use(self, judging: Judging | None) -> None:
        if judging is not None:
            self.budgets.add(judging.budget)
            self._judging = judging


def fail(error: BaseException) -> None:
    """Ends the process after an error that no session has caused."""
    log.error(
        "the scoring process stops after an unexpected error outside any session: %s: %s", type(error).__name__, error
    )
    os._exit(EXIT_FAILED)


def end_with(lifeline: int) -> None:
    """Makes the kernel end this process and its children when the worker's end of the pipe closes.

    A thread could not do this: a scorer can hold the interpreter lock, for example in a regular expression.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    # The kernel sends SIGIO, which ends a process.
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


async def _serve(
    connection: socket.socket, child: Callable[[], asyncio.Protocol], activity: Callable[[], ScoringActivity]
) -> None:
    transport, _ = await asyncio.get_running_loop().create_connection(child, sock=connection)
    while True:
        transport.write(protocol.packed(protocol.Heartbeat(activity())))
        await asyncio.sleep(BEAT_S)


@contextmanager
def loading(connection: socket.socket) -> Iterator[None]:
    """Reports `Loading` until the block ends, because a silent process counts as stuck."""
    over = threading.Event()

    def say() -> None:
        while not over.is_set():
            # The worker has ended, so this process ends too.
            with suppress(OSError):
                protocol.send_object(connection, protocol.Loading())
            over.wait(BEAT_S)

    telling = threading.Thread(target=say, daemon=True)
    telling.start()
    try:
        yield
    finally:
        over.set()
        # The caller sends the next object; two threads must not send at the same time.
        telling.join()


@contextmanager
def _ending_with_worker() -> Iterator[None]:
    """Ends this process without a traceback if the worker has ended: its end of the socket is closed."""
    try:
        yield
    except (EOFError, OSError):
        log.info("the worker has ended, so its scoring process ends too")
        sys.exit(0)


def main() -> None:
    """Serves the worker until the worker ends."""
    for received in (
        signal.SIGINT,
        signal.SIGTERM,
        # Terminals send them to whole process groups, but the worker decides when this process ends.
    ):
        # Child processes of scorers would inherit SIG_IGN.
        signal.signal(received, lambda number, frame: None)
    connection = socket.socket(fileno=int(sys.argv[1]))
    lifeline = int(sys.argv[2])
    end_with(lifeline)
    log_to_stderr(LogOptions())
    try:
        setup = cast("protocol.Setup", protocol.receive_object(connection))
    except (EOFError, OSError):
        # The worker ended before it was ready, and has said why.
        return
    log_to_stderr(setup.log)
    if setup.background:
        os.nice(BACKGROUND_NICE)
    notes = ActivityNotes()
    try:
        with loading(connection):
            parts = _Parts(setup, setup.load_embedder(), notes)
            scoring = parts.scoring_of_file(setup.plan)
    except (EmbedderUnavailableError, JudgeUnavailableError) as error:
        unavailable = protocol.Ready(unavailable=str(error), judge=isinstance(error, JudgeUnavailableError))
        with _ending_with_worker():
            protocol.send_object(connection, unavailable)
        return
    configs = ConfigScoring(scoring, parts.scoring_of_pushed)
    tune_gc()
    with _ending_with_worker():
        protocol.send_object(connection, protocol.Ready(parts.embedder.id if parts.embedder else None))
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        child = partial(_Child, score_bytes(scoring), parts.references, parts.budgets, configs, setup.concurrency)
        runner.run(_serve(connection, child, parts.activity))


if __name__ == "__main__":
    main()
