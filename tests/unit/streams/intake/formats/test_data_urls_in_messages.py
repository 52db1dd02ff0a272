"""Tests that a text that is nothing but a data URL is media also in sessions of ADK, in events and in plain spans."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.support.adk import adk_event, adk_session, events_of, read_as, text
from tests.support.folding import folded
from tests.support.openai_chat import NOON
from tests.support.spans import span

from traceweir.schemas.events import EVENT
from traceweir.schemas.invocation import Invocation
from traceweir.streams.intake.formats.adk_session import ADK_SESSION
from traceweir.streams.intake.spans.reader import read_trace

IMAGE = "data:image/png;base64," + "QUJD" * 10
NO_QUESTION = "the question is no text: 1 part of type 'image'"
NO_ANSWER = "the answer is no text: 1 part of type 'image'"


def of_adk(*events: dict[str, Any]) -> list[Invocation]:
    (found,) = read_as(ADK_SESSION, adk_session(*events))
    return folded(events_of(found))


def of_events(question: str, answer: str, **recorded: Any) -> Invocation:
    content = {"user_content": {"parts": [{"text": question}]}, "final_response": {"parts": [{"text": answer}]}}
    common = {"session_id": "s", "invocation_id": "i1", "occurred_at": NOON}
    events: list[dict[str, Any]] = [
        {"type": "invocation.started", "user_content": content["user_content"]},
        {"type": "response.intermediate", "content": {"parts": [{"text": IMAGE}]}},
        {"type": "invocation.completed", "final_response": content["final_response"]},
    ]
    if recorded:
        events = [{"type": "invocation.recorded", "invocation": content}]
    (found,) = folded([EVENT.validate_python(common | each) for each in events])
    return found


def test_a_data_url_in_a_session_of_adk_is_an_image() -> None:
    (asked,) = of_adk(adk_event("user", text(IMAGE)), adk_event("root", text("A cat.")))
    (drawn,) = of_adk(adk_event("user", text("Draw.")), adk_event("root", text(IMAGE)))
    (both,) = of_adk(
        adk_event("user", text("Draw.")), adk_event("root", text("A cat.")), adk_event("root", text(IMAGE))
    )

    assert asked.unread == [NO_QUESTION]
    assert drawn.unread == [NO_ANSWER]
    assert both.final_response is not None
    assert both.final_response.text == "A cat."
    assert both.unread == ["the intermediate response is no text: 1 part of type 'image'"]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_data_url_in_an_event_is_an_image(is_recorded: bool) -> None:
    more = {"is_recorded": True} if is_recorded else {}
    asked = of_events(IMAGE, "A cat.", **more)
    drawn = of_events("Draw.", IMAGE, **more)

    assert (asked.user_content, drawn.final_response) == (None, None)
    assert NO_QUESTION in (asked.unread or ())
    assert NO_ANSWER in (drawn.unread or ())
    between = "the intermediate response is no text: 1 part of type 'image'"
    assert (between in (asked.unread or ())) is not is_recorded


def test_a_data_url_as_the_plain_input_of_a_span_is_an_image() -> None:
    attributes = {"openinference.span.kind": "AGENT", "input.value": IMAGE, "output.value": "A cat."}

    (found,) = folded(
        [EVENT.validate_json(orjson.dumps(each)) for each in read_trace([span(1, 0, "agent", attributes)]).events]
    )

    assert found.unread is not None
    assert NO_QUESTION in found.unread
    assert found.user_content is None


def test_a_text_with_a_data_url_in_it_is_a_text() -> None:
    said = f"This is {IMAGE}"

    found = of_events("Draw.", said, is_recorded=True)

    assert found.final_response is not None
    assert found.final_response.text == said
    assert found.unread is None
