"""Tests that sessions in which no invocation continues another one have the same steps as the search would find."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import event as note
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.scoring import NOW

from traceweir.schemas.event_steps import event_steps, named_events, searched_steps
from traceweir.schemas.events import EVENT, InvocationStarted

names = st.sampled_from(["", "a", "b"])
calls = st.sampled_from([None, "1", "2"])
answer_of_user = {"parts": [{"function_response": {"id": "1", "name": "x", "response": {}}}]}
questions = st.sampled_from([None, {"parts": [{"text": "q"}]}, {"parts": [{"text": "r"}]}, answer_of_user])
tool_results = st.sampled_from([{"ok": True}, {"status": "pending"}])
recorded = st.builds(
    lambda question, calls, responses: {
        "user_content": question,
        "intermediate_data": {
            "tool_uses": [{"id": each, "name": "x"} for each in calls],
            "tool_responses": [{"id": each, "name": "x", "response": {}} for each in responses],
        },
    },
    questions,
    st.lists(calls, max_size=2),
    st.lists(calls, max_size=2),
)


def of_kind(kind: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), "invocation_id": names, **fields})


documents = st.one_of(
    of_kind("invocation.started", user_content=questions),
    of_kind("tool.called", name=st.just("x"), call_id=calls),
    of_kind("tool.returned", name=st.just("x"), call_id=calls, response=tool_results),
    of_kind("model.called", model=st.just("m")),
    of_kind("invocation.completed", final_response=st.sampled_from([None, {"parts": [{"text": "done"}]}])),
    of_kind("invocation.recorded", invocation=recorded),
    st.just({"type": "session.ended"}),
)
A_LATE_RESPONSE = [
    {"type": "invocation.started", "invocation_id": "a", "user_content": {"parts": [{"text": "q"}]}},
    {"type": "tool.called", "invocation_id": "a", "name": "x", "call_id": "1"},
    {"type": "tool.returned", "invocation_id": "b", "name": "x", "call_id": "1", "response": {}},
]


@given(st.lists(documents, max_size=9))
@example(A_LATE_RESPONSE)
@example([])
def test_steps_are_those_that_the_search_finds(found: list[dict[str, Any]]) -> None:
    events = [
        EVENT.validate_python({"session_id": "s", "occurred_at": NOW + timedelta(seconds=number), **each})
        for number, each in enumerate(found)
    ]
    asked = [each.user_content.text for each in events if isinstance(each, InvocationStarted) and each.user_content]
    steps = event_steps(events)
    note(f"an invocation continues another one: {any(step.name != step.turn for step in steps)}")
    texts = [text for text in asked if text]
    assert steps == searched_steps(named_events(events), may_repeat=len(set(texts)) < len(texts))
