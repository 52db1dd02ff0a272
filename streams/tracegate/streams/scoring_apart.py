"""Scoring apart from the worker: what a session does to its scoring process, it does to itself alone.

When the process dies or stops answering, another takes its place at once. The sessions that it was at are tried one at a time, in a
process for them alone, until each is scored or has shown that it was the one: a dead letter `poison` at its third start.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mode import Service
from pydantic import TypeAdapter, ValidationError

from tracegate.schemas.base import explain
from tracegate.schemas.reference import Reference
from tracegate.streams.judge_budget import Paid, Spending
from tracegate.streams.scoring import Scored, Unscorable
from tracegate.streams.scoring_process import NotBegun, ScoringProcess, ScoringProcessDied
from tracegate.streams.scoring_wire import Setup
from tracegate.streams.verdicts import JudgeVerdict

log = logging.getLogger(__name__)

STARTS = 3
"""The start at which a session is given up, if it was among those that the process died of at each start before."""
SILENT_S = 10.0
"""How long a process may be silent that has been asked for something. It speaks every second, unless a scorer keeps it from it."""
TRIES = 3
"""How often a process is started that does not come to be ready: it may have been frozen or killed by whoever harmed the one before."""
_LOOK_EVERY_S = 0.5
_POISON = f"the scoring process died or hung each of the {STARTS - 1} times that this session was started, the last time with it alone"


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


class ScoringApart(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Scores sessions in a process of its own, and starts another when it dies.

    Args:
        setup: What the process has to know.
        attempts: Where attempts are kept.
        silent_s: Seconds of silence after which a process counts as stuck.

    Raises:
        EmbedderUnavailable: the embedder cannot be loaded.
        JudgeUnavailable: what asks judges is not installed.
        ScoringProcessDied: the process does not start.
    """

    def __init__(self, setup: Setup, attempts: Path, *, silent_s: float = SILENT_S, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._setup, self._attempts, self._silent_s = setup, Attempts(attempts), silent_s
        self._process = ScoringProcess(setup)
        self.embedder_id = self._process.embedder_id
        self._ready = asyncio.Event()
        self._learned: dict[str, bytes] = {}
        self._spending = Spending()
        self._asked: dict[bytes, asyncio.Future[Scored]] = {}
        self._suspects: deque[tuple[bytes, Sequence[JudgeVerdict], asyncio.Future[Scored]]] = deque()
        self._trial: asyncio.Task[None] | None = None
        self._ward: ScoringProcess | None = None
        self._starting: set[asyncio.Task[ScoringProcess]] = set()
        self.failed: Callable[[BaseException], object] = lambda error: None
        """Called when no process can be had any more."""

    async def on_start(self) -> None:
        """Connect with the process."""
        await self._take(self._process)

    async def on_stop(self) -> None:
        """End every process, whatever it is at."""
        if self._trial is not None:
            self._trial.cancel()
        if self._starting:
            await asyncio.wait(self._starting)
        for start in self._starting:
            if start.exception() is None:
                start.result().close()
        self._process.close()

    async def __call__(self, raw: bytes, known: Sequence[JudgeVerdict] = (), /) -> Scored:
        """Score a session, of which these verdicts are known.

        It waits for ever once no process can be had any more, which `failed` is told.

        Raises:
            Unscorable: nothing can come of it.
        """
        # After a rebalance the same session may still be at work for the former owner of its partition, in this very process. Two of
        # them would count each death of the process twice, and begin to count anew once the first is poison.
        while (same := self._asked.get(raw)) is not None:
            await asyncio.wait({same})
            if not same.cancelled():
                return same.result()
        ended = self._asked[raw] = asyncio.get_running_loop().create_future()
        try:
            scored = await self._scored(raw, known)
        except Unscorable as why:
            ended.set_exception(why)
            ended.exception()  # it is told to whoever waits, and nobody may
            self._note(why.judged.paid)
            raise
        else:
            ended.set_result(scored)
        finally:
            del self._asked[raw]
            if not ended.done():
                ended.cancel()
        self._note(scored.judged.paid)
        return scored

    async def _scored(self, raw: bytes, known: Sequence[JudgeVerdict]) -> Scored:
        while not self._attempts.of(raw):
            await self._ready.wait()
            try:
                return await self._process.ask(raw, known)
            except NotBegun:
                pass
            except ScoringProcessDied:
                self._attempts.add(raw)
        answer: asyncio.Future[Scored] = asyncio.get_running_loop().create_future()
        self._suspects.append((raw, known, answer))
        if self._trial is None:
            self._trial = asyncio.create_task(self._try_suspects())
        return await answer

    # References

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Take a reference, or with None take it away."""
        self._learned.pop(reference_id, None)
        if reference is not None:
            self._learned[reference_id] = reference.model_dump_json(by_alias=True, exclude_unset=True).encode()
        for process in self._connected():
            process.learn(reference_id, self._learned.get(reference_id))

    # What judges cost

    def charge(self, paid: Paid) -> None:
        """Count what was paid by sessions of a partition that this worker has taken over, or (less than 0) that it has given up."""
        self._spending.add(paid)
        for process in self._connected():
            process.charge(paid)

    def _note(self, paid: Sequence[Paid]) -> None:
        """For a process that comes after the one that paid."""
        for each in paid:
            self._spending.add(each)

    def _connected(self) -> list[ScoringProcess]:
        processes = (self._process if self._ready.is_set() else None, self._ward)
        return [process for process in processes if process is not None and not process.ended]

    # What the process does

    async def _another(self) -> ScoringProcess:
        """A process more; if the worker stops meanwhile, `on_stop` ends it.

        Raises:
            ScoringProcessDied: it did not start, and would not when started again.
        """
        for more in reversed(range(TRIES)):
            start = asyncio.create_task(asyncio.to_thread(ScoringProcess, self._setup))
            self._starting.add(start)
            await asyncio.wait({start})
            if self.should_stop:
                raise asyncio.CancelledError
            self._starting.discard(start)
            error = start.exception()
            if not (more and isinstance(error, ScoringProcessDied)):
                break
            log.warning("%s; it is started again", error)
        return start.result()

    async def _connect(self, process: ScoringProcess) -> None:
        await process.connect()
        for reference_id, reference in self._learned.items():
            process.learn(reference_id, reference)
        for paid in self._spending.entries():
            process.charge(paid)

    async def _take(self, process: ScoringProcess) -> None:
        self._process = process
        process.lost = self._lost
        await self._connect(process)
        if not process.ended:  # else `_lost` was told meanwhile, and another is on its way
            self._ready.set()

    def _lost(self, how: str) -> None:
        self._ready.clear()
        log.warning("the scoring process ended on its own (%s); another takes its place", how)
        self.add_future(self._replace())

    async def _replace(self) -> None:
        try:
            await self._take(await self._another())
        except Exception as error:  # noqa: BLE001  # whatever it is, nothing can be scored any more
            self.failed(error)

    @Service.task  # type: ignore[untyped-decorator]
    async def _watch(self) -> None:
        while not self.should_stop:
            await self.sleep(_LOOK_EVERY_S)
            if self._ready.is_set():
                self._kill_if_silent(self._process, self._silent_s)

    def _kill_if_silent(self, process: ScoringProcess, limit_s: float) -> None:
        process.silence_s += _LOOK_EVERY_S
        if process.busy and process.silence_s > limit_s:
            log.warning("the scoring process has said nothing for %g s: a scorer holds it; it is ended", limit_s)
            process.kill()

    # Those that it may have died of

    async def _try_suspects(self) -> None:
        try:
            while self._suspects:
                raw, known, answer = self._suspects.popleft()
                if answer.done():  # nobody waits any more
                    continue
                if self._attempts.of(raw) + 1 >= STARTS:
                    answer.set_exception(Unscorable("poison", _POISON))
                    self._attempts.forget(raw)
                    continue
                if self._ward is None:
                    ward = await self._another()
                    await self._connect(ward)
                    self._ward = ward
                self._attempts.save()  # before it can bring the worker down, too
                found = await self._alone(self._ward, raw, known)
                if isinstance(found, ScoringProcessDied):
                    self._ward = None
                    self._attempts.add(raw)
                    self._suspects.appendleft((raw, known, answer))
                    continue
                self._attempts.forget(raw)
                if answer.done():
                    continue
                if isinstance(found, Unscorable):
                    answer.set_exception(found)
                else:
                    answer.set_result(found)
        except Exception as error:  # noqa: BLE001  # no process can be had
            self.failed(error)
        finally:
            self._trial = None
            self._attempts.save()
            if self._ward is not None:
                self._ward.close()
                self._ward = None

    async def _alone(
        self, ward: ScoringProcess, raw: bytes, known: Sequence[JudgeVerdict]
    ) -> Scored | Unscorable | ScoringProcessDied:
        answer = ward.ask(raw, known)
        while not answer.done():
            await asyncio.wait({answer}, timeout=_LOOK_EVERY_S)
            self._kill_if_silent(ward, self._silent_s)
        try:
            return answer.result()
        except (Unscorable, ScoringProcessDied) as why:
            return why


_DEATHS = TypeAdapter(dict[str, int])


def _name(raw: bytes) -> str:
    return blake2b(raw, digest_size=16).hexdigest()
