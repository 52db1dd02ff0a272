"""The one builder of records: its ids follow from content, its times rise, and it refuses what no worker would take."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from tests.support.adk import adk_event, adk_session, call, read_as, text
from tests.support.paths import ROOT

from traceweir.streams.intake.formats.adk_session import ADK_SESSION
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.session_records import RecordRules, SessionRecords

RULES = RecordRules(namespace=UUID("5ad3ba59-6c0a-5b5c-9a5e-0d6f7a1f5a11"))
PLACED = RecordRules(namespace=RULES.namespace, repeated_events_differ_by="place")
BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
ASKED: dict[str, Any] = {
    "type": "invocation.started",
    "invocation_id": "i1",
    "user_content": {"role": "user", "parts": [{"text": "Hi"}]},
}
TRACE: dict[str, Any] = {
    "metadata": {
        "framework": "f",
        "task_domain": "d",
        "success": True,
        "quality_score": 0,
        "visibility": "network",
        "privacy_level": "aggregated",
    },
    "task": {"objective": "Hi"},
    "steps": [{"step_id": 0, "type": "thought", "content": "Hello."}],
    "outcome": {"result_summary": "Hello.", "confidence": 1.0},
}
FORMATS = ROOT / "streams" / "traceweir" / "streams" / "intake" / "formats"


def error(what: str) -> InputError:
    return InputError(f"a.json: document 1: {what}")


def session(rules: RecordRules = RULES, start: datetime = BEGAN, **more: Any) -> SessionRecords:
    return SessionRecords("s", rules, start, error, **more)


def written(records: SessionRecords) -> list[dict[str, Any]]:
    return [orjson.loads(each.value) for each in records.records]


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize("rules", [RULES, PLACED], ids=["time", "place"])
def test_the_same_content_has_the_same_ids_and_repeated_events_of_a_session_have_different_ones(
    rules: RecordRules,
) -> None:
    first, again = session(rules), session(rules)
    for each in (first, again):
        each.event(ASKED)
        each.event(ASKED)
    assert first.records == again.records
    assert len({each["event_id"] for each in written(first)}) == 2


def test_a_place_keeps_the_id_of_an_event_whose_file_has_another_time() -> None:
    ids = []
    for rules in (RULES, PLACED):
        for start in (BEGAN, BEGAN + timedelta(days=1)):
            records = session(rules, start)
            records.event(ASKED)
            ids.append(written(records)[0]["event_id"])
    assert (ids[0] != ids[1], ids[2] == ids[3]) == (True, True)


def test_times_rise_by_the_least_interval_where_a_record_has_no_time_or_an_earlier_one() -> None:
    records = session()
    for at in (None, BEGAN + timedelta(seconds=1), BEGAN, None):
        records.event(ASKED, at=at)
    records.trace(TRACE)
    records.event({"type": "session.ended"})
    times = [each.get("occurred_at") or each["metadata"]["created_at"] for each in written(records)]
    assert [(datetime.fromisoformat(time) - BEGAN) / timedelta(milliseconds=1) for time in times] == [
        0,
        1000,
        1001,
        1002,
        1003,
        1004,
    ]


def test_a_trace_has_the_id_and_the_session_that_the_builder_gives() -> None:
    records = session()
    records.trace(TRACE)
    (found,) = written(records)
    assert (found["@type"], found["metadata"]["session_id"], found["id"]) == (
        "ReasoningTrace",
        "s",
        f"kp:trace:{RULES.id_of('trace s')}",
    )
    assert (records.records[0].kind, records.records[0].session_id) == ("trace", "s")


def test_dimensions_are_on_the_first_event_of_each_invocation_only() -> None:
    records = session(dimensions={"model": "m"})
    for name in ("i1", "i1", "i2"):
        records.event(ASKED | {"invocation_id": name})
    records.event({"type": "session.ended"})
    assert [each.get("model") for each in written(records)] == ["m", None, "m", None]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"type": "tool.called", "invocation_id": "i1"}, "does not make a valid tool.called event: "),
        ({"type": "nonsense"}, "does not make a valid nonsense event: "),
        ({}, "does not make a valid None event: "),
        (ASKED | {"user_content": nested(400)}, "cannot be written as JSON: Recursion limit reached"),
    ],
)
def test_an_event_that_no_worker_would_take_is_refused_with_its_document(body: dict[str, Any], said: str) -> None:
    records = session()
    with pytest.raises(InputError, match=rf"^a\.json: document 1: {said}"):
        records.event(body)
    assert records.records == []


def test_a_trace_that_no_worker_would_take_is_refused_with_its_document() -> None:
    with pytest.raises(InputError, match=r"^a\.json: document 1: does not make a valid trace: "):
        session().trace({"metadata": {}})


def test_content_that_json_cannot_represent_gives_no_session_id_but_a_message() -> None:
    with pytest.raises(InputError, match=r"^a\.json: document 1: cannot be written as JSON: "):
        RULES.session_id_of(nested(400), error)


def test_a_session_of_adk_with_arguments_that_are_nested_too_deeply_has_a_message() -> None:
    deep = adk_session(adk_event("user", text("Hi")), adk_event("agent", call("find", where=nested(247))))
    (found,) = read_as(ADK_SESSION, deep)
    assert (found.records, str(found.problem)) == (
        [],
        "adk.json: document 1: cannot be written as JSON: Recursion limit reached",
    )


def test_no_format_makes_a_record_but_through_the_builder() -> None:
    makers = {
        path.stem
        for path in FORMATS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "AgentRecord"
    }
    # Documents of Traceweir's own format are records already.
    assert makers == {"session_records", "traceweir_json"}


@pytest.mark.parametrize(
    ("envelope", "keys"),
    [
        (None, ["session_id"]),
        ({"app_name": "shop"}, ["app_name", "session_id"]),
        ({"type": "", "session_id": "another", "app_name": "shop"}, ["type", "session_id", "app_name"]),
    ],
)
def test_each_event_begins_with_the_envelope_and_has_the_session(
    envelope: dict[str, Any] | None, keys: list[str]
) -> None:
    records = session(envelope=envelope)
    records.event(ASKED)
    (event,) = written(records)
    assert (list(event)[: len(keys)], event["session_id"]) == (keys, "s")
