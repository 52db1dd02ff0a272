"""Isolates scorers in a subprocess: a session that crashes it affects no other session.

When the process dies or hangs, another process replaces it at once. The sessions that were in flight are then tried one at a time, in a
quarantine process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mode import Service

from traceweir.schemas.reference import Reference
from traceweir.streams.base.service_tasks import intervals, service_task
from traceweir.streams.scoring.configs.selectors import NO_CONFIGS, Configs
from traceweir.streams.scoring.isolation.activity import ScoringActivity
from traceweir.streams.scoring.isolation.in_flight import ScoringInFlight
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.isolation.process import (
    LOOK_EVERY_S,
    NotStarted,
    ScoringProcess,
    ScoringProcessDiedError,
)
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.isolation.quarantine import DeathCounts, Quarantine
from traceweir.streams.scoring.isolation.silence import SilenceLimits
from traceweir.streams.scoring.judges.budget import Paid, Share, Spending
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import Scoring, ScoringResult

log = logging.getLogger(__name__)

TRIES = 3
"""Maximum number of starts until a process is ready: the cause that ended a process can also end the next process."""


class ScoringSupervisor(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Scores sessions in a subprocess, and starts another process when the subprocess dies.

    Args:
        setup: What the subprocess needs.
        death_counts: Counts the deaths of scoring processes by session.
        limits: Silence after which a process counts as stuck.
        start: Starts a process and returns it when it is ready; called in a thread for each later process.
        launched: A Python process that was launched before, for the first scoring process.

    Raises:
        EmbedderUnavailableError: the embedder cannot be loaded.
        JudgeUnavailableError: the packages that ask judges are not installed.
        ScoringProcessDiedError: the process does not start.
    """

    def __init__(
        self,
        setup: Setup,
        death_counts: DeathCounts,
        *,
        limits: SilenceLimits = SilenceLimits(),  # noqa: B008  # immutable
        start: Callable[[Setup], ScoringProcess] = ScoringProcess,
        launched: LaunchedProcess | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._setup = setup
        self._death_counts = death_counts
        self._limits = limits
        self._start = start
        self._process = start(setup) if launched is None else ScoringProcess(setup, launched)
        self.embedder_id = self._process.embedder_id
        self._ready = asyncio.Event()
        self._learned: dict[str, bytes] = {}
        self._spending = Spending()
        self._share = Share()
        self._configs: dict[str, bytes] = {}
        self._asked: dict[tuple[bytes, int, Configs], ScoringInFlight] = {}
        self._quarantine = Quarantine(self._death_counts, self._start_quarantine_process, self._fail, limits)
        self._starting: set[asyncio.Task[ScoringProcess]] = set()
        self.looks = 0
        """How often the present process was checked for silence: a watchdog notices if nobody checks any more."""
        self.restarts = 0
        """How often a process ended unexpectedly."""
        self.activity = ScoringActivity()
        """What the present process said last."""
        self.active: Callable[[ScoringActivity], object] = lambda activity: None
        """Called with what any of the processes says each second."""
        self.failed: Callable[[BaseException], object] = lambda error: None
        """Called when no process can be started any more."""

    @property
    def in_flight(self) -> int:
        """Number of sessions that are scored or wait for it, suspects included."""
        return len(self._asked)

    @property
    def load(self) -> tuple[bool, int]:
        """How much this supervisor has to do, to compare it with others; most of all while its process is replaced."""
        return self.started and not self._ready.is_set(), self.in_flight

    def close(self) -> None:
        """Ends the process of a supervisor that was never started."""
        self._process.close()

    @property
    def suspects(self) -> int:
        """Number of sessions that wait for the quarantine process."""
        return self._quarantine.waiting

    @property
    def pid(self) -> int:
        """The process id of the present process."""
        return self._process.pid

    def _fail(self, error: BaseException) -> None:
        # Read at the call, because the attribute is set after the constructor.
        self.failed(error)

    async def on_start(self) -> None:
        """Connects to the process."""
        await self._take(self._process)

    async def on_stop(self) -> None:
        """Ends every process, even a busy one."""
        self._quarantine.stop()
        if self._starting:
            await asyncio.wait(self._starting)
        for start in self._starting:
            if start.exception() is None:
                start.result().close()
        self._process.close()

    async def __call__(self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
        """Scores a session by the plan of the setup, under an attempt number; `known` are stored verdicts on this session.

        If no process can be started any more, `failed` is called and this call never returns.

        Raises:
            SessionRejected: the session cannot be scored.
        """
        return await self._score_once(raw, known, attempt, NO_CONFIGS)

    def under(self, configs: Configs, documents: Mapping[str, bytes]) -> Scoring:
        """Returns the scoring by configs of the topic `configs`, as `__call__` is that by the plan of the setup.

        Args:
            configs: The configs in effect, at least one.
            documents: The document of each of them, by config id.
        """
        for config_id, document in documents.items():
            if config_id not in self._configs:
                self._configs[config_id] = document
                for process in self._connected():
                    process.add_config(config_id, document)

        async def score(raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
            return await self._score_once(raw, known, attempt, configs)

        return score

    async def _score_once(
        self, raw: bytes, known: Sequence[JudgeVerdict], attempt: int, configs: Configs
    ) -> ScoringResult:
        # After a rebalance the same session can still be in flight for the former owner of its partition, in this process. Two
        # requests would count each death of the process twice.
        while (same := self._asked.get((raw, attempt, configs))) is not None:
            await asyncio.wait({same.ended})
            if not same.ended.cancelled() and same.agrees(known):
                return same.ended.result()
        ended: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
        self._asked[raw, attempt, configs] = ScoringInFlight(ended, known)
        try:
            scored = await self._scored(raw, known, attempt, configs)
        except SessionRejected as why:
            ended.set_exception(why)
            # Marks the exception as retrieved: possibly no other task waits for it.
            ended.exception()
            raise
        else:
            ended.set_result(scored)
        finally:
            del self._asked[raw, attempt, configs]
            if not ended.done():
                ended.cancel()
        return scored

    def scores(self, raw: bytes, attempt: int, configs: Configs = NO_CONFIGS) -> bool:
        """Returns whether this attempt at the session, by these configs, is in flight here."""
        return (raw, attempt, configs) in self._asked

    async def _scored(self, raw: bytes, known: Sequence[JudgeVerdict], attempt: int, configs: Configs) -> ScoringResult:
        while not self._death_counts.of(raw):
            await self._ready.wait()
            try:
                return await self._process.ask(raw, known, attempt, configs)
            except NotStarted:
                pass
            except ScoringProcessDiedError:
                self._death_counts.add(raw)
        return await self._quarantine(raw, known, attempt, configs)

    # References

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Stores a reference; None removes the reference with this id."""
        self._learned.pop(reference_id, None)
        if reference is not None:
            self._learned[reference_id] = reference.model_dump_json(by_alias=True, exclude_unset=True).encode()
        for process in self._connected():
            process.update_reference(reference_id, self._learned.get(reference_id))

    def learn(self, references: Mapping[str, bytes]) -> None:
        """Takes the references of another supervisor, before the start."""
        self._learned = dict(references)

    @property
    def references(self) -> Mapping[str, bytes]:
        """The present references by their ids, as JSON."""
        return self._learned

    # Cost of judges

    @property
    def spending(self) -> Sequence[Paid]:
        """Payments that add up to the spending that this supervisor knows."""
        return self._spending.entries()

    def record_spend(self, paid: Paid) -> None:
        """Adds spending of a partition that this worker took over; negative for a partition that it gave up."""
        self._spending.add(paid)
        for process in self._connected():
            process.record_spend(paid)

    def set_budget_share(self, share: Share) -> None:
        """Sets this worker's share of the budget of judges."""
        self._share = share
        for process in self._connected():
            process.set_budget_share(share)

    def _note(self, by: ScoringProcess, paid: Sequence[Paid]) -> None:
        """Passes spending to every other process, and to all later ones."""
        for each in paid:
            self._spending.add(each)
            for process in self._connected():
                if process is not by:
                    process.record_spend(each)

    def _note_activity(self, by: ScoringProcess, activity: ScoringActivity) -> None:
        if by is self._process:
            self.activity = activity
        self.active(activity)

    def _connected(self) -> list[ScoringProcess]:
        processes = (self._process if self._ready.is_set() else None, self._quarantine.quarantine_process)
        return [process for process in processes if process is not None and not process.ended]

    # Life of the processes

    async def _start_another(self) -> ScoringProcess:
        """Starts another process; if the worker stops meanwhile, `on_stop` ends the process.

        Raises:
            ScoringProcessDiedError: the process did not start, in `TRIES` attempts.
        """
        for more in reversed(range(TRIES)):
            start = asyncio.create_task(asyncio.to_thread(self._start, self._setup))
            self._starting.add(start)
            await asyncio.wait({start})
            if self.should_stop:
                raise asyncio.CancelledError
            self._starting.discard(start)
            error = start.exception()
            if not (more and isinstance(error, ScoringProcessDiedError)):
                break
            log.warning("%s; the start is repeated", error)
        return start.result()

    async def _connect(self, process: ScoringProcess) -> None:
        process.paid = partial(self._note, process)
        process.active = partial(self._note_activity, process)
        await process.connect()
        for config_id, document in self._configs.items():
            process.add_config(config_id, document)
        for reference_id, reference in self._learned.items():
            process.update_reference(reference_id, reference)
        process.set_budget_share(self._share)
        for paid in self._spending.entries():
            process.record_spend(paid)

    async def _start_quarantine_process(self) -> ScoringProcess:
        quarantine_process = await self._start_another()
        await self._connect(quarantine_process)
        return quarantine_process

    async def _take(self, process: ScoringProcess) -> None:
        self._process = process
        process.lost = self._lost
        await self._connect(process)
        # Otherwise `_lost` was called meanwhile, and another process is being started.
        if not process.ended:
            self._ready.set()

    def _lost(self, reason: str) -> None:
        self._ready.clear()
        self.restarts += 1
        log.warning("the scoring process ended unexpectedly (%s); another process replaces it", reason)
        self.add_future(self._replace())

    async def _replace(self) -> None:
        try:
            await self._take(await self._start_another())
        except Exception as error:  # noqa: BLE001  # after any error no session can be scored any more
            self.failed(error)

    @service_task("checks the scoring process")
    async def _watch(self) -> None:
        async for _ in intervals(self, LOOK_EVERY_S):
            self.looks += 1
            if self._ready.is_set():
                self._process.kill_if_stuck(self._limits)
