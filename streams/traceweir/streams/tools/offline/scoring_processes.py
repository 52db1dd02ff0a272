"""Scores chunks of sessions in several processes; a session that ends its process is stated, and the others go on.

A process has two chunks at a time, so that it never waits for this process. When a process ends unexpectedly, another
one replaces it, and the sessions that were in flight are scored one at a time in a process of their own. A session
whose process then ends although it has served no other session has proved to be the cause.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from traceweir.scorers.evaluation.plan import ConfigError
from traceweir.streams.scoring.isolation.process import ScoringProcessDiedError
from traceweir.streams.tools.offline.chunk_process import ChunkProcess, ChunkProcessDied
from traceweir.streams.tools.offline.session_chunks import ChunkSession, ProcessSetup, SessionOutputs, Unscored

log = logging.getLogger(__name__)

CHUNKS_A_PROCESS = 2
"""Chunks that a process has at the same time: the one that it scores, and the next."""
_STARTS = 3
"""Starts after which a process that ends before it is ready is given up."""


class ChunkProcesses:
    """Processes that score chunks. They start with the constructor, and take chunks inside `async with`.

    Args:
        setup: What a process needs.
        count: Number of processes.

    Raises:
        ConfigError: the plan or the embedder cannot be sent to a process.
    """

    def __init__(self, setup: ProcessSetup, count: int) -> None:
        self._setup = _sendable(setup)
        self._processes = [ChunkProcess(self._setup) for _ in range(count)]
        self._free: asyncio.Queue[int] = asyncio.Queue()
        self._one_suspect = asyncio.Lock()
        self._replacing = asyncio.Lock()
        self._quarantine: ChunkProcess | None = None

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that take chunks."""
        return [process.pid for process in self._processes]

    @property
    def in_flight(self) -> int:
        """Number of chunks that the processes can have at the same time."""
        return CHUNKS_A_PROCESS * len(self._processes)

    async def __aenter__(self) -> Self:
        for process in self._processes:
            await process.connect()
        for place in [*range(len(self._processes))] * CHUNKS_A_PROCESS:
            self._free.put_nowait(place)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes, even busy ones."""
        for process in (*self._processes, self._quarantine):
            if process is not None:
                process.close()

    async def __call__(self, sessions: Sequence[ChunkSession]) -> list[SessionOutputs]:
        """Returns the outputs of each session.

        Raises:
            ScoringProcessDiedError: no process can be started any more.
        """
        place = await self._free.get()
        process = self._processes[place]
        try:
            return await process.ask(sessions)
        except ChunkProcessDied as died:
            log.warning("a scoring process ended (%s); its sessions are scored again, one at a time", died)
            async with self._replacing:
                # Otherwise the other chunk of the process has replaced it.
                if self._processes[place] is process:
                    # What a scorer started in it ends too.
                    process.close()
                    another = ChunkProcess(self._setup)
                    await another.connect()
                    self._processes[place] = another
        finally:
            self._free.put_nowait(place)
        async with self._one_suspect:
            return [await self._alone(session) for session in sessions]

    async def _alone(self, session: ChunkSession) -> SessionOutputs:
        failed_starts = 0
        while True:
            if self._quarantine is None:
                self._quarantine = ChunkProcess(self._setup)
                await self._quarantine.connect()
            process = self._quarantine
            fresh = self._quarantine.fresh
            try:
                [outputs] = await process.ask([session])
            except ChunkProcessDied as died:
                process.close()
                self._quarantine = None
                if process.ready and fresh:
                    detail = f"the process that scored this session ended ({died}), and had served no other session"
                    return SessionOutputs([], [], [], Unscored("poison", detail))
                failed_starts += not process.ready
                if failed_starts == _STARTS:
                    raise ScoringProcessDiedError(f"a scoring process ended before it was ready ({died})") from None
            else:
                return outputs


def _sendable(setup: ProcessSetup) -> bytes:
    try:
        return pickle.dumps(setup)
    except Exception as error:
        # A scorer of a package can have fields of any type.
        problem = (
            f"the criteria cannot be sent to scoring processes ({error}); a scorer must create clients, locks and the like "
            "at their first use, not in its constructor. Use --jobs 1 meanwhile"
        )
        raise ConfigError([problem]) from error
