"""Each stage writes spans of what it did with a session: one trace for each segment, equal after a crash."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from pydantic import SecretStr
from tests.support.flow import TOPICS
from tests.support.judged import KEY, judged_plan
from tests.support.openai_server import Say, openai_server
from tests.support.traced import WrittenSpans, ids_of

from traceweir.schemas.session import Session
from traceweir.scorers import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.process_log import CURRENT_SPAN
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.sessions.options import ScoringOptions, ScoringOutputs
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring
from traceweir.streams.testing import Flow, event, instant, trace

# One test asks a judge.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

PLAN = read_plan({"criteria": {"response_match_score": 0.5}})
PRODUCER = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
AGENT = {"trace_id": "1" * 32, "span_id": "2" * 16}


async def run(written: WrittenSpans | None, **options: Any) -> Flow:
    flow = Flow(PLAN, spans=written.writer if written else None, idle_gap_s=60, **options)
    headers = [("traceparent", PRODUCER), ("traceparent", b"forged")]
    flow.send(TOPICS.invocations, event(event_id="1", trace_context=AGENT), headers=headers)
    flow.send(TOPICS.invocations, event("invocation.completed", event_id="2"), headers=headers)
    flow.send(TOPICS.traces, trace(1, session_id="s"))
    await flow.settle()
    flow.pass_time(61)
    await flow.settle()
    return flow


async def test_the_stages_write_one_trace_for_a_session() -> None:
    written = WrittenSpans()
    flow = await run(written)

    assert written.parents == {
        "assemble": None,
        "score": "assemble",
        "evaluate response_match_score": "score",
        "gate": "score",
    }
    (session,) = flow.sessions()
    assert {span.attributes["gen_ai.conversation.id"] for span in written.spans if span.attributes} == {"s"}
    assert len({ids_of(span)[0] for span in written.spans}) == 1
    assert written.attributes("assemble")["messaging.batch.message_count"] == 3
    assert written.attributes("assemble")["traceweir.session.closed_by"] == session["closed_because"]
    assert written.attributes("gate")["traceweir.gate.accepted"] is True


async def test_spans_link_to_the_producers_of_records_and_to_the_agents_spans() -> None:
    written = WrittenSpans()
    await run(written)

    links = {span.name: [f"{link.context.span_id:016x}" for link in span.links] for span in written.spans}
    assert links["assemble"] == ["b7ad6b7169203331"]
    assert links["score"] == [AGENT["span_id"]]


async def test_work_that_is_repeated_after_a_crash_has_the_same_ids() -> None:
    written = WrittenSpans()
    flow = Flow(PLAN, spans=written.writer, idle_gap_s=60)
    flow.send(TOPICS.traces, trace(1, session_id="s"))
    for _ in range(2):
        await flow.take(TOPICS.traces)
        flow.pass_time(61)
        flow.tick()
        flow.cut()
        flow.crash()  # what was cut is not committed

    first, second = [span for span in written.spans if span.name == "assemble"]
    assert ids_of(first) == ids_of(second)


async def test_a_session_that_is_not_sampled_has_no_span() -> None:
    written = WrittenSpans(share=0.0)
    await run(written)
    assert written.spans == []


async def test_traces_change_no_result() -> None:
    with_spans, without = [await run(written) for written in (WrittenSpans(), None)]
    assert with_spans.logs[TOPICS.results, 0] == without.logs[TOPICS.results, 0]
    assert with_spans.logs[TOPICS.network, 0] == without.logs[TOPICS.network, 0]


async def test_questions_to_judges_are_spans_below_their_scorer_and_carry_the_mark() -> None:
    written, plan = WrittenSpans(), judged_plan(samples=2)
    seen: list[tuple[str, str] | None] = []

    class Watching(Judging):
        async def verdict(self, *arguments: Any) -> Any:
            seen.append(CURRENT_SPAN.get())
            return await super().verdict(*arguments)

    session = Session.model_validate_json(
        orjson.dumps(
            {
                "session_id": "s",
                "segment": 0,
                "revision": 0,
                "closed_because": "idle",
                "first_record_at": instant(0),
                "last_record_at": instant(1),
                "events": [event("invocation.completed", "s", event_id="1")],
                "traces": [],
            }
        )
    )
    async with openai_server(default=lambda body: Say(text="yes")) as server:
        judging = Watching(plan.judge, Access(server.url, SecretStr(KEY)), utc_now)
        await SessionScoring(
            plan, None, utc_now, ScoringOptions(60), judging=judging, outputs=ScoringOutputs(spans=written.writer)
        )(session)

    questions = [span for span in written.spans if span.name.startswith("chat ")]
    assert len({ids_of(span) for span in questions}) == 2
    assert written.parents["chat openai/stub"] == "evaluate asks"
    assert [span.attributes and span.attributes["gen_ai.usage.output_tokens"] for span in questions] == [2, 2]
    assert seen == [
        tuple(f"{number:0{digits}x}" for number, digits in zip(ids_of(span), (32, 16), strict=True))
        for span in questions
    ]
    assert [headers["tracestate"] for headers in server.headers] == ["traceweir=judge"] * 2
    parents = [headers["traceparent"] for headers in server.headers]
    assert parents == ["00-{}-{}-01".format(*ids) for ids in seen if ids]
