"""Keeps the scoring processes that a supervisor starts, so that a test can inspect and kill them."""

from __future__ import annotations

import asyncio

from traceweir.streams.scoring.isolation.process import ScoringProcess
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.judges.budget import Paid, Share


class Started(list[ScoringProcess]):
    """Starts processes of a kind, and lists them in the order in which they started."""

    def __init__(self, kind: type[ScoringProcess] = ScoringProcess) -> None:
        super().__init__()
        self._kind = kind

    def __call__(self, setup: Setup) -> ScoringProcess:
        self.append(self._kind(setup))
        return self[-1]


class Paying(ScoringProcess):
    """Reports its process id as the tokens paid per answer, and lists the spending that it receives of others."""

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


class Told(ScoringProcess):
    """Lists what it is told of spending, references and the share of the budget."""

    def __init__(self, setup: Setup) -> None:
        self.spending: list[Paid] = []
        self.references: dict[str, bytes | None] = {}
        self.share = Share()
        super().__init__(setup)

    def record_spend(self, paid: Paid) -> None:
        self.spending.append(paid)
        super().record_spend(paid)

    def update_reference(self, reference_id: str, reference: bytes | None) -> None:
        self.references[reference_id] = reference
        super().update_reference(reference_id, reference)

    def set_budget_share(self, share: Share) -> None:
        self.share = share
        super().set_budget_share(share)


async def until_ended(process: ScoringProcess) -> None:
    """Waits until the supervisor has detected the end of the process."""
    while not process.ended:  # noqa: ASYNC110  # The end of another process sets no event.
        await asyncio.sleep(0.01)
