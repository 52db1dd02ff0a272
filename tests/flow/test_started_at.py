"""Scores say when their subject began by the agents' clock, the same in a worker, offline and against eval sets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.eval_sets import case, content, eval_set, invocation, write
from tests.support.flow import TOPICS, advance_to
from tests.support.scoring import NOW

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.intake.formats.documents import Document
from traceweir.streams.intake.formats.traceweir_json import wire_record
from traceweir.streams.lab.evals.files import Chosen, read_eval_file
from traceweir.streams.lab.evals.recordings import read_recordings
from traceweir.streams.lab.evals.scoring import ScoredFile, score_files
from traceweir.streams.testing import START_S, Flow, event, instant, trace
from traceweir.streams.tools.offline.score_documents import score_offline

CONFIG: dict[str, Any] = {"criteria": {"response_match_score": 0.5}}
DAY_S = 86_400.0
EVENTS = [
    event("invocation.started", at=-DAY_S + 5, invocation_id="a", user_content=content("Hi")),
    event("invocation.completed", at=-DAY_S + 9, invocation_id="a"),
    event("invocation.started", at=-DAY_S + 20, invocation_id="b"),
]
TRACE = trace(at=-DAY_S + 2)
STARTED_AT = {
    ("invocation", "a"): instant(-DAY_S + 5),
    ("invocation", "b"): instant(-DAY_S + 20),
    ("session", "s"): instant(-DAY_S + 2),
    ("trace", "kp:trace:1"): instant(-DAY_S + 2),
}


def times(scores: list[dict[str, Any]]) -> dict[tuple[str, str], str | None]:
    return {
        (score["level"], score["invocation_id"] or score["trace_id"] or score["session_id"]): score["started_at"]
        for score in scores
    }


async def worker(*records: dict[str, Any]) -> Flow:
    flow = Flow(plan=read_plan(CONFIG))
    for record in records:
        flow.send(TOPICS.traces if "@type" in record else TOPICS.invocations, record)
    await flow.finish()
    return flow


async def test_a_worker_tells_when_each_subject_of_a_backfilled_session_began() -> None:
    flow = await worker(*EVENTS, TRACE)

    assert times(flow.results()) == STARTED_AT
    assert {score["metric"] for score in flow.results() if score["level"] == "trace"} == {"trace_value", "gate"}
    assert {score["occurred_at"] for score in flow.results()} == {instant(0)}


async def test_offline_scores_have_the_times_of_a_worker() -> None:
    raws = [orjson.dumps(each) for each in (*EVENTS, TRACE)]
    records = [DocumentRecords(Document(number, raw), [wire_record(raw)]) for number, raw in enumerate(raws, start=1)]
    now = datetime.fromtimestamp(START_S, UTC)
    result = await score_offline(
        records, read_plan(CONFIG), None, Settings(), clock=lambda: now, progress=lambda done, total: None
    )
    assert times([orjson.loads(score.wire()) for score in result.scores]) == STARTED_AT


@pytest.mark.parametrize("recorded", ["events", "conversation"])
async def test_an_eval_set_tells_when_each_recorded_invocation_began(tmp_path: Path, recorded: str) -> None:
    expected = write(tmp_path / "a.test.json", eval_set(case("s", invocation("Hi"), invocation("Ho"))))
    began = [{**invocation("Hi"), "creation_timestamp": 1_767_139_205.0}, invocation("Ho")]
    sessions = write(tmp_path / "a.sessions.json", EVENTS if recorded == "events" else eval_set(case("s", *began)))

    runs = read_recordings([str(sessions)])
    scored = ScoredFile(read_eval_file(Chosen(expected)), read_plan(CONFIG), runs, {})
    (result,) = (await score_files([scored], now=lambda: NOW)).cases
    found: Any = result.as_json()["invocations"]
    later = "2025-12-31T00:00:20+00:00" if recorded == "events" else None
    assert [each["started_at"] for each in found] == ["2025-12-31T00:00:05+00:00", later]


async def test_a_revision_changes_the_time_only_if_an_earlier_event_came_late() -> None:
    flow = await worker(EVENTS[0])
    flow.send(TOPICS.invocations, EVENTS[1])
    await flow.finish()
    flow.send(TOPICS.invocations, event(at=-DAY_S + 3, invocation_id="a"))
    await flow.finish()

    found = {(s["revision"], s["level"]): s["started_at"] for s in flow.results()}
    first, earlier = instant(-DAY_S + 5), instant(-DAY_S + 3)
    assert found == {
        (revision, level): moment
        for revision, moment in ((0, first), (1, first), (2, earlier))
        for level in ("invocation", "session")
    }


async def test_a_time_is_in_utc_whatever_the_zone_of_the_agent() -> None:
    flow = await worker(event(occurred_at="2025-12-31T09:00:05+09:00"))
    assert set(times(flow.results()).values()) == {"2025-12-31T00:00:05Z"}


async def test_an_unknown_time_is_null_and_does_not_hide_a_known_one() -> None:
    unknown = event(occurred_at="1970-01-01T00:00:00.001Z")
    assert set(times((await worker(unknown)).results()).values()) == {None}
    assert set(times((await worker(unknown, event(at=1))).results()).values()) == {instant(1)}


async def test_a_time_before_the_first_year_in_utc_ends_no_session() -> None:
    flow = Flow(stages=("score",), plan=read_plan(CONFIG))
    document = {
        "session_id": "s",
        "segment": 0,
        "revision": 0,
        "closed_because": "idle",
        "first_record_at": instant(0),
        "last_record_at": instant(1),
        "events": [event(occurred_at="0001-01-01T00:00:00+09:00")],
        "traces": [],
    }
    flow.send(TOPICS.sessions, document)
    await flow.settle()
    await advance_to(flow, 1)

    assert [score["level"] for score in flow.results()] == ["invocation", "session"]
