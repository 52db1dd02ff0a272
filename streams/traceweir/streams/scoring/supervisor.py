"""Scoring apart from the worker: what a session does to its scoring process, it does to itself alone.

When the process dies or stops answering, another takes its place at once. The sessions that it was at are tried one at a time, in a
process for them alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mode import Service

from traceweir.schemas.reference import Reference
from traceweir.streams.judges.budget import Paid, Share, Spending
from traceweir.streams.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.process import LOOK_EVERY_S, NotStarted, ScoringProcess, ScoringProcessDiedError
from traceweir.streams.scoring.protocol import Setup
from traceweir.streams.scoring.quarantine import Attempts, Quarantine
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.stages.errors import SessionRejected

log = logging.getLogger(__name__)

SILENT_S = 10.0
"""How long a process may be silent that has been asked for something. It speaks every second, unless a scorer keeps it from it."""
TRIES = 3
"""How often a process is started that does not come to be ready: it may have been frozen or killed by whoever harmed the one before."""


class ScoringSupervisor(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Scores sessions in a process of its own, and starts another when it dies.

    Args:
        setup: What the process has to know.
        attempts: Where attempts are kept.
        silent_s: Seconds of silence after which a process counts as stuck.

    Raises:
        EmbedderUnavailableError: the embedder cannot be loaded.
        JudgeUnavailableError: what asks judges is not installed.
        ScoringProcessDiedError: the process does not start.
    """

    def __init__(self, setup: Setup, attempts: Path, *, silent_s: float = SILENT_S, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._setup, self._attempts, self._silent_s = setup, Attempts(attempts), silent_s
        self._process = ScoringProcess(setup)
        self.embedder_id = self._process.embedder_id
        self._ready = asyncio.Event()
        self._learned: dict[str, bytes] = {}
        self._spending, self._share = Spending(), Share()
        self._asked: dict[tuple[bytes, int], asyncio.Future[ScoringResult]] = {}
        self._trial = Quarantine(self._attempts, self._start_quarantine_process, self._fail, silent_s)
        self._starting: set[asyncio.Task[ScoringProcess]] = set()
        self.failed: Callable[[BaseException], object] = lambda error: None
        """Called when no process can be had any more."""

    def _fail(self, error: BaseException) -> None:
        self.failed(error)  # which is set later

    async def on_start(self) -> None:
        """Connect with the process."""
        await self._take(self._process)

    async def on_stop(self) -> None:
        """End every process, whatever it is at."""
        self._trial.stop()
        if self._starting:
            await asyncio.wait(self._starting)
        for start in self._starting:
            if start.exception() is None:
                start.result().close()
        self._process.close()

    async def __call__(self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> ScoringResult:
        """Score a session, of which these verdicts are known, under an attempt number.

        It waits for ever once no process can be had any more, which `failed` is told.

        Raises:
            Unscorable: nothing can come of it.
        """
        # After a rebalance the same session may still be at work for the former owner of its partition, in this very process. Two of
        # them would count each death of the process twice, and begin to count anew once the first is poison.
        while (same := self._asked.get((raw, attempt))) is not None:
            await asyncio.wait({same})
            if not same.cancelled():
                return same.result()
        ended = self._asked[raw, attempt] = asyncio.get_running_loop().create_future()
        try:
            scored = await self._scored(raw, known, attempt)
        except SessionRejected as why:
            ended.set_exception(why)
            ended.exception()  # it is told to whoever waits, and nobody may
            raise
        else:
            ended.set_result(scored)
        finally:
            del self._asked[raw, attempt]
            if not ended.done():
                ended.cancel()
        return scored

    async def _scored(self, raw: bytes, known: Sequence[JudgeVerdict], attempt: int) -> ScoringResult:
        while not self._attempts.of(raw):
            await self._ready.wait()
            try:
                return await self._process.ask(raw, known, attempt)
            except NotStarted:
                pass
            except ScoringProcessDiedError:
                self._attempts.add(raw)
        return await self._trial(raw, known, attempt)

    # References

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Take a reference, or with None take it away."""
        self._learned.pop(reference_id, None)
        if reference is not None:
            self._learned[reference_id] = reference.model_dump_json(by_alias=True, exclude_unset=True).encode()
        for process in self._connected():
            process.update_reference(reference_id, self._learned.get(reference_id))

    # What judges cost

    def record_spend(self, paid: Paid) -> None:
        """Count what was paid by sessions of a partition that this worker has taken over, or (less than 0) that it has given up."""
        self._spending.add(paid)
        for process in self._connected():
            process.record_spend(paid)

    def set_budget_share(self, share: Share) -> None:
        """From now on so much of what judging may cost is this worker's."""
        self._share = share
        for process in self._connected():
            process.set_budget_share(share)

    def _note(self, by: ScoringProcess, paid: Sequence[Paid]) -> None:
        """Tell every process but the one that paid, and all that come after."""
        for each in paid:
            self._spending.add(each)
            for process in self._connected():
                if process is not by:
                    process.record_spend(each)

    def _connected(self) -> list[ScoringProcess]:
        processes = (self._process if self._ready.is_set() else None, self._trial.quarantine_process)
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
            if not (more and isinstance(error, ScoringProcessDiedError)):
                break
            log.warning("%s; it is started again", error)
        return start.result()

    async def _connect(self, process: ScoringProcess) -> None:
        process.paid = partial(self._note, process)
        await process.connect()
        for reference_id, reference in self._learned.items():
            process.update_reference(reference_id, reference)
        process.set_budget_share(self._share)
        for paid in self._spending.entries():
            process.record_spend(paid)

    async def _start_quarantine_process(self) -> ScoringProcess:
        quarantine_process = await self._another()
        await self._connect(quarantine_process)
        return quarantine_process

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
            await self.sleep(LOOK_EVERY_S)
            if self._ready.is_set():
                self._process.kill_if_silent(self._silent_s)
