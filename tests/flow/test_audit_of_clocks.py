"""The audit knows what must come of a record whose first verdict was due to a wrong clock, and reports anything else."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from tests.audit import clocks, sessions
from tests.audit.committed import CHANGELOG, INPUTS, OUTPUTS, CommittedRecords, Row
from tests.audit.evidence import Evidence
from tests.support.ledger import Ledger, Refused, home

CONFIG: dict[str, Any] = {"criteria": {}, "gate": {}}
TRACE = {"id": "kp:trace:1", "metadata": {"task_domain": "travel"}}
GARBAGE = b"no json"
HOME = home("s")


def row(offset: int, value: object, *headers: tuple[str, bytes], partition: int = HOME) -> Row:
    data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    return Row(partition, offset, b"s", data, list(headers), 0)


def letter(offset: int, value: object, reason: str, of: int, topic: str = "traces") -> Row:
    about = {"topic": topic, "reason": reason, "detail": "why", "partition": f"{HOME}", "offset": f"{of}"}
    return row(offset, value, *((f"traceweir.{name}", text.encode()) for name, text in about.items()))


def session(segment: int, *traces: object) -> Row:
    document = {"session_id": "s", "segment": segment, "revision": 0, "closed_because": "idle"}
    return row(segment, {**document, "events": [], "traces": list(traces)})


def committed(set_backs: int = 0, joined: int = 1, **topics: Iterable[Row]) -> CommittedRecords:
    found = CommittedRecords({name: name for name in (*INPUTS, *OUTPUTS, CHANGELOG)})
    for name, rows in topics.items():
        for each in rows:
            found.keep(name.replace("_", "-"), each)
    for key, about in ((b"assemble/w", {"set_backs": set_backs}), (b"assemble/#", {"joined": joined})):
        found.keep(CHANGELOG, row(0, about)._replace(key=key))
    return found


def ledger(*refused: Refused) -> Ledger:
    found = Ledger(1, refused=[*refused], events={"s": set()}, traces={"kp:trace:1": [TRACE]})
    found.session_of["kp:trace:1"] = "s"
    return found


REPLAY = ("traceweir.replay", b"0:0")
LATE: dict[str, Any] = {"traces": [row(0, TRACE), row(1, TRACE, REPLAY)], "dead_letters": [letter(0, TRACE, "late", 0)]}


def test_a_trace_that_was_late_is_joined_by_its_replay() -> None:
    found = ledger()
    records = committed(**LATE, sessions=[session(0, TRACE)])
    clocks.account(found, records)
    assert found.refused == [Refused("traces", b"s", json.dumps(TRACE).encode(), "late")]
    assert {name: found.sent[name] for name in ("joined", "duplicate", "forwarded")} == {
        "joined": 1,
        "duplicate": 0,
        "forwarded": 0,
    }
    assert not [*sessions.no_record_is_lost(Evidence(found, records, CONFIG, wrong_clocks=True))]


def test_a_trace_that_is_late_and_in_no_session_is_lost() -> None:
    found = ledger()
    records = committed(**LATE)
    clocks.account(found, records)
    lost = sessions.no_record_is_lost(Evidence(found, records, CONFIG, wrong_clocks=True))
    assert [*lost] == ["trace kp:trace:1 is in no session"]


def test_a_record_that_nobody_can_use_is_refused_by_its_time_at_most_once_and_for_its_own_reason_then() -> None:
    found = ledger(Refused("traces", b"s", GARBAGE, "not_json"))
    letters = [letter(0, GARBAGE, "future_timestamp", 0), letter(1, GARBAGE, "not_json", 1)]
    clocks.account(found, committed(traces=[row(0, GARBAGE), row(1, GARBAGE, REPLAY)], dead_letters=letters))
    assert [each.reason for each in found.refused] == ["future_timestamp", "not_json"]


def test_a_letter_by_time_is_a_fault_once_all_clocks_are_right() -> None:
    letters = [letter(0, TRACE, "late", 0), letter(1, TRACE, "late", 1)]
    records = committed(dead_letters=letters)
    assert [*clocks.no_right_clock_refuses_a_record(records, 1)] == [f"traces {HOME}:1 is late: why"]
    assert not [*clocks.no_right_clock_refuses_a_record(records, 2)]


@pytest.mark.parametrize(("segments", "set_backs", "ok"), [((0, 1_000_000), 1, True), ((0, 1_000_000), 0, False)])
def test_a_session_begins_again_only_after_a_watermark_was_set_back(
    segments: tuple[int, ...], set_backs: int, ok: bool
) -> None:
    found = ledger()
    records = committed(
        set_backs, 2, traces=[row(0, TRACE), row(1, TRACE)], sessions=[session(n, TRACE) for n in segments]
    )
    clocks.account(found, records)
    evidence = Evidence(found, records, CONFIG, wrong_clocks=True)
    assert (not [*clocks.a_session_begins_again_only_where_it_was_forgotten(evidence)]) is ok
    assert (found.sent["joined"], found.sent["duplicate"]) == ((2, 0) if ok else (1, 1))
    assert not [*sessions.segments_are_whole(evidence)]


def test_a_record_that_is_twice_in_one_life_of_a_session_is_a_fault() -> None:
    found = ledger()
    records = committed(traces=[row(0, TRACE), row(1, TRACE)], sessions=[session(0, TRACE), session(1, TRACE)])
    clocks.account(found, records)
    (line,) = sessions.no_record_is_doubled_or_made_up(Evidence(found, records, CONFIG, wrong_clocks=True))
    assert line.startswith("session s: 2 times")
