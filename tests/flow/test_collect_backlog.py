"""Collect: after an outage the traces wait for spans that another partition forwards late."""

from __future__ import annotations

import pytest
from tests.support.collect import TOPICS, agent_trace, collect_only, complete, offline, published, request, trace_id

from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.testing import START_S

OUTAGE_S = 140


@pytest.mark.parametrize("strays_after_s", [1, 12])
async def test_after_an_outage_a_trace_waits_for_a_tenth_of_the_outage(strays_after_s: int) -> None:
    flow = collect_only(partitions=2)
    home = partition_of(trace_id(1), 2)
    for partition in (0, 1):  # both partitions have a watermark from before
        flow.send(TOPICS.otlp_spans, request(*agent_trace(7 + partition)), partition=partition, at=0)
    await complete(flow)
    before = len(published(flow))
    *inner, root = agent_trace(1)
    now = flow.now - START_S
    flow.send(TOPICS.otlp_spans, request(root), partition=home, at=now)
    flow.send(TOPICS.otlp_spans, request(*inner), partition=1 - home, at=now)
    flow.pass_time(OUTAGE_S)
    for partition in (0, 1):
        flow.crash(partition)

    await flow.take(TOPICS.otlp_spans, partition=home)
    flow.checkpoint(home)
    flow.pass_time(strays_after_s)
    flow.checkpoint(home)
    assert len(published(flow)) == before
    await complete(flow)

    expected = offline([request(*agent_trace(number)) for number in (1, 7, 8)])
    assert published(flow) == expected
