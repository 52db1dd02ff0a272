"""Tries suspects one at a time in a process of their own: sessions that were in flight when a scoring process died.

Each suspect is tried until it is scored, or until it has proved to kill its process and becomes a dead letter `poison`. A process takes
seconds to start, so one process serves several suspects. A session can damage a process that ends only later, so only the death of a
process that had served no other suspect counts.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from traceweir.schemas.base import explain
from traceweir.streams.scoring.configs.selectors import NO_CONFIGS, Configs
from traceweir.streams.scoring.isolation.process import (
    LOOK_EVERY_S,
    NotStarted,
    ScoringProcess,
    ScoringProcessDiedError,
)
from traceweir.streams.scoring.isolation.silence import SilenceLimits
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult

log = logging.getLogger(__name__)

STARTS = 3
"""Start at which a session is given up, if the process died with this session in flight at each earlier start."""
_POISON = (
    "the scoring process died or hung each time that this session was started, "
    "the last time alone in a process that had served no other session"
)


class DeathCounts:
    """Counts, by session, how often a scoring process died with this session in flight.

    Args:
        file: Keeps the counts, because the worker can end too. None: this process alone keeps them.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._changed = False
        self._deaths: dict[str, int] = {}
        if file is None:
            return
        try:
            self._deaths = _DEATHS.validate_json(file.read_bytes())
        except FileNotFoundError:
            pass
        except ValidationError as error:
            log.warning("%s cannot be read, so the counts of deaths start at 0: %s", file, explain(error))

    def of(self, raw: bytes) -> int:
        """Returns the count of this session."""
        return self._deaths.get(_name(raw), 0) if self._deaths else 0

    def add(self, raw: bytes) -> None:
        """Increments the count of this session."""
        self._deaths[_name(raw)] = self.of(raw) + 1
        self._changed = True

    def forget(self, raw: bytes) -> None:
        """Removes the count of this session, which is done."""
        if self._deaths.pop(_name(raw), None) is not None:
            self._changed = True

    def save(self) -> None:
        """Writes the file, if a count has changed."""
        if self._file is None or not self._changed:
            return
        self._changed = False
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(self._deaths))
        fresh.replace(self._file)


class Quarantine:
    """Tries suspects while there are any.

    Args:
        death_counts: The counts of deaths by session.
        another: Starts and connects a process.
        failed: Called when no process can be started any more.
        limits: Silence after which a process counts as stuck.
    """

    def __init__(
        self,
        death_counts: DeathCounts,
        another: Callable[[], Awaitable[ScoringProcess]],
        failed: Callable[[BaseException], object],
        limits: SilenceLimits,
    ) -> None:
        self._death_counts = death_counts
        self._another = another
        self._failed = failed
        self._limits = limits
        self._suspects: deque[tuple[bytes, Sequence[JudgeVerdict], int, Configs, asyncio.Future[ScoringResult]]] = (
            deque()
        )
        self._task: asyncio.Task[None] | None = None
        self.quarantine_process: ScoringProcess | None = None
        """The process for suspects; None while there is no suspect."""

    async def __call__(
        self, raw: bytes, known: Sequence[JudgeVerdict], attempt: int = 0, configs: Configs = NO_CONFIGS
    ) -> ScoringResult:
        """Scores a suspect under an attempt number, after the suspects before it.

        `known` are the stored verdicts on this session, `configs` the configs in effect.

        Raises:
            SessionRejected: the session cannot be scored.
        """
        answer: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
        self._suspects.append((raw, known, attempt, configs, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._try_all())
        return await answer

    @property
    def waiting(self) -> int:
        """Number of suspects that wait."""
        return len(self._suspects)

    def stop(self) -> None:
        """Stops trying suspects."""
        if self._task is not None:
            self._task.cancel()

    async def _try_all(self) -> None:
        try:
            while self._suspects:
                suspect = raw, known, attempt, configs, answer = self._suspects.popleft()
                # No task waits for the answer any more.
                if answer.done():
                    continue
                if self._death_counts.of(raw) + 1 >= STARTS:
                    answer.set_exception(SessionRejected("poison", _POISON))
                    self._death_counts.forget(raw)
                    continue
                if self.quarantine_process is None:
                    self.quarantine_process = await self._another()
                # Written first, because the session can also end the worker.
                self._death_counts.save()
                fresh = self.quarantine_process.fresh
                found = await self._alone(self.quarantine_process, raw, known, attempt, configs)
                if isinstance(found, ScoringProcessDiedError | NotStarted):
                    self.quarantine_process = None
                    if fresh and isinstance(found, ScoringProcessDiedError):
                        self._death_counts.add(raw)
                    self._suspects.appendleft(suspect)
                    continue
                self._death_counts.forget(raw)
                if answer.done():
                    continue
                if isinstance(found, SessionRejected):
                    answer.set_exception(found)
                else:
                    answer.set_result(found)
        except Exception as error:  # noqa: BLE001  # no process can be started
            self._failed(error)
        finally:
            self._task = None
            self._death_counts.save()
            if self.quarantine_process is not None:
                self.quarantine_process.close()
                self.quarantine_process = None

    async def _alone(
        self,
        quarantine_process: ScoringProcess,
        raw: bytes,
        known: Sequence[JudgeVerdict],
        attempt: int,
        configs: Configs,
    ) -> ScoringResult | SessionRejected | ScoringProcessDiedError | NotStarted:
        answer = quarantine_process.ask(raw, known, attempt, configs)
        while not answer.done():
            await asyncio.wait({answer}, timeout=LOOK_EVERY_S)
            quarantine_process.kill_if_stuck(self._limits)
        try:
            return answer.result()
        except (SessionRejected, ScoringProcessDiedError, NotStarted) as why:
            return why


_DEATHS = TypeAdapter(dict[str, int])


def _name(raw: bytes) -> str:
    return blake2b(raw, digest_size=16).hexdigest()
