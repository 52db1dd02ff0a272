"""The trial of suspects: the sessions that a scoring process may have died of are tried one at a time, in a process for them alone.

Each is tried until it is scored, or has shown that it was the one and is a dead letter `poison`. A process takes seconds to start, so
one serves suspect after suspect. A session may leave something behind that ends it later, so only a death of a process that had served
nobody else counts.
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
from traceweir.streams.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.process import LOOK_EVERY_S, NotStarted, ScoringProcess, ScoringProcessDiedError
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.stages.errors import SessionRejected

log = logging.getLogger(__name__)

STARTS = 3
"""The start at which a session is given up, of those that count, if it was among those that the process died of at each start before."""
_POISON = (
    "the scoring process died or hung each time that this session was started, "
    "the last time with it alone in a process that had served no other"
)


class Attempts:
    """How often sessions were at work when a scoring process died. In a file, as the worker may be ended, too."""

    def __init__(self, file: Path) -> None:
        self._file, self._changed = file, False
        try:
            self._deaths = _DEATHS.validate_json(file.read_bytes())
        except FileNotFoundError:
            self._deaths = {}
        except ValidationError as error:
            log.warning("%s cannot be read and is begun anew: %s", file, explain(error))
            self._deaths = {}

    def of(self, raw: bytes) -> int:
        """How often for this session."""
        return self._deaths.get(_name(raw), 0) if self._deaths else 0

    def add(self, raw: bytes) -> None:
        """Once more for this one."""
        self._deaths[_name(raw)] = self.of(raw) + 1
        self._changed = True

    def forget(self, raw: bytes) -> None:
        """It is done."""
        if self._deaths.pop(_name(raw), None) is not None:
            self._changed = True

    def save(self) -> None:
        """Write down what has changed."""
        if not self._changed:
            return
        self._changed = False
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(self._deaths))
        fresh.replace(self._file)


class Quarantine:
    """Tries suspects, as long as there are any.

    Args:
        attempts: How often a process died of each.
        another: Gives a process, connected.
        failed: Called when no process can be had any more.
        silent_s: Seconds of silence after which a process counts as stuck.
    """

    def __init__(
        self,
        attempts: Attempts,
        another: Callable[[], Awaitable[ScoringProcess]],
        failed: Callable[[BaseException], object],
        silent_s: float,
    ) -> None:
        self._attempts, self._another, self._failed, self._silent_s = attempts, another, failed, silent_s
        self._suspects: deque[tuple[bytes, Sequence[JudgeVerdict], int, asyncio.Future[ScoringResult]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self.quarantine_process: ScoringProcess | None = None
        """The process for suspects, while there is one."""

    async def __call__(self, raw: bytes, known: Sequence[JudgeVerdict], attempt: int = 0) -> ScoringResult:
        """Try a session, of which these verdicts are known, under an attempt number, when its turn comes.

        Raises:
            Unscorable: nothing can come of it.
        """
        answer: asyncio.Future[ScoringResult] = asyncio.get_running_loop().create_future()
        self._suspects.append((raw, known, attempt, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._try_all())
        return await answer

    def stop(self) -> None:
        """Try no more."""
        if self._task is not None:
            self._task.cancel()

    async def _try_all(self) -> None:
        try:
            while self._suspects:
                suspect = raw, known, attempt, answer = self._suspects.popleft()
                if answer.done():  # nobody waits any more
                    continue
                if self._attempts.of(raw) + 1 >= STARTS:
                    answer.set_exception(SessionRejected("poison", _POISON))
                    self._attempts.forget(raw)
                    continue
                if self.quarantine_process is None:
                    self.quarantine_process = await self._another()
                self._attempts.save()  # before it can bring the worker down, too
                fresh = self.quarantine_process.fresh
                found = await self._alone(self.quarantine_process, raw, known, attempt)
                if isinstance(found, ScoringProcessDiedError | NotStarted):
                    self.quarantine_process = None
                    if fresh and isinstance(found, ScoringProcessDiedError):
                        self._attempts.add(raw)
                    self._suspects.appendleft(suspect)
                    continue
                self._attempts.forget(raw)
                if answer.done():
                    continue
                if isinstance(found, SessionRejected):
                    answer.set_exception(found)
                else:
                    answer.set_result(found)
        except Exception as error:  # noqa: BLE001  # no process can be had
            self._failed(error)
        finally:
            self._task = None
            self._attempts.save()
            if self.quarantine_process is not None:
                self.quarantine_process.close()
                self.quarantine_process = None

    async def _alone(
        self, quarantine_process: ScoringProcess, raw: bytes, known: Sequence[JudgeVerdict], attempt: int
    ) -> ScoringResult | SessionRejected | ScoringProcessDiedError | NotStarted:
        answer = quarantine_process.ask(raw, known, attempt)
        while not answer.done():
            await asyncio.wait({answer}, timeout=LOOK_EVERY_S)
            quarantine_process.kill_if_silent(self._silent_s)
        try:
            return answer.result()
        except (SessionRejected, ScoringProcessDiedError, NotStarted) as why:
            return why


_DEATHS = TypeAdapter(dict[str, int])


def _name(raw: bytes) -> str:
    return blake2b(raw, digest_size=16).hexdigest()
