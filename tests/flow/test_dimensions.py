"""Scores and candidates say whose work they judge: the same in a worker and offline, with the id of the user hashed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.support.flow import TOPICS

from traceweir.schemas.dimensions import Dimensions, hashed_user_id
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.intake.formats.documents import Document
from traceweir.streams.intake.formats.traceweir_json import wire_record
from traceweir.streams.testing import START_S, Flow, event, trace
from traceweir.streams.tools.offline.score_documents import score_offline

CONFIG: dict[str, Any] = {"criteria": {"response_match_score": 0.5}}
SPAN = {"trace_id": "a" * 32, "span_id": "b" * 16}
SHARED: dict[str, Any] = {"app_name": "rail", "environment": "test", "agent_version": "2", "labels": {"team": "search"}}
EVENTS = [
    event("invocation.started", invocation_id="a", trace_context=SPAN, agent_name="travel", user_id="ada", **SHARED),
    event("model.called", at=1, invocation_id="a", model="large"),
    event("invocation.started", at=2, invocation_id="b", agent_name="billing", sampling_probability=0.5, **SHARED),
]
TOLD = trace("a", metadata={"invocation_id": "a"})
FIRST: dict[str, Any] = {
    **SHARED,
    "agent_name": "travel",
    "model": "large",
    "user_id": hashed_user_id("ada"),
    "trace_context": SPAN,
}
SECOND: dict[str, Any] = {**SHARED, "agent_name": "billing", "sampling_probability": 0.5}
SESSION = {**{name: value for name, value in FIRST.items() if name != "trace_context"}, "agent_name": "billing"}
EXPECTED = {"a": FIRST, "b": SECOND, "s": SESSION, TOLD["id"]: FIRST}


def known(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in Dimensions.model_fields if name in document}


def by_subject(scores: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {score["invocation_id"] or score["trace_id"] or score["session_id"]: known(score) for score in scores}


async def worker(*records: dict[str, Any], **settings: Any) -> Flow:
    flow = Flow(plan=read_plan(CONFIG), **settings)
    for record in records:
        flow.send(TOPICS.traces if "@type" in record else TOPICS.invocations, record)
    await flow.finish()
    return flow


async def test_each_score_has_the_dimensions_of_its_subject() -> None:
    flow = await worker(*EVENTS, TOLD)
    assert by_subject(flow.results()) == EXPECTED
    assert {score["metric"] for score in flow.results() if score["trace_id"]} == {"trace_value", "gate"}
    assert {score["source"] for score in flow.results()} == {"code"}


async def test_offline_scores_have_the_dimensions_of_a_worker() -> None:
    raws = [orjson.dumps(each) for each in (*EVENTS, TOLD)]
    records = [DocumentRecords(Document(number, raw), [wire_record(raw)]) for number, raw in enumerate(raws, start=1)]
    now = datetime.fromtimestamp(START_S, UTC)
    result = await score_offline(
        records, read_plan(CONFIG), None, Settings(), clock=lambda: now, progress=lambda done, total: None
    )
    assert by_subject([orjson.loads(score.wire()) for score in result.scores]) == EXPECTED


@pytest.mark.parametrize(
    ("settings", "user_id"),
    [
        ({}, hashed_user_id("ada")),
        ({"user_id_key": "0123456789abcdef"}, hashed_user_id("ada", b"0123456789abcdef")),
        ({"user_ids": "plain"}, "ada"),
    ],
)
async def test_the_settings_choose_the_form_of_a_user_id(settings: dict[str, str], user_id: str) -> None:
    flow = await worker(*EVENTS, TOLD, **settings)
    made = [
        orjson.loads(each.value or b"") for topic in (TOPICS.results, TOPICS.candidates) for each in flow.read(topic)
    ]
    assert {document.get("user_id") for document in made} == {user_id, None}


async def test_scores_without_dimensions_have_no_keys_for_them() -> None:
    flow = await worker(event("invocation.started", user_id="", app_name=""), event("session.ended", at=1))
    assert [known(score) for score in flow.results()] == [{}] * len(flow.results())


async def test_a_late_event_that_only_changes_dimensions_changes_those_of_the_decision() -> None:
    flow = await worker(*EVENTS, TOLD)
    late = event("model.called", at=3, invocation_id="a", agent_version="3")
    flow.send(TOPICS.invocations, late, at=1)
    await flow.finish()

    revised = [score for score in flow.results() if score["revision"] == 1]
    assert {score["agent_version"] for score in revised} == {"2", "3"}
    decisions = [(each["revision"], each["agent_version"], each["value"]) for each in flow.results("gate")]
    assert decisions == [(0, "2", 1.0), (1, "3", 1.0)]
    assert [message.key for message in flow.read(TOPICS.network)] == [b"kp:trace:a"] * 2
