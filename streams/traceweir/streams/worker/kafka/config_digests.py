"""Keeps the config of each digest readable: writes those in effect to the topic `configs` that are not on it yet."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)
from mode import Service
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.service_tasks import intervals, service_task
from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES, Output
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.records import HOME, digest_record

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
RETRY_AFTER_S = (60.0, 300.0, 1800.0)
"""Seconds to the next attempts after failed ones, by the number of failures so far; then the last of them."""


@dataclass(slots=True)
class _Attempts:
    """What became of the record of a digest."""

    over: bool = False
    """Whether the record never can be written."""
    failures: int = 0
    not_before: float = 0.0
    """When the next attempt is due, in seconds of the event loop."""


class ConfigDigests(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Writes a record `digest:<digest>` for each config by which this worker scores and that the topic lacks.

    These are the worker's config file, pushed configs whose digest is another one here than where they were pushed, and the
    challengers of both. No score depends on the record, so it is not part of a checkpoint: a worker that may not write to
    the topic scores as before, and says so once. Two workers can write the same record, of which compaction keeps one.

    Args:
        configs: What the worker has read of the topic; it must be read to its end when the service starts.
        file: The plan of the worker's config file.
        topic: The name of the topic.
        write: Writes a record to the topic.
        clock: Returns the time in seconds; by default that of the event loop.
    """

    def __init__(
        self,
        configs: ConfigLog,
        file: Plan,
        topic: str,
        write: Callable[[Output], Awaitable[object]],
        *,
        clock: Callable[[], float] = lambda: asyncio.get_running_loop().time(),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._configs = configs
        self._file = file
        self._topic = topic
        self._write = write
        self._clock = clock
        self._attempts: dict[str, _Attempts] = {}
        self._logged: set[str] = set()

    async def on_start(self) -> None:
        """Writes what is missing before the worker scores. If no broker confirms a record, the others wait."""
        await self.look()

    async def look(self) -> None:
        """Writes what is missing and due."""
        for digest, plan in self._configs.without_record(self._file).items():
            attempts = self._attempts.setdefault(digest, _Attempts())
            if not attempts.over and self._clock() >= attempts.not_before and not await self._attempt(plan, attempts):
                return

    async def _attempt(self, plan: Plan, attempts: _Attempts) -> bool:
        """Writes the record of a plan; returns whether an attempt with another record makes sense now."""
        if (record := self._record(plan)) is None:
            attempts.over = True
            return True
        try:
            await self._write(record)
        except Exception as error:  # noqa: BLE001  # whatever it is, it must not end a worker that scores
            attempts.over = isinstance(error, MessageSizeTooLargeError)
            attempts.not_before = self._clock() + RETRY_AFTER_S[min(attempts.failures, len(RETRY_AFTER_S) - 1)]
            attempts.failures += 1
            self._warn(plan, self._reason(error))
            return not _is_without_answer(error)
        attempts.not_before = (
            self._clock() + RETRY_AFTER_S[0]
            # Until then the record is read, unless somebody deletes it.
        )
        log.info("configs: the config with the digest %s is on the topic now", plan.digest[:12])
        return True

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TopicAuthorizationFailedError):
            return f"this user lacks the right Write on {self._topic}. Grant it; it is tried again"
        if isinstance(error, MessageSizeTooLargeError):
            return f"the broker takes no record of this size: raise max.message.bytes of {self._topic}, and start again"
        if _is_without_answer(error):
            return f"no broker has confirmed the record in time ({error!r}); it is tried again"
        return f"{error!r}; it is tried again"

    def _record(self, plan: Plan) -> Output | None:
        try:
            key, value = digest_record(plan, utc_now())
        except ValidationError as error:
            self._warn(plan, explain(error))
        except (ValueError, RecursionError) as error:
            self._warn(plan, str(error))
        else:
            if (size := len(key) + len(value)) <= MAX_OUTPUT_BYTES:
                return Output(self._topic, HOME, key, value)
            self._warn(plan, f"the record would have {size} bytes, and {MAX_OUTPUT_BYTES} is the most")
        return None

    def _warn(self, plan: Plan, problem: str) -> None:
        sentence = (
            f"the config with the digest {plan.digest[:12]} is not on the topic {self._topic}, so that `traceweir config show "
            f"--digest` does not find it: {printable(problem, 500)}"
        )
        if sentence not in self._logged:
            self._logged.add(sentence)
            log.warning("%s", sentence)

    @service_task("writes configs to the topic of configs")
    async def _look(self) -> None:
        async for _ in intervals(self, LOOK_EVERY_S):
            await self.look()


def _is_without_answer(error: Exception) -> bool:
    """Returns whether another record would wait as long in vain."""
    passing = isinstance(error, KafkaError) and error.retriable
    return passing or isinstance(error, TimeoutError | KafkaTimeoutError | KafkaConnectionError)
