"""Tests that the stages which read topics of users treat an added partition as one of its topic, with its own offset."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from traceweir.schemas.dead_letter import ORIGIN, DeadLetter
from traceweir.scorers import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Cut, Stage
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import StageName, Topics
from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.pipeline.topology import Resources, Topology
from traceweir.streams.testing import Message, trace

TOPICS = Topics.of()
NOW_S = 1_767_225_600.0
PARTITIONS, HERE, ADDED = 4, 1, 9


def new_stage(name: StageName) -> Stage:
    topology = Topology.of(Settings(partitions=PARTITIONS), read_plan(None), Resources(utc_now, scoring=None))
    return topology.spec(name).new(HERE, lambda key: None, lambda: None)


def assemble() -> Stage:
    return new_stage("assemble")


def collect() -> Stage:
    return new_stage("collect")


def started(new: Callable[[], Stage]) -> Stage:
    stage = new()
    stage.load({})
    stage.tick(NOW_S, {})
    stage.cut()
    return stage


def message(topic: str, value: bytes) -> Message:
    return Message(topic, ADDED, 17, int(NOW_S * 1000), b"key", value)


def only_letter(cut: Cut) -> tuple[int, DeadLetter]:
    (output,) = cut.outputs
    return output.partition, DeadLetter.read(output.key, output.value, output.headers)


@pytest.mark.parametrize(
    ("new", "topic"), [(assemble, TOPICS.traces), (assemble, TOPICS.invocations), (collect, TOPICS.otlp_logs)]
)
@pytest.mark.parametrize("refused", [False, True])
def test_a_dead_letter_names_the_added_partition_and_lies_on_that_of_its_worker(
    new: Callable[[], Stage], topic: str, refused: bool
) -> None:
    stage, record, source = started(new), message(topic, b"no JSON"), f"{topic}/{ADDED}"
    if refused:
        stage.reject(source, record, RecordRejected("poison", "why"))
    else:
        stage.apply(source, [record])

    cut = stage.cut()

    partition, letter = only_letter(cut)
    assert (partition, letter.topic, letter.partition, letter.offset) == (HERE, topic, ADDED, 17)
    assert cut.offsets == {source: 18}


def test_a_trace_on_an_added_partition_is_forwarded_as_a_trace() -> None:
    stage = started(assemble)
    away = next(f"s{number}" for number in range(9) if partition_of(b"s%d" % number, PARTITIONS) != HERE)
    stage.apply(f"{TOPICS.traces}/{ADDED}", [message(TOPICS.traces, orjson.dumps(trace(1, away)))])
    (stray,) = stage.cut().outputs
    assert (stray.topic, dict(stray.headers)[ORIGIN]) == (TOPICS.strays, TOPICS.traces.encode())


def test_the_watermark_waits_for_an_added_partition_that_is_behind() -> None:
    stage = assemble()
    assert isinstance(stage, AssembleStage)
    stage.load({})
    source = f"{TOPICS.traces}/{ADDED}"
    stage.tick(NOW_S, {source: NOW_S - 50})
    assert stage.watermark_ms == (NOW_S - 50) * 1000
