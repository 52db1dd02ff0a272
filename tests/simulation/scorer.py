"""A simulated scoring process: it scores with the real scorers, and can crash, hang and answer late."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.simulation.loop import process_of_context

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.scoring.configs.selectors import NO_CONFIGS, Configs
from traceweir.streams.scoring.embedders.embedding_batches import Batching
from traceweir.streams.scoring.isolation import protocol
from traceweir.streams.scoring.isolation.activity import ScoringActivity
from traceweir.streams.scoring.isolation.open_requests import OpenRequests
from traceweir.streams.scoring.isolation.process import NotStarted, ScoringProcessDiedError
from traceweir.streams.scoring.isolation.silence import ProcessUse, Silence, SilenceLimits
from traceweir.streams.scoring.judges.budget import Paid, Share
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.config_scoring import ConfigScoring
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring, score_bytes

LOOK_EVERY_S = 0.5


class ScorerFaults:
    """What happens to scoring processes, for all processes of a world."""

    def __init__(self, rnd: random.Random) -> None:
        self.rnd = rnd
        self.running: list[SimulatedScoringProcess] = []
        self.latency_s = 0.003
        """Mean time to score a session, in seconds."""
        self.slowness = 1.0
        """Factor on that time."""
        self.slow = 0.15
        """The share of steps that take up to 2 s."""
        self.twice = 0
        """How many of the next answers come twice."""
        self.answered_twice: Callable[[], object] = lambda: None
        """Called when an answer will come twice."""
        self.fails_to_start = 0
        """How many of the next starts fail."""
        self.given_up: list[str] = []
        """A sentence for each process that the worker has given up although no fault has ended it."""
        self.suspects: set[bytes] = set()
        """The sessions with which a process has died. A second death would make a dead letter of an innocent session."""

    @property
    def mortal(self) -> list[SimulatedScoringProcess]:
        """The running processes that a fault can choose."""
        return [each for each in self.running if not each.has_a_suspect_alone]

    def answers_twice(self) -> bool:
        """Returns whether the next answer comes twice."""
        if not self.twice:
            return False
        self.twice -= 1
        self.answered_twice()
        return True

    def delay_s(self) -> float:
        """Draws how long a step of the scoring of a session takes."""
        rnd = self.rnd
        usual_s = rnd.expovariate(1 / self.latency_s) * self.slowness
        return rnd.uniform(0.1, 2.0) if rnd.random() < self.slow else usual_s


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
        embedder = setup.load_embedder()
        self.embedder_id = embedder.id if embedder is not None else None
        self._setup = setup
        judging = Judging(setup.plan.judge, setup.access, utc_now) if setup.plan.judged else None
        self._budget = judging.budget if judging is not None else None
        self._embedder = embedder and Batching(embedder)
        of_file = self._scoring(setup.plan, judging)
        self._score = score_bytes(of_file)
        self._configs = ConfigScoring(of_file, self._scoring_of_pushed)
        self._slots = asyncio.Semaphore(setup.concurrency)
        self._requests = OpenRequests()
        self._sessions: dict[int, bytes] = {}
        """The session of each open request by number, in the order in which they were asked."""
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

    def _scoring(self, plan: Plan, judging: Judging | None, in_place_of: Plan | None = None) -> SessionScoring:
        setup = self._setup
        return SessionScoring(
            plan,
            self._embedder,
            utc_now,
            setup.options,
            judging=judging,
            in_place_of=in_place_of,
        )

    def _scoring_of_pushed(self, plan: Plan) -> SessionScoring:
        judging = Judging(plan.judge, self._setup.access, utc_now) if plan.judged else None
        return self._scoring(plan, judging, self._setup.plan)

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
        return bool(self._requests)

    @property
    def fresh(self) -> bool:
        """Whether the process has had no request yet."""
        return not self._requests.asked

    async def connect(self) -> None:
        """Connects."""
        self._loop = asyncio.get_running_loop()

    def ask(
        self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, configs: Configs = NO_CONFIGS
    ) -> asyncio.Future[ScoringResult]:
        """Requests the score of a session."""
        if self._closed:
            gone: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
            gone.set_exception(NotStarted())
            return gone
        if not self._requests:
            self._silence.end()
        number, answer = self._requests.begin()
        self._sessions[number] = raw
        task = asyncio.get_running_loop().create_task(self._answer(number, raw, known, attempt, configs))
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return answer

    async def _answer(
        self, number: int, raw: bytes, known: Sequence[JudgeVerdict], attempt: int, configs: Configs
    ) -> None:
        score = score_bytes(self._configs.under(configs)) if configs else self._score
        async with self._slots:
            await asyncio.sleep(self.faults.delay_s())
            try:
                answer: protocol.Answer | protocol.ScoringRefusal = protocol.Answer(
                    number, await score(raw, list(known), attempt)
                )
            except SessionRejected as why:
                answer = protocol.ScoringRefusal(number, why.reason, why.detail, why.judged)
        for _ in range(2 if self.faults.answers_twice() else 1):
            await asyncio.sleep(self.faults.delay_s())
            if self._hangs or self._closed:
                return
            self._silence.end()
            self._sessions.pop(number, None)
            try:
                judged = self._requests.take(answer)
            except Exception as error:  # noqa: BLE001  # asyncio closes a connection whose callback raises
                self.faults.given_up.append(f"the scoring process of {self.name} is given up: {error!r}")
                self.die("no exit code")
                return
            if judged is not None:
                self.paid(judged.paid)

    def update_reference(self, reference_id: str, reference: bytes | None) -> None:
        """Does nothing: the load has its references in its events."""

    def add_config(self, config_id: str, document: bytes) -> None:
        """Adds a config of the topic `configs`."""
        self._configs.add(config_id, document)

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

    @property
    def has_a_suspect_alone(self) -> bool:
        """Whether the only request of the process is a suspect, of which its death would prove that it kills."""
        return self._requests.asked == 1 and any(raw in self.faults.suspects for raw in self._sessions.values())

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
        sessions, self._sessions = [*self._sessions.values()], {}
        for place, (raw, answer) in enumerate(zip(sessions, self._requests.end(), strict=True)):
            if not answer.done():
                # A fault chooses no process that measures a suspect alone. One that was killed or hung before it was
                # asked has not begun the suspect, and its death would prove that the suspect kills.
                innocent = self._requests.asked == 1 and raw in self.faults.suspects
                begun = place < self._setup.concurrency and not innocent
                answer.set_exception(ScoringProcessDiedError("simulated") if begun else NotStarted())
                if begun:
                    self.faults.suspects.add(raw)
        self.lost(how)
