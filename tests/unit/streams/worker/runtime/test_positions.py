"""Tests where an input is read on after a takeover, and what is said of it."""

from __future__ import annotations

import json

import pytest
from tests.unit.streams.worker.runtime.test_lane import Listing, records

from traceweir.streams.base.stages.base import Cut, StageSpec
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.worker.runtime.checkpoint_rows import INPUTS_ROW, OFFSETS
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.positions import InputLogs, OtherClusterError, start_of
from traceweir.streams.worker.runtime.row_formats import FORMAT, FORMAT_ROW


@pytest.mark.parametrize(
    ("stored", "stored_id", "begin", "end", "offset", "missed", "is_new_log"),
    [
        (None, None, 3, 9, 3, 0, False),
        (5, "c/1", 3, 9, 5, 0, False),
        (9, "c/1", 3, 9, 9, 0, False),
        (3, None, 3, 9, 3, 0, False),
        pytest.param(2, "c/1", 3, 9, 3, 0, False, id="the marker of a transaction"),
        pytest.param(1, "c/1", 3, 9, 3, 2, False, id="retention"),
        pytest.param(5, "c/0", 0, 9, 0, 0, True, id="the new log is longer"),
        pytest.param(5, "c/0", 0, 2, 0, 0, True, id="the new log is shorter"),
        pytest.param(12, None, 0, 9, 0, 0, True, id="an earlier version stored no id"),
        pytest.param(12, "c/1", 0, 9, 9, 0, True, id="the log has lost records"),
    ],
)
def test_where_to_read_on(
    stored: int | None, stored_id: str | None, begin: int, end: int, offset: int, missed: int, is_new_log: bool
) -> None:
    start = start_of("traces/0", stored, stored_id, begin, end, "c/1")
    assert (start.offset, start.missed, start.is_new_log) == (offset, missed, is_new_log)
    assert (start.problem is None) == (not missed and not is_new_log)


@pytest.mark.parametrize(("stored_id", "log_id"), [(None, "c/1"), ("c/1", None), (None, None)])
@pytest.mark.parametrize(("stored", "offset", "is_new_log"), [(5, 5, False), (12, 0, True)])
def test_without_an_id_only_the_end_tells_a_new_log(
    stored_id: str | None, log_id: str | None, stored: int, offset: int, is_new_log: bool
) -> None:
    start = start_of("traces/0", stored, stored_id, 0, 9, log_id)
    assert (start.offset, start.is_new_log) == (offset, is_new_log)


def test_the_offsets_of_another_cluster_are_refused() -> None:
    with pytest.raises(OtherClusterError, match="belongs to another cluster \\(b; this one is c\\)"):
        start_of("traces/0", 5, "b/1", 0, 9, "c/1")


class Counting(Listing):
    """A stage with counters, which are rows."""

    def __init__(self) -> None:
        super().__init__()
        self.counters = Counters()

    def load(self, rows: object) -> None:
        """Loads nothing."""

    def cut(self) -> Cut:
        cut = super().cut()
        return cut._replace(rows=[*cut.rows, *self.counters.rows()])


class Rows:
    """The rows of one partition."""

    changelog = "changelog"

    def __init__(self, **offsets: int) -> None:
        self.found: dict[bytes, bytes | None] = {
            FORMAT_ROW: b"%d" % FORMAT,
            OFFSETS: json.dumps(offsets).encode(),
        }

    def rows(self, partition: int) -> dict[bytes, bytes | None]:
        return self.found

    def read(self, partition: int, key: bytes) -> bytes | None:
        return self.found.get(key)


def lane_of(rows: Rows, logs: InputLogs | None, begin: int = 0) -> Lane:
    spec = StageSpec("one", ("a",), (), lambda partition, read, changed: Counting())
    return Lane(0, [spec], rows, {"a": begin}, 100.0, logs=logs)  # type: ignore[arg-type]


def cut(lane: Lane, rows: Rows) -> None:
    """Commits a checkpoint of the lane."""
    rows.found.update(lane.cut().rows)


async def test_offsets_are_stored_with_the_id_of_their_log_and_a_new_log_is_read_from_its_beginning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = Rows()
    lane = lane_of(rows, InputLogs({"a": "c/1"}, {"a": 1}))
    await lane.take("a", records("a", 1))
    cut(lane, rows)
    assert (rows.found[OFFSETS], rows.found[INPUTS_ROW]) == (b'{"a":1}', b'{"a":"c/1"}')

    again = lane_of(rows, InputLogs({"a": "c/2"}, {"a": 7}))
    assert again.position == {"a": 0}
    assert "a/0 was deleted and created again" in caplog.text
    caplog.clear()
    cut(again, rows)
    assert (rows.found[OFFSETS], rows.found[INPUTS_ROW]) == (b'{"a":0}', b'{"a":"c/2"}')

    assert lane_of(rows, InputLogs({"a": "c/2"}, {"a": 7})).position == {"a": 0}
    assert caplog.text == ""


def test_records_that_retention_has_deleted_unread_are_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    rows = Rows(a=10)
    lane = lane_of(rows, InputLogs({"a": "c/1"}, {"a": 90}), begin=50)
    assert lane.position == {"a": 50}
    assert lane.counted.changes()["one.missed"] == 40
    assert "40 offsets of a/0 were never read" in caplog.text
    stage = lane.stages["one"]
    assert isinstance(stage, Counting)
    ((topic, offset, why),) = stage.rejected
    assert (topic, offset) == ("a", 49)
    assert why.startswith("40 offsets of a/0 were never read: retention has deleted the records from 10 to 49.")
    cut(lane, rows)

    again = lane_of(rows, InputLogs({"a": "c/1"}, {"a": 90}), begin=50)
    assert (again.position, again.counted.changes()["one.missed"]) == ({"a": 50}, 0)
