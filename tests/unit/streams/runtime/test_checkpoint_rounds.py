"""Tests which partitions a checkpoint contains, and what happens to the others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from unittest.mock import AsyncMock

import pytest
from aiokafka import TopicPartition
from faust.types import TP
from tests.unit.streams.runtime.test_checkpoint import app_of, owning, turns
from tests.unit.streams.runtime.test_lane import Listing, records
from tests.unit.streams.runtime.test_stage_failures import Kept

from traceweir.streams.kafka.faust_adapter import Table
from traceweir.streams.runtime.checkpoint import Checkpoints
from traceweir.streams.runtime.delivery import RowsByPlace
from traceweir.streams.runtime.lane import OFFSETS, Lane
from traceweir.streams.stages.base import Cut, Output, StageSpec


class Breaking(Listing):
    """A stage that cannot tell its changes."""

    def cut(self) -> Cut:
        if self.applied:
            raise KeyError("nobody expected this")
        return super().cut()


async def three(
    monkeypatch: pytest.MonkeyPatch, kinds: Sequence[type[Listing]] = (Listing, Listing, Listing)
) -> tuple[Checkpoints, dict[int, Lane], Kept]:
    """Returns checkpoints of three partitions, each with a stage of its kind, and what they send."""
    delivery = Kept()
    spec = StageSpec("one", ("a",), (), lambda partition, read, changed: kinds[partition]())
    app = app_of()
    app.crash = AsyncMock()
    checkpoints, lanes = await owning(app, delivery, monkeypatch, spec, partitions=3)
    return checkpoints, lanes, delivery


def offsets(sent: RowsByPlace) -> dict[int, int]:
    """Returns the offset of the input by partition."""
    return {place.partition: json.loads(dict(rows)[OFFSETS] or b"")["a"] for place, rows in sent.items()}


async def test_partitions_that_are_due_at_the_same_time_have_one_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch)
    for number in (0, 2):
        await checkpoints.take(TP("a", number), records("a", *range(1, 2 + number)))
    await turns()
    assert [offsets(sent) for sent in delivery.sent] == [{0: 1, 2: 3}]
    assert checkpoints.lanes == lanes


async def test_each_partition_gets_its_own_rows_with_its_own_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, _, delivery = await three(monkeypatch)
    written: dict[int, int] = {}
    monkeypatch.setattr(Table, "write", lambda self, partition, rows, offset: written.update({partition: offset}))

    async def send(rows: RowsByPlace, *others: object) -> Mapping[TopicPartition, int]:
        return {place: 100 + place.partition for place in rows}

    monkeypatch.setattr(delivery, "send", send)
    for number in (0, 1):
        await checkpoints.take(TP("a", number), records("a", 1))
    await turns()
    assert written == {0: 100, 1: 101}


async def test_a_partition_whose_stage_raises_is_left_out_and_the_others_are_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch, (Listing, Breaking, Listing))
    counted: list[Mapping[str, int]] = []

    def note(counts: Mapping[str, int], outputs: Sequence[Output]) -> None:
        counted.append(counts)

    checkpoints.rounds.committed = (note,)
    for number in lanes:
        await checkpoints.take(TP("a", number), records("a", 1))
    await turns()
    assert offsets(delivery.sent[0]) == {0: 1, 2: 1}
    assert counted == [{"read.a": 1}] * 2
    assert (lanes[1].dead, checkpoints.lanes[1].dead) == (True, False)
    assert checkpoints.problems == []


async def test_a_last_checkpoint_names_the_partition_that_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch, (Listing, Breaking, Listing))
    for number in lanes:
        await checkpoints.take(TP("a", number), records("a", 1))
    await checkpoints.revoke()
    assert offsets(delivery.sent[0]) == {0: 1, 2: 1}
    assert checkpoints.rounds.not_committed == [1]
    assert checkpoints.lanes == {}
