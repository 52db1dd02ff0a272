"""Watches the challengers in effect: whether their topics can be written, and which processes they still need."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from mode import Service

from traceweir.scorers.evaluation.plan import Challenger
from traceweir.streams.base.service_tasks import service_task
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.topic_admin import write_problems

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
CHECK_EVERY_S = 10.0
"""Seconds between two checks of the same topics; new ones are checked at once."""


class ChallengerTopics(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Checks the topics of challengers before a score is written to them: a transaction to a missing one would fail.

    Args:
        settings: Where Kafka is.
        in_effect: Returns the challengers in effect, by id.
        keep: Receives the ids of the challengers in effect, so that the processes of others end.
        check: Returns a sentence for each of these topics that cannot be written; called in a thread.
    """

    def __init__(
        self,
        settings: Settings,
        in_effect: Callable[[], Mapping[str, Challenger]],
        keep: Callable[[Collection[str]], Awaitable[None]],
        *,
        check: Callable[[Settings, Collection[str]], Mapping[str, str]] = write_problems,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._settings = settings
        self._in_effect = in_effect
        self._keep = keep
        self._check = check
        self._writable: set[str] = set()
        self._known: frozenset[str] = frozenset()
        self._checked_at = -math.inf
        self._logged: dict[str, str] = {}
        self.problems: Sequence[str] = ()
        """A sentence for each challenger in effect whose scores cannot be written."""

    def writable(self, name: str) -> bool:
        """Returns whether the topic of the challenger with this name could be written at the last check."""
        return self._settings.topics.shadow_results(name) in self._writable

    async def look(self) -> None:
        """Checks the topics if that is due, and ends what is no longer needed.

        An unexpected error of one is logged, once, and stops neither the other nor the next look.
        """
        in_effect = self._in_effect()
        await self._surviving("checking the topics of challengers", self._check_topics(in_effect))
        await self._surviving("ending the processes of former challengers", self._keep(in_effect))

    async def _check_topics(self, in_effect: Mapping[str, Challenger]) -> None:
        topics = frozenset(self._settings.topics.shadow_results(each.name) for each in in_effect.values())
        now = asyncio.get_running_loop().time()
        if topics == self._known and now - self._checked_at < CHECK_EVERY_S:
            return
        found: Mapping[str, str] = {}
        if topics:
            try:
                found = await asyncio.to_thread(self._check, self._settings, topics)
            except KafkaUnreachableError as error:
                # Nothing can be written; the watchdog of the worker says it.
                log.debug("the topics of challengers are not checked: %s", error)
                return
        self._known = topics
        self._checked_at = now
        self._writable = set(topics - found.keys())
        problems = [f"no score of a challenger is written, because {found[topic]}" for topic in sorted(found)]
        for problem in problems:
            if problem not in self.problems:
                log.warning("%s", problem)
        self.problems = problems

    async def _surviving(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            problem = repr(error)
            if self._logged.get(what) != problem:
                log.exception("%s failed; it is tried again", what)
            self._logged[what] = problem
        else:
            self._logged.pop(what, None)

    @service_task("checks the topics of challengers")
    async def _look(self) -> None:
        while not self.should_stop:
            await self._surviving("looking for challengers", self.look())
            await self.sleep(LOOK_EVERY_S)
