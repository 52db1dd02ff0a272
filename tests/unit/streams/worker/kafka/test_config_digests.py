"""The config of each digest is on the topic, or the log says why not; the worker scores either way."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    TopicAuthorizationFailedError,
)
from tests.support.scoring import NOW

from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES, Output
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.records import digest_record
from traceweir.streams.tools.testing.memory import Message
from traceweir.streams.worker.kafka.config_digests import RETRY_AFTER_S, ConfigDigests

BESIDE = read_plan({"criteria": {"response_match_score": 0.8}})
FILE = read_plan(
    {
        "criteria": {"response_match_score": 0.5},
        "challenger": {"name": "v2", "sample": 0.5, "config": BESIDE.document},
    }
)
KEYS = [f"digest:{plan.digest}".encode() for plan in (FILE, BESIDE)]


class World:
    """A topic, and the worker that writes its configs to it: that of its file, and that of the file's challenger."""

    def __init__(self, file: Plan = FILE) -> None:
        self.written: list[bytes | None] = []
        self.attempts: list[bytes | None] = []
        self.errors: dict[bytes, Exception] = {}
        self.now = 1_000.0
        self.log = ConfigLog(lambda _: file)
        self.digests = ConfigDigests(self.log, file, "t.configs", self._write, clock=lambda: self.now)

    async def _write(self, record: Output) -> None:
        assert (record.topic, record.partition) == ("t.configs", 0)
        self.attempts.append(record.key)
        if (error := self.errors.get(record.key or b"")) is not None:
            raise error
        self.written.append(record.key)


async def test_each_config_is_written_once_before_the_worker_scores() -> None:
    world = World()
    await world.digests.on_start()
    await world.digests.look()
    assert world.written == KEYS


async def test_a_record_that_somebody_deletes_is_written_again() -> None:
    world = World()
    await world.digests.on_start()
    for offset, plan in enumerate((FILE, BESIDE)):
        world.log.take(Message("configs", 0, offset, 0, *digest_record(plan, NOW)))
    world.log.take(Message("configs", 0, 2, 0, KEYS[0], None))
    world.now += RETRY_AFTER_S[0]
    await world.digests.look()
    assert world.written == [*KEYS, KEYS[0]]


async def test_a_config_that_the_topic_has_is_not_written() -> None:
    world = World()
    world.log.take(Message("configs", 0, 0, 0, *digest_record(FILE, NOW)))
    await world.digests.look()
    assert world.written == KEYS[1:]


async def test_a_record_of_a_newer_traceweir_is_not_replaced() -> None:
    world = World()
    world.log.take(Message("configs", 0, 0, 0, KEYS[0], b'{"envelope": 2}'))
    await world.digests.look()
    assert world.written == KEYS[1:]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TopicAuthorizationFailedError("configs"), "this user lacks the right Write on t.configs. Grant it"),
        (KafkaTimeoutError(), "no broker has confirmed the record in time (KafkaTimeoutError()); it is tried again"),
        (NotEnoughReplicasError(), "no broker has confirmed the record in time (NotEnoughReplicasError())"),
        (TimeoutError(), "no broker has confirmed the record in time (TimeoutError()); it is tried again"),
        (AssertionError("a bug"), "AssertionError('a bug'); it is tried again"),
        (MessageSizeTooLargeError(), "raise max.message.bytes of t.configs, and start again"),
    ],
)
async def test_a_failed_attempt_is_said_with_the_way_out(
    error: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.errors[KEYS[0]] = error
    with caplog.at_level(logging.WARNING):
        await world.digests.look()
    (sentence,) = caplog.messages
    assert FILE.digest[:12] in sentence
    assert said in sentence


@pytest.mark.parametrize(
    "error", [KafkaTimeoutError(), KafkaConnectionError(), NotEnoughReplicasError(), TimeoutError()]
)
async def test_a_start_waits_for_one_record_only_if_no_broker_answers(error: Exception) -> None:
    world = World()
    world.errors = dict.fromkeys(KEYS, error)
    await world.digests.on_start()
    assert world.attempts == KEYS[:1]


async def test_a_refused_record_does_not_hold_back_the_others() -> None:
    world = World()
    world.errors[KEYS[0]] = MessageSizeTooLargeError()
    await world.digests.look()
    assert world.written == KEYS[1:]
    world.now += max(RETRY_AFTER_S)
    await world.digests.look()
    assert world.attempts.count(KEYS[0]) == 1, "a record that is too large is not tried again"


async def test_attempts_become_rarer_and_a_problem_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World(replace(FILE, challenger=None))
    world.errors[KEYS[0]] = TopicAuthorizationFailedError("configs")
    with caplog.at_level(logging.WARNING):
        await world.digests.look()
        for number, wait_s in enumerate((*RETRY_AFTER_S, RETRY_AFTER_S[-1]), 1):
            world.now += wait_s - 1
            await world.digests.look()
            assert len(world.attempts) == number
            world.now += 1
            await world.digests.look()
            assert len(world.attempts) == number + 1
    assert len(caplog.messages) == 1
    world.errors.clear()
    world.now += RETRY_AFTER_S[-1]
    await world.digests.look()
    assert world.written == KEYS[:1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(chr(0xD800), "surrogates not allowed", id="a lone surrogate"),
        pytest.param("a" * MAX_OUTPUT_BYTES, f"{MAX_OUTPUT_BYTES} is the most", id="too large"),
    ],
)
async def test_a_config_that_cannot_be_a_record_is_said_once(
    text: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(replace(FILE, challenger=None, document={"gate": text}))
    with caplog.at_level(logging.WARNING):
        await world.digests.look()
        await world.digests.look()
    assert world.attempts == []
    (sentence,) = caplog.messages
    assert said in sentence
