"""The error of a turn that failed is in its last event."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.spans import span

from traceweir.schemas.events import EVENT, InvocationCompleted
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent, Status
from traceweir.streams.intake.spans.turn_errors import MAX_CHARS

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
ANSWER = {"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]'}
REFUSED = "Error code: 400 - {'error': {'message': 'context_length_exceeded'}}"


def failing(found: Span, status: Status = "ERROR", message: str = "", exception: dict[str, Any] | None = None) -> Span:
    found.status = status
    found.status_message = message
    if exception is not None:
        found.events.append(SpanEvent("exception", 1, {f"exception.{name}": text for name, text in exception.items()}))
    return found


def completed(*spans: Span) -> InvocationCompleted:
    (event,) = [each for each in read_trace(spans).events if each["type"] == "invocation.completed"]
    found = EVENT.validate_python(event, strict=False)
    assert isinstance(found, InvocationCompleted)
    return found


WAYS: dict[str, tuple[list[Span], str]] = {
    "an exception event of the model call": (
        [
            failing(span(1, 0, "agent", AGENT)),
            failing(
                span(2, 1, "chat", {**CHAT, "error.type": "openai.BadRequestError"}),
                exception={"type": "openai.BadRequestError", "message": REFUSED},
            ),
        ],
        f"openai.BadRequestError: {REFUSED}",
    ),
    "a description of the model call alone": (
        [span(1, 0, "agent", AGENT), failing(span(2, 1, "chat", CHAT), message="the prompt is too long")],
        "the prompt is too long",
    ),
    "the code of the provider alone": (
        [span(1, 0, "agent", AGENT), failing(span(2, 1, "chat", {**CHAT, "error.type": "400"}))],
        "HTTP 400",
    ),
    "the level of an observation of Langfuse": (
        [
            span(
                1,
                0,
                "generation",
                {
                    "langfuse.observation.type": "generation",
                    "langfuse.observation.level": "ERROR",
                    "langfuse.observation.status_message": "rate limit",
                    "langfuse.observation.input": '[{"role": "user", "content": "Hi"}]',
                },
            )
        ],
        "rate limit",
    ),
    "the status of HTTP and a description": (
        [failing(span(1, 0, "chat", {**CHAT, "http.response.status_code": 400}), message="bad request")],
        "HTTP 400: bad request",
    ),
    "the outermost span alone": (
        [failing(span(1, 0, "agent", AGENT), message="TimeoutError: too slow"), span(2, 1, "chat", CHAT)],
        "TimeoutError: too slow",
    ),
    "a traceback": (
        [
            failing(
                span(1, 0, "agent", AGENT), message="Traceback (most recent call last):\n  File x\nValueError: no shop"
            )
        ],
        "no shop",
    ),
    "nothing": ([failing(span(1, 0, "agent", AGENT))], "the invocation failed; its spans tell no message"),
}


@pytest.mark.parametrize(("spans", "error"), WAYS.values(), ids=WAYS)
def test_the_error_of_a_turn_is_that_of_its_last_model_call_or_of_its_outermost_span(
    spans: list[Span], error: str
) -> None:
    assert completed(*spans).error == error


@pytest.mark.parametrize(
    "spans",
    [
        [span(1, 0, "agent", AGENT), span(2, 1, "chat", CHAT | ANSWER)],
        [span(1, 0, "agent", AGENT), span(2, 1, "chat", CHAT)],
        # The call was tried again.
        [
            span(1, 0, "agent", AGENT),
            failing(span(2, 1, "chat", CHAT), message="busy"),
            span(3, 1, "chat", CHAT | ANSWER),
        ],
        # The model has read the error of the tool.
        [span(1, 0, "agent", AGENT), failing(span(2, 1, "look", TOOL), message="closed"), span(3, 1, "chat", CHAT)],
        [failing(span(2, 0, "look", TOOL), message="closed"), span(3, 0, "chat", CHAT)],
    ],
)
def test_a_turn_that_went_on_has_no_error(spans: list[Span]) -> None:
    assert completed(*spans).error is None


RETRIED: dict[str, list[Span]] = {
    "below an agent": [
        span(1, 0, "agent", AGENT),
        failing(span(2, 1, "chat", CHAT), message="busy"),
        failing(span(3, 1, "chat", CHAT), message=REFUSED),
    ],
    "below the span of a client": [
        span(1, 0, "chat", CHAT),
        failing(span(2, 1, "chat", CHAT), message="busy"),
        failing(span(3, 1, "chat", CHAT), message=REFUSED),
    ],
    "without a status": [span(1, 0, "agent", AGENT), span(2, 1, "chat", {**CHAT, "error.type": REFUSED})],
}


@pytest.mark.parametrize("spans", RETRIED.values(), ids=RETRIED)
def test_an_answer_is_missing_because_the_last_try_failed_and_for_no_want_of_a_setting(spans: list[Span]) -> None:
    found = completed(*spans)
    assert found.error == REFUSED
    missing = [each for each in found.missing or () if each.startswith("the answer")]
    assert missing == [f"the answer is not in the spans: the last model call failed, or a span around it: {REFUSED}"]
    assert not any(each.startswith("the tokens of some") for each in found.missing or ())
    (trace,) = read_trace(spans).traces
    assert trace["metadata"]["success"] is False


def test_the_error_is_bounded_and_can_be_written() -> None:
    found = completed(failing(span(1, 0, "agent", AGENT), message="x\ud83d" * MAX_CHARS)).error
    assert found is not None
    assert len(found) == MAX_CHARS
    assert found.encode()
