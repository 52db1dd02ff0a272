"""What an exporter writes without transactions has an order, so that a failure loses no score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aiokafka.errors import (
    CoordinatorNotAvailableError,
    InvalidTransactionTimeout,
    KafkaError,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersionError,
)

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.tools.export.checkpoints import ExportTransactions
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.runtime.delivery import NoTransactionsError

LETTER = Output("dead-letters", 0, b"s", b"letter")
TOMBSTONE = Output("export-waiting", 0, b"hook@1@2", None)


class Sends:
    """Keeps what is sent, and refuses dead letters if it is told to."""

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses
        self.sent: list[Output] = []

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, rows: Mapping[Any, Any], outputs: Sequence[Output], offsets: Mapping[Any, int]) -> None:
        # Topics are written at the same time: one can fail, and the other is written.
        self.sent += [each for each in outputs if each != LETTER or not self.refuses]
        if self.refuses and LETTER in outputs:
            raise KafkaError("not written")


async def opened(monkeypatch: pytest.MonkeyPatch, sends: Sends) -> ExportTransactions:
    module = "traceweir.streams.tools.export.checkpoints"
    monkeypatch.setattr(f"{module}.reach", lambda _: None)
    monkeypatch.setattr(f"{module}.is_embedded", lambda _: True)
    monkeypatch.setattr(f"{module}.usable_transactions", lambda *_, **__: False)
    monkeypatch.setattr(f"{module}.PlainSends", lambda _: sends)
    checkpoints = ExportTransactions(Settings(), "hook")
    await checkpoints.open()
    return checkpoints


async def test_a_waiting_score_is_not_removed_if_its_dead_letter_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sends = Sends(refuses=True)
    checkpoints = await opened(monkeypatch, sends)
    with pytest.raises(KafkaError):
        await checkpoints.write(None, [TOMBSTONE, LETTER], {})
    assert sends.sent == []


async def test_the_dead_letter_is_written_before_the_tombstone(monkeypatch: pytest.MonkeyPatch) -> None:
    sends = Sends(refuses=False)
    checkpoints = await opened(monkeypatch, sends)
    await checkpoints.write(None, [TOMBSTONE, LETTER], {})
    assert sends.sent == [LETTER, TOMBSTONE]


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (InvalidTransactionTimeout(), ExportError),
        (UnsupportedVersionError(), ExportError),
        (TransactionalIdAuthorizationFailed(), ExportError),
        (CoordinatorNotAvailableError(), KafkaUnreachableError),
        (TimeoutError(), KafkaUnreachableError),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else type(each).__name__,
)
async def test_an_outage_of_the_coordinator_passes_and_a_refusal_does_not(
    cause: Exception, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused:
        async def start(self) -> None:
            raise NoTransactionsError("no coordinator answered") from cause

    module = "traceweir.streams.tools.export.checkpoints"
    monkeypatch.setattr(f"{module}.reach", lambda _: None)
    monkeypatch.setattr(f"{module}.is_embedded", lambda _: False)
    monkeypatch.setattr(f"{module}.usable_transactions", lambda *_, **__: True)
    monkeypatch.setattr(f"{module}.Transaction", lambda *_, **__: Refused())
    with pytest.raises(expected):
        await ExportTransactions(Settings(), "hook").open()
