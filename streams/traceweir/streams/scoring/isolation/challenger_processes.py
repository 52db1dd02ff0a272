"""Runs a scoring process for each challenger, so that no challenger delays or breaks the scoring of the champion."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mode import Service

from traceweir.schemas.reference import Reference
from traceweir.scorers.evaluation.limited_plan import limited
from traceweir.scorers.evaluation.plan import Challenger
from traceweir.streams.scoring.isolation.process import ScoringProcess
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.isolation.quarantine import DeathCounts
from traceweir.streams.scoring.isolation.supervisor import ScoringSupervisor
from traceweir.streams.scoring.judges.budget import Paid, Share, Spending
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.errors import ChallengerUnavailable
from traceweir.streams.scoring.sessions.result import ScoringResult

log = logging.getLogger(__name__)

RETRY_S = 60.0
"""Seconds until a process that could not be started is started again."""


class ChallengerProcesses(Service):  # type: ignore[misc]  # Faust's services are untyped
    """The scoring processes of challengers. One starts with the first session of its challenger.

    Args:
        setup: What the champion's processes need; those of challengers need the same, without an embedder.
        folder: The folder for the counts of deaths by session, which are no deaths of the champion's processes.
        references: Returns the references that the champion's processes know.
        start: Starts a process and returns it when it is ready; called in a thread.
    """

    def __init__(
        self,
        setup: Setup,
        folder: Path,
        references: Callable[[], Mapping[str, bytes]],
        *,
        start: Callable[[Setup], ScoringProcess] = ScoringProcess,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._setup = replace(setup, embedder="none", background=True)
        self._folder = folder
        self._references = references
        self._start = start
        self._running: dict[str, _Running] = {}
        self._spending: defaultdict[str, Spending] = defaultdict(Spending)
        self._share = Share()

    @property
    def problems(self) -> list[str]:
        """A sentence for each challenger that has no process because it could not be started."""
        return [each.problem for each in self._running.values() if each.problem is not None]

    @property
    def pids(self) -> Sequence[int]:
        """The process ids of the present processes."""
        found = (each.supervisor for each in self._running.values())
        return [supervisor.pid for supervisor in found if supervisor is not None]

    def available(self, challenger: Challenger) -> bool:
        """Returns whether a session can be scored by a challenger now; False after a failure, until `RETRY_S` have passed."""
        running = self._running.get(challenger.id)
        return running is None or running.problem is None or running.challenger.budget_usd != challenger.budget_usd

    async def score(self, challenger: Challenger, raw: bytes, known: Sequence[JudgeVerdict] = ()) -> ScoringResult:
        """Scores a session by a challenger; `known` are the stored verdicts of judges on this session.

        Raises:
            SessionRejected: the session cannot be scored.
            ChallengerUnavailable: the process cannot be started now, or was stopped because the challenger is no longer in effect.
        """
        running = former = self._running.get(challenger.id)
        if running is None or running.challenger.budget_usd != challenger.budget_usd:
            running = self._running[challenger.id] = _Running(challenger)
            running.starting = asyncio.get_running_loop().create_task(self._begin(running, former))
        if running.starting is not None:
            await asyncio.shield(running.starting)
        supervisor = running.supervisor
        if supervisor is None:
            raise ChallengerUnavailable
        scoring = asyncio.ensure_future(supervisor(raw, known))
        gone = asyncio.ensure_future(running.gone.wait())
        try:
            await asyncio.wait({scoring, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not scoring.done():
                raise ChallengerUnavailable
            return scoring.result()
        finally:
            for each in (scoring, gone):
                each.cancel()

    async def keep(self, challengers: Collection[str]) -> None:
        """Ends the processes of all challengers but these, which are given by id, and lets failed ones start again."""
        now = asyncio.get_running_loop().time()
        for name, running in list(self._running.items()):
            if running.problem is None and running.supervisor is not None and running.supervisor.crashed:
                self._failed(running, running.supervisor.crash_reason)
            if name not in challengers or running.is_due(now):
                del self._running[name]
                await self._end(name, running)

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Stores a reference; None removes the reference with this id."""
        for supervisor in self._supervisors():
            supervisor.put(reference_id, reference)

    def record_spend(self, challenger: str, paid: Paid) -> None:
        """Adds spending of a partition that this worker took over; negative for one that it gave up."""
        running = self._running.get(challenger)
        if running is not None and running.supervisor is not None:
            running.supervisor.record_spend(paid)
        else:
            self._spending[challenger].add(paid)

    def set_budget_share(self, share: Share) -> None:
        """Sets this worker's share of the budget of each challenger."""
        self._share = share
        for supervisor in self._supervisors():
            supervisor.set_budget_share(share)

    async def on_stop(self) -> None:
        """Ends every process, even a busy one."""
        while self._running:
            await self._end(*self._running.popitem())

    def _supervisors(self) -> list[ScoringSupervisor]:
        return [each.supervisor for each in self._running.values() if each.supervisor is not None]

    async def _begin(self, running: _Running, former: _Running | None) -> None:
        challenger = running.challenger
        try:
            setup = replace(self._setup, plan=limited(challenger.plan, challenger.budget_usd))
            counts = DeathCounts(self._folder / f"challenger-attempts-{challenger.id[:16]}.json")
            if former is not None:
                await self._end(challenger.id, former)
            ready = [await asyncio.to_thread(self._start, setup)]
            # It has no place among the services of the worker, which a crash would end: `keep` looks for one.
            supervisor = ScoringSupervisor(
                setup, counts, start=lambda setup: ready.pop() if ready else self._start(setup)
            )
            if running.gone.is_set():
                supervisor.close()
                return
            supervisor.failed = lambda error: self._failed(running, error)
            supervisor.learn(self._references())
            supervisor.set_budget_share(self._share)
            for paid in self._spending.pop(challenger.id, Spending()).entries():
                supervisor.record_spend(paid)
            # Before its start, so that it gets what comes meanwhile.
            running.supervisor = supervisor
            await supervisor.maybe_start()
        except Exception as error:  # noqa: BLE001  # whatever it is, only the challenger waits
            self._failed(running, error)
        else:
            log.info("challenger %s: its scoring process runs (pid %d)", challenger.name, supervisor.pid)

    def _failed(self, running: _Running, error: BaseException | None) -> None:
        name = running.challenger.name
        running.problem = (
            f"challenger {name}: its scoring process does not run; the next try is in {RETRY_S:g} s, and the worker's log "
            "says why"
        )
        running.failed_at = asyncio.get_running_loop().time()
        running.gone.set()
        log.warning("challenger %s: its scoring process does not run: %s", name, error)

    async def _end(self, name: str, running: _Running) -> None:
        running.gone.set()
        if running.starting is not None and running.starting is not asyncio.current_task():
            await asyncio.wait({running.starting})
        if running.supervisor is not None:
            # The same challenger can be in effect again meanwhile.
            for paid in running.supervisor.spending:
                self.record_spend(name, paid)
            await running.supervisor.stop()


class _Running:
    """The process of a challenger."""

    def __init__(self, challenger: Challenger) -> None:
        self.challenger = challenger
        self.starting: asyncio.Task[None] | None = None
        self.supervisor: ScoringSupervisor | None = None
        self.gone = asyncio.Event()
        """Set when no answer can come any more."""
        self.problem: str | None = None
        self.failed_at = 0.0

    def is_due(self, now: float) -> bool:
        """Returns whether the process failed long enough ago to be started again."""
        return self.problem is not None and now - self.failed_at >= RETRY_S
