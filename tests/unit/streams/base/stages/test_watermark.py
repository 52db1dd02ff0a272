"""The watermark of a partition survives a restart."""

from __future__ import annotations

import orjson
import pytest

from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.stages.watermark import MARKS_ROW, Watermark
from traceweir.streams.base.topics import StageName
from traceweir.streams.testing import START_S, Flow
from traceweir.streams.tools.testing.memory import Message


def test_a_watermark_that_has_seen_no_input_is_restored() -> None:
    first = Watermark()
    first.advance(1_000.0, {})
    second = Watermark()
    second.load({key: value or b"" for key, value in first.rows()})

    second.advance(1_001.0, {"topic": 0.0})

    assert second.at == first.at == 1_000_000


def test_a_restored_watermark_never_goes_back() -> None:
    first = Watermark()
    first.high["topic"] = 900_000
    first.advance(1_000.0, {})
    second = Watermark()
    second.load({key: value or b"" for key, value in first.rows()})

    second.advance(1_001.0, {"topic": 0.0})

    assert second.at == first.at == 1_000_000
    assert second.high == {"topic": 900_000}


@pytest.mark.parametrize("name", ["collect", "assemble"])
async def test_a_rejected_record_from_the_near_future_does_not_move_its_input(name: StageName) -> None:
    flow = Flow(stages=(name,))
    stage = flow.lanes[0].stages[name]
    topic = flow.topics.otlp_spans if name == "collect" else flow.topics.traces
    now = round(START_S * 1000)
    for offset, timestamp in enumerate((now - 1, now + 1)):
        stage.reject(topic, Message(topic, 0, offset, timestamp, None, b"x", []), RecordRejected("poison", "raised"))

    rows = dict(stage.cut().rows)

    assert orjson.loads(rows[MARKS_ROW] or b"")["high"] == {topic: now - 1}
