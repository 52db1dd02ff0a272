"""Reads which challengers are in effect, which shadows have scores, and these scores, for the dashboard."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from pydantic import BaseModel

from traceweir.schemas.pushed_config import PushedConfig
from traceweir.schemas.score import Score
from traceweir.schemas.text import printable, shell_command
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import SHADOW_NAME
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.dashboard.result_diff import NoDiffError, shown_comparison
from traceweir.streams.board.store.diff import MAX_RESULTS, TooManyResultsError, diff_beside
from traceweir.streams.board.store.selection import Readable
from traceweir.streams.lab.comparison.document import Diff
from traceweir.streams.scoring.configs.selectors import in_words, parsed_selector
from traceweir.streams.tools.results.reader import Results, ResultsError, ScoreFilter
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState, read_topic
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.topic_admin import existing_topics

log = logging.getLogger(__name__)

FIRST_LOOK_AFTER_S = 2.0
LOOK_EVERY_S = 10.0
SPAN = timedelta(days=1)
"""The scores of a challenger that are compared: those that were written within this time. Of a shadow all are."""


class UnknownChallengerError(Exception):
    """No challenger in effect and no shadow has a name."""


class ChallengerInEffect(BaseModel):
    """A challenger that scores sessions now, beside the config in effect."""

    name: str
    """Its name; its scores are on the topic `results.shadow.<name>`."""
    sessions: str
    """The sessions that the champion scores, in words."""
    sample: float
    """Share of these sessions, above 0 and at most 1."""
    budget_usd: float | None
    """The most that its judges can cost in all; null: no limit."""
    config_digest: str
    """The `config_digest` of its scores."""
    champion_digest: str
    """The `config_digest` of the champion's scores."""
    pushed_at: datetime
    """When the version of the config with this challenger was pushed."""
    promote_command: str | None
    """The command that makes its config the one in effect; null if no command line can name the app or the environment."""


class ShownShadow(BaseModel):
    """A shadow, or a challenger that has ended, that has a topic of scores."""

    name: str
    """Its name; its scores are on the topic `results.shadow.<name>`."""


class ChallengersInEffect(Protocol):
    """The challengers that are in effect, and the shadows."""

    @property
    def in_effect(self) -> Sequence[ChallengerInEffect]:
        """Those that were in effect a moment ago."""

    @property
    def shadows(self) -> Sequence[str]:
        """The names of the shadows, and of the ended challengers, that had a topic of scores a moment ago."""

    def scores(self, name: str) -> Sequence[Score]:
        """Returns the scores of a challenger of the last day, or all scores of a shadow.

        Raises:
            NoDiffError: they cannot be read.
        """


class NoChallengers:
    """No challenger and no shadow is known."""

    in_effect: Sequence[ChallengerInEffect] = ()
    shadows: Sequence[str] = ()

    def scores(self, name: str) -> Sequence[Score]:
        """Returns no score."""
        return ()


class PushedChallengers:
    """The challengers of the configs on the topic `configs`, and the shadows that have a topic of scores.

    Args:
        settings: Where Kafka is.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.in_effect: Sequence[ChallengerInEffect] = ()
        """Those that were in effect at the last look."""
        self.shadows: Sequence[str] = ()
        """Those that had a topic at the last look, by name."""
        self.configs = TopicState()
        """What the topic `configs` said at the last look."""

    async def run(self) -> None:
        """Looks again and again, until it is cancelled. The feed begins first, so that results are stored sooner."""
        await asyncio.sleep(FIRST_LOOK_AFTER_S)
        warned_of: str | None = None
        while True:
            try:
                await self.look()
                warned_of = None
            except KafkaUnreachableError as error:
                # The feed says it.
                log.debug("challengers are not looked for: %s", error)
            except Exception as error:  # noqa: BLE001  # whatever it is, the dashboard goes on without challengers
                self.in_effect = self.shadows = ()
                self.configs = TopicState()
                problem = printable(str(error) if isinstance(error, ConfigTopicError) else repr(error), 1_000)
                if problem != warned_of:
                    log.warning("challengers are not shown, because looking for them failed: %s; trying again", problem)
                warned_of = problem
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Looks once.

        Raises:
            ConfigTopicError: the topic `configs` exists and cannot be read: a challenger would be shown as one that has ended.
            KafkaUnreachableError: no broker answers.
        """
        topics = await in_request_thread(existing_topics, self._settings)
        self.configs = await read_topic(self._settings) if self._settings.topics.configs in topics else TopicState()
        self.in_effect = in_effect = challengers_of(self.configs.current.values())
        begin = self._settings.topics.shadow_results_prefix
        taken = {each.name for each in in_effect}
        names = sorted(topic.removeprefix(begin) for topic in topics if topic.startswith(begin))
        self.shadows = [name for name in names if re.fullmatch(SHADOW_NAME, name) and name not in taken]

    def scores(self, name: str) -> Sequence[Score]:
        """Returns the scores of a challenger of the last day, or all scores of a shadow. Called in a thread.

        Raises:
            NoDiffError: they cannot be read.
        """
        try:
            return asyncio.run(self._scores(name))
        except (ResultsError, KafkaUnreachableError, TooManyResultsError) as error:
            raise NoDiffError(str(error)) from None

    async def _scores(self, name: str) -> Sequence[Score]:
        is_shadow = name in self.shadows
        what, when, span = ("shadow", "", "") if is_shadow else ("challenger", " of the last day", "?since=1d")
        since_ms = None if is_shadow else round((utc_now() - SPAN).timestamp() * 1000)
        wanted = ScoreFilter(since_ms=since_ms, all_revisions=True)
        found: list[Score] = []
        async with Results(self._settings, wanted, self._settings.topics.shadow_results(name)) as results:
            async for each in results.matching():
                found.append(each.score)
                if len(found) > MAX_RESULTS:
                    raise TooManyResultsError(
                        f"{what} {name} has more than {MAX_RESULTS} scores{when}: compare them with `traceweir "
                        f"diff 'results{span}' 'results.shadow.{name}{span}'`"
                    )
        return found


def challengers_of(configs: Iterable[PushedConfig]) -> list[ChallengerInEffect]:
    """Returns the challengers of configs, in the order of their names; a config that cannot be used has none."""
    found = []
    for pushed in configs:
        if pushed.config is None or pushed.config.get("challenger") is None:
            continue
        try:
            plan = read_plan(pushed.config)
        except ConfigError:
            continue
        if (each := plan.challenger) is not None:
            found.append(
                ChallengerInEffect(
                    name=each.name,
                    sessions=printable(in_words(pushed.selector)),
                    sample=each.sample,
                    budget_usd=each.budget_usd,
                    config_digest=each.plan.digest,
                    champion_digest=plan.digest,
                    pushed_at=pushed.pushed_at,
                    promote_command=_promote_command(each.name, pushed.selector),
                )
            )
    return sorted(found, key=lambda each: each.name)


def _promote_command(name: str, selector: str) -> str | None:
    app, environment = parsed_selector(selector)
    options = [f"--app={app}"] if app is not None else []
    options += [f"--environment={environment}"] if environment is not None else []
    # A name that begins with a hyphen would be an option.
    return shell_command("traceweir", "config", "promote", *options, *(["--"] if name.startswith("-") else []), name)


def challenger_diff(store: Readable, challengers: ChallengersInEffect, name: str, content: Content) -> Diff:
    """Returns what a challenger or a shadow changes on the sessions that it has scored; the base is the stored results.

    Of a challenger the scores of the last day are compared, of a shadow all.

    Raises:
        UnknownChallengerError: no challenger of this name is in effect, and no shadow has it.
        NoDiffError: the scores cannot be read or compared.
        StoreError: the store cannot answer.
    """
    if name not in challengers.shadows and all(each.name != name for each in challengers.in_effect):
        raise UnknownChallengerError(
            f"no challenger {printable(name, 100)!r} is in effect, and no shadow of this name has a topic of scores; "
            "`/api/shadows` lists those that have"
        )
    return shown_comparison(lambda: diff_beside(store, challengers.scores(name), name), content)
