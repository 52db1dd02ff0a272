"""What an exporter writes without transactions has an order, so that a failure loses no score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from aiokafka.errors import (
    CommitFailedError,
    CoordinatorNotAvailableError,
    InvalidTransactionTimeout,
    KafkaError,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersionError,
)

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.tools.export.checkpoints import Connect, ExportTransactions
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.runtime.delivery import NoTransactionsError, PlainSends

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


def connecting_to(*sends: object) -> Connect:
    taken = iter(sends)

    async def connect(*arguments: object) -> PlainSends:
        return cast("PlainSends", next(taken))

    return connect


async def opened(*sends: Sends) -> ExportTransactions:
    """Returns checkpoints on a broker without transactions, which take one of the senders after another."""
    checkpoints = ExportTransactions(Settings(), "hook", connect=connecting_to(*sends))
    await checkpoints.open()
    return checkpoints


async def test_a_waiting_score_is_not_removed_if_its_dead_letter_is_not_written() -> None:
    sends = Sends(refuses=True)
    checkpoints = await opened(sends)
    with pytest.raises(KafkaError):
        await checkpoints.write(None, [TOMBSTONE, LETTER], {})
    assert sends.sent == []


async def test_the_dead_letter_is_written_before_the_tombstone() -> None:
    sends = Sends(refuses=False)
    checkpoints = await opened(sends)
    await checkpoints.write(None, [TOMBSTONE, LETTER], {})
    assert sends.sent == [LETTER, TOMBSTONE]


async def test_a_connection_that_is_cancelled_after_a_failure_is_made_again_by_the_next_write() -> None:
    class Hanging(Sends):
        starts = asyncio.Event()

        async def start(self) -> None:
            self.starts.set()
            await asyncio.Event().wait()

    hanging, last = Hanging(refuses=False), Sends(refuses=False)
    checkpoints = await opened(Sends(refuses=True), hanging, last)
    with pytest.raises(KafkaError):
        await checkpoints.write(None, [LETTER], {})
    cancelled = asyncio.create_task(checkpoints.write(None, [LETTER], {}))
    await hanging.starts.wait()
    cancelled.cancel()
    await asyncio.wait({cancelled})
    await checkpoints.write(None, [LETTER], {})
    assert (hanging.sent, last.sent) == ([], [LETTER])


@pytest.mark.parametrize("times", [1, 2])
async def test_a_connection_that_is_cancelled_after_partitions_have_moved_is_made_again_by_the_next_write(
    times: int,
) -> None:
    """Also if the cancelled one has not begun to connect."""
    asks = asyncio.Event()
    asked: list[int] = []

    class Moved(Sends):
        async def send(self, rows: Mapping[Any, Any], outputs: Sequence[Output], offsets: Mapping[Any, int]) -> None:
            raise CommitFailedError

    last = Sends(refuses=False)

    async def connect(*arguments: object) -> PlainSends:
        asked.append(1)
        if 1 < len(asked) <= 1 + times:
            asks.set()
            await asyncio.Event().wait()
        return cast("PlainSends", Moved(refuses=False) if len(asked) == 1 else last)

    checkpoints = ExportTransactions(Settings(), "hook", connect=connect)
    await checkpoints.open()
    for _ in range(times):
        asks.clear()
        cancelled = asyncio.create_task(checkpoints.write(None, [LETTER], {}))
        await asks.wait()
        cancelled.cancel()
        await asyncio.wait({cancelled})
    await checkpoints.write(None, [LETTER], {})
    assert last.sent == [LETTER]


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
    cause: Exception, expected: type[Exception]
) -> None:
    class Refused:
        async def start(self) -> None:
            raise NoTransactionsError("no coordinator answered") from cause

    checkpoints = ExportTransactions(Settings(), "hook", connect=connecting_to(Refused()))
    with pytest.raises(expected):
        await checkpoints.open()
