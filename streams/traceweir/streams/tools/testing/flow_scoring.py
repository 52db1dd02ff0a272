"""Scores the sessions of a flow by the plan of its file, by pushed configs and by challengers, as a worker does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from traceweir.schemas.base import JsonObject
from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.limited_plan import limited
from traceweir.scorers.evaluation.plan import Challenger, Plan, read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.score.challengers import Challengers, ChallengerScoring
from traceweir.streams.pipeline.score.followed_configs import FollowedConfigs
from traceweir.streams.pipeline.score.resources import ScoringResources
from traceweir.streams.pipeline.topology import pool_of_challengers
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.records import HOME, records_of
from traceweir.streams.scoring.configs.selectors import Configs, selector
from traceweir.streams.scoring.configs.topic_record import parsed
from traceweir.streams.scoring.configs.usable import usable_plan
from traceweir.streams.scoring.judges.budget import JudgeBudget, Paid
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.config_scoring import ConfigScoring
from traceweir.streams.scoring.sessions.options import ScoringOptions, ScoringOutputs
from traceweir.streams.scoring.sessions.result import Scoring, ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import Measure, SessionScoring, score_bytes
from traceweir.streams.tools.testing.flow_topics import FlowTopics
from traceweir.streams.tools.testing.held_scoring import HeldScoring
from traceweir.streams.tools.testing.memory import Message

if TYPE_CHECKING:
    from traceweir.streams.scoring.tracing.session_spans import SessionSpans


class FlowScoring(FlowTopics):
    """Holds the judge, the configs and the challengers of a flow, and scores its sessions by them."""

    def __init__(
        self,
        settings: Settings,
        plan: Plan,
        embedder: Embedder | None,
        judging: Callable[[Callable[[], datetime]], Judging] | None,
        hold: Callable[[Measure], Measure] | None,
        spans: SessionSpans | None,
    ) -> None:
        super().__init__(settings.topics, settings.partitions)
        self.settings = settings
        self.plan = plan
        self.refused_topics: set[str] = set()
        """Topics of challengers that the worker may not write."""
        self._embedder = embedder
        self._spans = spans
        self._make_judging = judging
        self._judging = judging(self.clock) if judging is not None else None
        self._challengers: dict[str, tuple[Measure, Judging | None]] = {}
        scoring: Measure = self._scoring_by(self.plan)
        self.scoring = hold(scoring) if hold is not None else scoring
        """The scoring of a session."""
        self._config_scoring = ConfigScoring(scoring, partial(self._scoring_by, pushed=True))
        self.configs: dict[int, ConfigLog] = {}
        """What the worker of each partition has read of the topic `configs`."""

    async def score_by_challenger(
        self, challenger: Challenger, raw: bytes, known: Sequence[JudgeVerdict]
    ) -> ScoringResult:
        """Scores a session by a challenger. Override the method to let a challenger fail."""
        return await score_bytes(self._challenger(challenger)[0])(raw, known)

    def push_config(
        self, config: JsonObject | None, app: str | None = None, environment: str | None = None, version: int = 1
    ) -> str | None:
        """Writes a config to the topic `configs` as `traceweir config push` does, and lets all workers read it.

        The stages take the config with their next record or tick.

        Args:
            config: The config; None withdraws the one that is in effect.
            app: The app that the config is for; None: all apps.
            environment: The environment that the config is for; None: all environments.
            version: The number of the version.

        Returns:
            The `config_digest` of the scores with this config; None for a withdrawal.

        Raises:
            ConfigError: the config is invalid. To push an invalid config, `send` its record and pass it to `configs[partition].take`.
        """
        digest = read_plan(config).digest if config is not None else None
        pushed = PushedConfig(
            envelope=ENVELOPE,
            selector=selector(app, environment),
            version=version,
            digest=digest,
            config=config,
            pushed_at=self.clock(),
        )
        for key, value in records_of(pushed):
            message = self.send(self.topics.configs, value, key, partition=HOME)
            for log in self.configs.values():
                log.take(message)
        return digest

    async def read_record(self, topic: str, partition: int, offset: int) -> Message | None:
        """Returns a record for a retry of the score stage (`judge.retry_later`); None if the topic has no such record.

        Override this method to simulate deleted records or failures of brokers.
        """
        log = self.logs[topic, partition]
        return log[offset] if offset < len(log) else None

    def _resources_of(self, partition: int, pool: WorkPool) -> ScoringResources:
        """Returns what the score stage of a partition needs when its worker starts now."""
        log = self.configs[partition] = self._read_configs()
        return ScoringResources(
            score_bytes(self.scoring),
            pool,
            self._record_spend,
            self.read_record,
            FollowedConfigs(log, partial(self._scoring_of, log), partial(_check, log)),
            challengers=self._challengers_of(log, pool),
        )

    def _scoring_by(self, plan: Plan, *, pushed: bool = False, judging: Judging | None = None) -> SessionScoring:
        return SessionScoring(
            plan,
            self._embedder,
            self.clock,
            replace(ScoringOptions.of(self.settings), settles=True),
            judging=judging or self._judging,
            in_place_of=self.plan if pushed else None,
            outputs=ScoringOutputs(spans=self._spans),
        )

    def _read_configs(self) -> ConfigLog:
        """Returns what a worker that starts now reads of the topic `configs`."""
        log = ConfigLog(partial(usable_plan, file=self.plan))
        for message in self.read(self.topics.configs):
            log.read(parsed(message))
        log.catch_up()
        log.note_position(len(self.logs[self.topics.configs, HOME]))
        return log

    def _scoring_of(self, log: ConfigLog, configs: Configs) -> Scoring:
        for name, document in log.documents(configs).items():
            self._config_scoring.add(name, document)
        measure = self._config_scoring.under(configs)
        return score_bytes(self.scoring.around(measure) if isinstance(self.scoring, HeldScoring) else measure)

    def _challenger(self, challenger: Challenger) -> tuple[Measure, Judging | None]:
        """Returns the scoring by a challenger, whose judge has a budget of its own."""
        if (found := self._challengers.get(challenger.id)) is None:
            plan = limited(challenger.plan, challenger.budget_usd)
            judging = self._make_judging(self.clock) if self._make_judging is not None else None
            if judging is not None:
                judging.budget = JudgeBudget(plan.judge.budget, self.clock)
            measure: Measure = self._scoring_by(plan, judging=judging)
            measure = self.scoring.around(measure) if isinstance(self.scoring, HeldScoring) else measure
            found = self._challengers[challenger.id] = measure, judging
        return found

    def _challengers_of(self, log: ConfigLog, pool: WorkPool) -> Challengers:
        def record_spend(challenger: str, paid: Paid) -> None:
            found = challengers.in_effect.get(challenger)
            if found is not None and (judging := self._challenger(found)[1]) is not None:
                judging.budget.record_spend(paid)

        def writable(name: str) -> bool:
            return self.topics.shadow_results(name) not in self.refused_topics

        places = pool_of_challengers(self.settings, pool)
        challenger_scoring = ChallengerScoring(
            self.score_by_challenger, lambda challenger: True, writable, record_spend, self.read_record, places
        )
        challengers = Challengers(self.plan.challenger, log, challenger_scoring)
        return challengers

    def _record_spend(self, paid: Paid) -> None:
        if self._judging is not None:
            self._judging.budget.record_spend(paid)


async def _check(log: ConfigLog, name: str) -> None:
    log.check(name)
