"""Divides the sessions of a worker among its scoring processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from traceweir.schemas.reference import Reference
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.cores import usable_cores
from traceweir.streams.scoring.configs.selectors import NO_CONFIGS, Configs
from traceweir.streams.scoring.embedders.loading import may_be_model
from traceweir.streams.scoring.isolation.activity import ScoringActivity
from traceweir.streams.scoring.isolation.challenger_processes import ChallengerProcesses
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.isolation.quarantine import DeathCounts
from traceweir.streams.scoring.isolation.supervisor import ScoringSupervisor
from traceweir.streams.scoring.judges.budget import Paid, Share
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import Scoring, ScoringResult

log = logging.getLogger(__name__)

MOST_BY_DEFAULT = 4
"""Maximum of the default number of processes: beyond it, the worker's own process limits the rate."""


def number_of_processes(wanted: int | None, setup: Setup, cores: int | None = None) -> int:
    """Returns how many scoring processes a worker starts.

    A plan that asks judges gets one process: limits, breakers and cached verdicts of judges hold for a process, and a
    question is a wait and not work. An embedding model gets one process too: it uses all cores already.

    Args:
        wanted: The setting; None: one process for every two cores, at most `MOST_BY_DEFAULT`.
        setup: What the processes need.
        cores: Number of cores that this process can use; by default it is counted.
    """
    why_one = why_one_process(setup.plan, setup.embedder if isinstance(setup.embedder, str) else "")
    if not why_one:
        return max(1, min(MOST_BY_DEFAULT, (cores or usable_cores()) // 2)) if wanted is None else wanted
    if wanted is not None and wanted > 1:
        log.warning("TRACEWEIR_SCORING_PROCESSES is %d, but one process scores: %s", wanted, why_one)
    return 1


def why_one_process(plan: Plan, embedder: str) -> str:
    """Returns why one process scores, whatever is wanted; empty if several can.

    Args:
        plan: The criteria.
        embedder: The name of the embedder.
    """
    if plan.judged:
        return "criteria ask a judge, whose limits hold for one process"
    return "an embedding model uses all cores already" if may_be_model(embedder) else ""


class ScoringProcesses:
    """Passes each session to the process with the fewest sessions in flight. Each process has a supervisor of its own.

    Args:
        setup: What each process needs. The first has the whole `concurrency`, because it scores all sessions when a pushed
            config asks judges; each of the others has its part.
        death_counts: File that counts the deaths of processes by session; all processes share it. None: it is not kept.
        count: Number of processes, 1 or more.
        launched: Python processes that were launched before, for the first scoring processes; the others are then
            launched here, so that all load at the same time.

    Raises:
        EmbedderUnavailableError: the embedder cannot be loaded.
        JudgeUnavailableError: the packages that ask judges are not installed.
        ScoringProcessDiedError: a process does not start.
    """

    def __init__(
        self,
        setup: Setup,
        death_counts: Path | None,
        count: int = 1,
        *,
        launched: Sequence[LaunchedProcess] = (),
    ) -> None:
        self.challengers: ChallengerProcesses | None = None
        """The processes of challengers, which get the same references and the same share of their budgets."""
        part = replace(setup, concurrency=-(-setup.concurrency // count))
        counts = DeathCounts(death_counts)
        processes: list[LaunchedProcess | None] = [None] * count
        if launched:
            processes = [*launched, *(LaunchedProcess() for _ in range(count - len(launched)))]
        self.supervisors: list[ScoringSupervisor] = []
        try:
            for place, process in enumerate(processes):
                self.supervisors.append(ScoringSupervisor(part if place else setup, counts, launched=process))
        except BaseException:
            for started in self.supervisors:
                started.close()
            for process in processes:
                if process is not None:
                    process.close()
            raise

    async def __call__(self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
        """Scores a session under an attempt number; `known` are the stored verdicts of judges on this session.

        Raises:
            SessionRejected: the session cannot be scored.
        """
        return await self.supervisors[self._place(raw, attempt, NO_CONFIGS)](raw, known, attempt)

    def under(self, configs: Configs, documents: Mapping[str, bytes], *, judged: bool) -> Scoring:
        """Returns the scoring by configs of the topic `configs`, as `__call__` is that by the plan of the setup.

        Args:
            configs: The configs in effect, at least one.
            documents: The document of each of them, by config id.
            judged: Whether a criterion of one of them asks a judge: then the first process scores.
        """
        scorings = [each.under(configs, documents) for each in self.supervisors]

        async def score(raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
            place = 0 if judged else self._place(raw, attempt, configs)
            return await scorings[place](raw, known, attempt)

        return score

    def _place(self, raw: bytes, attempt: int, configs: Configs) -> int:
        """Returns the number of the process that scores a session: the one that has it, or has the least to do."""
        if len(self.supervisors) == 1:
            return 0
        for place, each in enumerate(self.supervisors):
            if each.scores(raw, attempt, configs):
                return place
        return min(range(len(self.supervisors)), key=lambda place: self.supervisors[place].load)

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Stores a reference; None removes the reference with this id."""
        for each in self.supervisors:
            each.put(reference_id, reference)
        if self.challengers is not None:
            self.challengers.put(reference_id, reference)

    def record_spend(self, paid: Paid) -> None:
        """Adds spending on judges of a partition that this worker took over; negative for one that it gave up."""
        for each in self.supervisors:
            each.record_spend(paid)

    def set_budget_share(self, share: Share) -> None:
        """Sets this worker's share of the budget of judges."""
        for each in self.supervisors:
            each.set_budget_share(share)
        if self.challengers is not None:
            self.challengers.set_budget_share(share)

    def on_failure(self, failed: Callable[[BaseException], object]) -> None:
        """Sets what is called when a process cannot be started any more."""
        for each in self.supervisors:
            each.failed = failed

    def on_activity(self, active: Callable[[ScoringActivity], object]) -> None:
        """Sets what is called with what any of the processes says each second."""
        for each in self.supervisors:
            each.active = active

    def references(self) -> Mapping[str, bytes]:
        """Returns the present references by their ids, as JSON."""
        return self.supervisors[0].references

    @property
    def embedder_id(self) -> str | None:
        """Id of the embedder; None: there is none."""
        return self.supervisors[0].embedder_id

    @property
    def started(self) -> bool:
        """Whether all processes are connected."""
        return all(each.started for each in self.supervisors)

    @property
    def looks(self) -> int:
        """How often each process was checked for silence; it stands still if one of them is no longer checked."""
        return min(each.looks for each in self.supervisors)

    @property
    def restarts(self) -> int:
        """How often a process ended unexpectedly."""
        return sum(each.restarts for each in self.supervisors)

    @property
    def in_flight(self) -> int:
        """Number of sessions that are scored or wait for it, suspects included."""
        return sum(each.in_flight for each in self.supervisors)

    @property
    def suspects(self) -> int:
        """Number of sessions that wait for a quarantine process."""
        return sum(each.suspects for each in self.supervisors)

    @property
    def activity(self) -> ScoringActivity:
        """What the first process said last; only one process asks judges."""
        return self.supervisors[0].activity

    @property
    def pids(self) -> Sequence[int]:
        """The process ids of the present processes, with those of challengers."""
        beside = () if self.challengers is None else self.challengers.pids
        return [*(each.pid for each in self.supervisors), *beside]
