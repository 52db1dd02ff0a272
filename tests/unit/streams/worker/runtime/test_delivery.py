"""Tests that a transaction reports its first failure, and not the steps that are refused after it."""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import (
    IllegalOperation,
    InvalidProducerIdMapping,
    KafkaError,
    MessageSizeTooLargeError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    OutOfOrderSequenceNumber,
    PolicyViolationError,
    ProducerFenced,
    RecordListTooLargeError,
    UnknownProducerId,
    UnknownTopicOrPartitionError,
)
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from traceweir.streams.base.stages.base import Output
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.worker.runtime import delivery
from traceweir.streams.worker.runtime.batches import MissingPartitionError
from traceweir.streams.worker.runtime.delivery import TRANSACTIONS_ENDED, Transaction
from traceweir.streams.worker.runtime.failure import in_words


class Producer:
    """A producer whose background task has failed, so that every step of its transaction is refused."""

    def __init__(self, failure: BaseException | None, refusal: BaseException, **options: Any) -> None:
        self._refusal, self._end = refusal, asyncio.get_running_loop().create_future()
        if failure is not None:
            self._end.set_exception(failure)
            self._end.exception()  # marks the exception as retrieved
        self.client = SimpleNamespace(
            bootstrap=None, add_topic=lambda topic: None, _request_timeout_ms=40_000, _get_conn=None
        )
        self._txn_manager = SimpleNamespace(
            maybe_add_partition_to_txn=lambda place: None, wait_for_transaction_end=lambda: self._end
        )

    async def begin_transaction(self) -> None:
        if isinstance(self._refusal, AssertionError):
            raise self._refusal

    def create_batch(self) -> object:
        return SimpleNamespace(append=lambda **content: content, size=lambda: 1)

    async def send_batch(self, batch: object, topic: str, *, partition: int) -> object:
        raise self._refusal


REFUSALS = [
    IllegalOperation("Can't send messages while not in transaction"),
    AssertionError("Invalid state transition TransactionState.FATAL_ERROR -> TransactionState.IN_TRANSACTION"),
]


async def send(failure: BaseException | None, refusal: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "AIOKafkaProducer", lambda **options: Producer(failure, refusal, **options))
    await Transaction({}, "application-0").send({}, [Output("results", 0, b"k", b"v")], {})


@pytest.mark.parametrize("refusal", REFUSALS, ids=["send", "begin"])
async def test_a_fenced_producer_is_reported_as_fenced(refusal: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProducerFenced) as raised:
        await send(ProducerFenced(), refusal, monkeypatch)
    assert (in_words(raised.value) or "").startswith("Kafka accepts no more transactions from this worker")


@pytest.mark.parametrize("refusal", REFUSALS, ids=["send", "begin"])
async def test_a_refusal_without_an_earlier_failure_is_reported_as_it_is(
    refusal: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(type(refusal)) as raised:
        await send(None, refusal, monkeypatch)
    assert raised.value is refusal


@pytest.mark.parametrize("cause", [InvalidProducerIdMapping(), UnknownProducerId(), OutOfOrderSequenceNumber()])
async def test_a_forgotten_producer_is_reported_as_such_although_aiokafka_wraps_the_error(
    cause: KafkaError, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped = KafkaError("Unexpected error during batch delivery")
    wrapped.__cause__ = cause
    with pytest.raises(TRANSACTIONS_ENDED) as raised:
        await send(wrapped, wrapped, monkeypatch)
    assert raised.value is cause
    assert (in_words(cause) or "").startswith("Kafka has forgotten the producer of this worker")


async def test_only_errors_after_which_a_worker_takes_a_new_producer_have_no_traceback_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "AIOKafkaProducer", partial(Producer, None, KafkaError()))
    Transaction({}, "application-0")
    log = logging.getLogger("aiokafka.producer.sender")
    for error in (InvalidProducerIdMapping(), KafkaError("another")):
        log.error("Unexpected error in sender routine", exc_info=error)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [error]


class Stopping:
    """A delivery whose `stop` fails, or, without a failure, never ends."""

    def __init__(self, failure: Exception | None) -> None:
        self._failure, self.stopped = failure, False

    async def stop(self) -> None:
        self.stopped = True
        if self._failure is not None:
            raise self._failure
        await asyncio.Event().wait()


@pytest.mark.parametrize("failure", [None, KafkaError("the broker is gone")])
async def test_a_client_that_does_not_end_or_fails_at_its_end_is_given_up(
    failure: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "STOP_WITHIN_S", 0.01)
    stopping: Any = Stopping(failure)
    await delivery.stop_in_time(stopping)
    assert stopping.stopped


class Refusing(Producer):
    """A producer that sends batches, which the broker refuses."""

    async def send_batch(self, batch: object, topic: str, *, partition: int) -> asyncio.Future[object]:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        answer.set_exception(self._refusal)
        return answer


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (MessageSizeTooLargeError(), ", because its max.message.bytes is below that: set it to 1000000 or more"),
        (RecordListTooLargeError(), ", because its segment.bytes is below that: set it to 1000000 or more"),
        (
            NotEnoughReplicasError(),
            ", because fewer replicas are in sync than its min.insync.replicas: start the missing",
        ),
        (
            NotEnoughReplicasAfterAppendError(),
            ", because fewer replicas are in sync than its min.insync.replicas: start",
        ),
        (PolicyViolationError(), " by a policy of the cluster: the brokers' logs name the policy, which must accept"),
    ],
)
async def test_a_refused_batch_is_reported_with_its_topic_and_what_refuses_it(
    refusal: KafkaError, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "AIOKafkaProducer", lambda **options: Refusing(None, refusal, **options))
    with pytest.raises(type(refusal)) as raised:
        await Transaction({}, "application-0").send({}, [Output("acme.results", 0, b"k", b"v")], {})
    sentence = in_words(raised.value) or ""
    assert f"topic 'acme.results' refuses a batch of 1 bytes{words}" in sentence


class Batch:
    """A batch as aiokafka's producers build it."""

    def __init__(self, most_bytes: int, codec: int) -> None:
        self._builder = DefaultRecordBatchBuilder(2, codec, 1, 1, 1, 0, most_bytes)
        self.count = 0

    def append(self, *, timestamp: int | None, **content: Any) -> object:
        added: object = self._builder.append(self.count, timestamp or 2**41, **content)
        self.count += added is not None
        return added

    def size(self) -> int:
        return int(self._builder.size())

    def wire_bytes(self) -> int:
        return len(self._builder.build())


class Taking(Producer):
    """A producer whose topics take every batch; keeps how many records each of them has."""

    def __init__(self, codec: int, sent: list[tuple[str, int, int]], **options: Any) -> None:
        super().__init__(None, IllegalOperation(), **options)
        self._codec, self._sent, self._most = codec, sent, options["max_batch_size"]

    def create_batch(self) -> Batch:
        return Batch(self._most, self._codec)

    async def send_batch(self, batch: object, topic: str, *, partition: int) -> asyncio.Future[object]:
        assert isinstance(batch, Batch)
        self._sent.append((topic, batch.count, batch.wire_bytes()))
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        answer.set_result(SimpleNamespace(offset=0, timestamp_type=0))
        return answer

    async def commit_transaction(self) -> None:
        """Commits."""

    async def begin_transaction(self) -> None:
        """Begins."""


@pytest.mark.slow
@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
async def test_no_batch_is_larger_than_its_topic_accepts(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, int, int]] = []
    monkeypatch.setattr(delivery, "AIOKafkaProducer", partial(Taking, codec, sent))
    limits, rnd = RecordLimits("dead-letters"), random.Random(1)
    limits.learn({"results": 70_000, "dead-letters": 70_000})
    values = [rnd.randbytes(rnd.choice([10, 1_000, 60_000])) for _ in range(200)]
    outputs = [Output(topic, 0, b"k", value) for value in values for topic in ("results", "sessions")]
    outputs.append(Output("dead-letters", 0, None, rnd.randbytes(900_000)))

    await Transaction({}, "application-0", limits=limits).send({}, outputs, {})

    largest = {topic: max(size for each, _, size in sent if each == topic) for topic, _, _ in sent}
    assert largest["results"] <= 70_000 < largest["sessions"] <= 1_000_000
    assert largest["dead-letters"] <= 70_000
    counts = {topic: sum(count for each, count, _ in sent if each == topic) for topic in largest}
    assert counts == {"results": 200, "sessions": 200, "dead-letters": 1}


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (AssertionError("Unrecognized partition"), "the topic results has no partition 0 any more.*topics create"),
        (UnknownTopicOrPartitionError(), "the topic results does not exist any more.*topics create"),
    ],
)
async def test_a_partition_that_does_not_exist_any_more_is_named_with_the_way_out(
    refusal: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shrunk(Producer):
        async def begin_transaction(self) -> None:
            """Begins."""

    monkeypatch.setattr(delivery, "AIOKafkaProducer", lambda **options: Shrunk(None, refusal, **options))
    with pytest.raises(MissingPartitionError, match=words):
        await Transaction({}, "application-0").send({}, [Output("results", 0, b"k", b"v")], {})
