"""A simulated scoring process: it scores with the real scorers, and can crash, hang and answer late."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.simulation.loop import process_of_context

from traceweir.streams.clock import utc_now
from traceweir.streams.configs.selectors import NO_CONFIGS, Configs
from traceweir.streams.judges.budget import Paid, Share
from traceweir.streams.judges.service import Judging
from traceweir.streams.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring import protocol
from traceweir.streams.scoring.activity import ScoringActivity
from traceweir.streams.scoring.embedders import load_embedder
from traceweir.streams.scoring.process import NotStarted, ScoringProcessDiedError
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.scoring.session_scoring import SessionScoring, score_bytes
from traceweir.streams.scoring.silence import ProcessUse, Silence, SilenceLimits
from traceweir.streams.stages.errors import SessionRejected

LOOK_EVERY_S = 0.5


class ScorerFaults:
    """What happens to scoring processes, for all processes of a world."""

    def __init__(self, rnd: random.Random) -> None:
        self.rnd = rnd
        self.running: list[SimulatedScoringProcess] = []
        self.latency_s = 0.003
        """Mean time to score a session, in seconds."""
        self.slow = 0.15
        """The share of steps that take up to 2 s."""
        self.fails_to_start = 0
        """How many of the next starts fail."""

    def delay_s(self) -> float:
        """Draws how long a step of the scoring of a session takes."""
        rnd = self.rnd
        return rnd.uniform(0.1, 2.0) if rnd.random() < self.slow else rnd.expovariate(1 / self.latency_s)


class SimulatedScoringProcess:
    """Has the methods of `ScoringProcess`.

    Args:
        setup: What the process needs.
    """

    faults: ScorerFaults
    """Set for each world."""

    def __init__(self, setup: protocol.Setup) -> None:
        faults = self.faults
        if faults.fails_to_start:
            faults.fails_to_start -= 1
            raise ScoringProcessDiedError("the scoring process ended before it was ready (simulated)")
        embedder = load_embedder(setup.embedder)
        self.embedder_id = embedder.id if embedder is not None else None
        self._setup = setup
        judging = Judging(setup.plan.judge, setup.access, utc_now) if setup.plan.judged else None
        self._budget = judging.budget if judging is not None else None
        self._score = score_bytes(
            SessionScoring(
                setup.plan,
                embedder,
                utc_now,
                timeout_s=setup.timeout_s,
                judging=judging,
                judge_timeout_s=setup.judge_timeout_s,
                user_ids=setup.user_ids,
            )
        )
        self._slots = asyncio.Semaphore(setup.concurrency)
        self._waiting: dict[int, tuple[bytes, asyncio.Future[ScoringResult]]] = {}
        self._asked = 0
        self._closed = False
        self._hangs = False
        self._silence = Silence(lambda: ProcessUse(0.0, can_run=not self._hangs))
        self.lost: Callable[[str], object] = lambda how: None
        self.paid: Callable[[Any], object] = lambda paid: None
        self.active: Callable[[ScoringActivity], object] = lambda activity: None
        self.process = process_of_context.get()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: set[asyncio.Task[None]] = set()
        faults.running.append(self)

    # What the supervisor asks

    @property
    def pid(self) -> int:
        """An id."""
        return id(self)

    @property
    def ended(self) -> bool:
        """Whether the process takes no requests any more."""
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._waiting)

    @property
    def fresh(self) -> bool:
        """Whether the process has had no request yet."""
        return not self._asked

    async def connect(self) -> None:
        """Connects."""
        self._loop = asyncio.get_running_loop()

    def ask(
        self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, configs: Configs = NO_CONFIGS
    ) -> asyncio.Future[ScoringResult]:
        """Requests the score of a session; no config is pushed in the simulated world."""
        answer: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
        if self._closed:
            answer.set_exception(NotStarted())
            return answer
        if not self._waiting:
            self._silence.end()
        self._asked += 1
        self._waiting[self._asked] = raw, answer
        task = asyncio.get_running_loop().create_task(self._answer(self._asked, raw, known, attempt))
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return answer

    async def _answer(self, number: int, raw: bytes, known: Sequence[JudgeVerdict], attempt: int) -> None:
        result: ScoringResult | SessionRejected
        async with self._slots:
            await asyncio.sleep(self.faults.delay_s())
            try:
                result = await self._score(raw, list(known), attempt)
            except SessionRejected as why:
                result = why
        await asyncio.sleep(self.faults.delay_s())
        if self._hangs or self._closed or number not in self._waiting:
            return
        self._silence.end()
        self.paid(result.judged.paid)
        _, answer = self._waiting.pop(number)
        if answer.done():
            return
        if isinstance(result, SessionRejected):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    def update_reference(self, reference_id: str, reference: bytes | None) -> None:
        """Does nothing: the load has its references in its events."""

    def add_config(self, config_id: str, document: bytes) -> None:
        """Does nothing: no config is pushed in the simulated world."""

    def record_spend(self, paid: Paid) -> None:
        """Adds spending that counts against the budget of judges."""
        if self._budget is not None:
            self._budget.record_spend(paid)

    def set_budget_share(self, share: Share) -> None:
        """Sets the share of the budget of judges."""
        if self._budget is not None:
            self._budget.set_share(share)

    def kill_if_stuck(self, limits: SilenceLimits) -> None:
        """Ends the process if it is silent for too long."""
        if self.busy and self._silence.check(LOOK_EVERY_S, limits) is not None:
            self.die("signal 9")

    def close(self) -> None:
        """Ends the process; open requests are never answered."""
        self._closed = True
        for task in self._work:
            task.cancel()
        if self in self.faults.running:
            self.faults.running.remove(self)

    # Faults

    @property
    def name(self) -> str:
        """The name of the worker."""
        return self.process.name if self.process is not None else ""

    def kill_later(self) -> None:
        """Ends the process, within the context of its worker."""
        if self._loop is not None and self.process is not None:
            self._loop.call_soon(self.die, "signal 9", context=self.process.context)

    def hang(self) -> None:
        """Makes the process send nothing any more, as after SIGSTOP."""
        self._hangs = True

    def die(self, how: str) -> None:
        """Ends the process: sessions in flight fail."""
        if self._closed:
            return
        self.close()
        waiting, self._waiting = self._waiting, {}
        for place, (_, answer) in enumerate(waiting.values()):
            if not answer.done():
                begun = place < self._setup.concurrency
                answer.set_exception(ScoringProcessDiedError("simulated") if begun else NotStarted())
        self.lost(how)
