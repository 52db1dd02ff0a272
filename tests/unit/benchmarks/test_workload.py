"""What the load of the benchmarks contains."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
from benchmarks.workload import RECORDS_A_SESSION, record


def test_each_call_of_a_session_has_a_result() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    events = [orjson.loads(record("session-1", number, at)[1]) for number in range(RECORDS_A_SESSION)]

    called, returned = (
        [event["call_id"] for event in events if event.get("type") == kind] for kind in ("tool.called", "tool.returned")
    )
    assert called == returned == ["c1", "c2", "c3"]
