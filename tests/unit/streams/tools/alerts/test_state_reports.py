"""What is known of each stream is read from the rows that count, one at a time, and says why if it cannot be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.support.alert_story import RULE, score

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.alerts import state_reports
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.open_minutes import QUIET_S
from traceweir.streams.tools.alerts.state_reports import read_reports
from traceweir.streams.tools.alerts.state_rows import FORMAT, LogPlace
from traceweir.streams.tools.alerts.state_topic import AlertsError

Rows = list[tuple[bytes, bytes | None]]


class Log:
    """The partition of the state, instead of a reader of Kafka."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.ends = {0: len(rows)}

    async def __aenter__(self) -> Log:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def records(self, begins: Mapping[int, int] | None = None) -> AsyncIterator[Any]:
        for offset in range((begins or {0: 0})[0], len(self.rows)):
            key, value = self.rows[offset]
            yield SimpleNamespace(key=key, value=value, offset=offset)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Rows:
    """The records of the topic, to which tests add."""
    rows: Rows = []
    monkeypatch.setattr(state_reports, "BoundedReader", lambda *given, **more: Log(rows))
    return rows


def watched(topic: Rows) -> AlertWatch:
    """Watches some sessions of two apps, in two writes."""
    watch = AlertWatch()
    watch.put_rule(RULE.id, RULE)
    for number in range(12):
        watch.add(0, number, score(number, 3 * number, passed=True, app_name=("shop", "rail")[number % 2]))
        if number in (7, 11):
            watch.tick(0.0, ())
            watch.tick(2 * QUIET_S, ())
            topic += watch.cut(LogPlace({0: number + 1})).rows
    return watch


async def test_the_reports_are_those_of_the_last_write(topic: Rows) -> None:
    watch = watched(topic)
    # A row that is replaced is not read, whatever it contains.
    topic[next(at for at, (key, _) in enumerate(topic) if key.startswith(b"stream/"))] = (b"stream/r/1", b"?")
    found = await read_reports(Settings())
    assert [each.report for each in found] == watch.reports()["r"]
    assert {each.rule for each in found} == {RULE}
    assert len(found) == 2
    watch.put_rule(RULE.id, None)
    topic += watch.cut(LogPlace()).rows
    assert await read_reports(Settings()) == []


async def test_a_topic_without_a_row_has_no_stream(topic: Rows) -> None:
    assert await read_reports(Settings()) == []
    topic += AlertWatch().cut(LogPlace()).rows
    assert await read_reports(Settings()) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((b"head", msgspec.msgpack.encode({"format": FORMAT + 1})), f"has the format {FORMAT + 1}"),
        ((b"head", b"?"), "the state of the alerts cannot be read"),
        ((b"stream/r/1", b"?"), "the state of the alerts cannot be read"),
    ],
)
async def test_a_state_that_cannot_be_read_says_so(row: tuple[bytes, bytes], message: str, topic: Rows) -> None:
    watched(topic)
    topic.append(row)
    with pytest.raises(AlertsError, match=message):
        await read_reports(Settings())
