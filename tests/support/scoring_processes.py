"""The scoring processes that a supervisor starts, kept so that a test can kill them and ask them."""

from __future__ import annotations

import asyncio

from traceweir.streams.judges.budget import Paid
from traceweir.streams.scoring.process import ScoringProcess
from traceweir.streams.scoring.protocol import Setup


class Started(list[ScoringProcess]):
    """Starts processes of a kind, and lists them in the order in which they started."""

    def __init__(self, kind: type[ScoringProcess] = ScoringProcess) -> None:
        super().__init__()
        self._kind = kind

    def __call__(self, setup: Setup) -> ScoringProcess:
        self.append(self._kind(setup))
        return self[-1]


class Paying(ScoringProcess):
    """Reports with each answer that it paid as many tokens as its own id, and lists what it is told that others paid."""

    def __init__(self, setup: Setup) -> None:
        self.told: list[Paid] = []
        super().__init__(setup)

    async def connect(self) -> None:
        report = self.paid
        self.paid = lambda paid: report([Paid(1, self.pid, 0.0)])
        await super().connect()

    def record_spend(self, paid: Paid) -> None:
        self.told.append(paid)
        super().record_spend(paid)


async def until_ended(process: ScoringProcess) -> None:
    """Wait until its supervisor knows that it has ended."""
    while not process.ended:  # noqa: ASYNC110  # of another process
        await asyncio.sleep(0.01)
