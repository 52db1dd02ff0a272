"""Provides the checks that every scorer must pass, for the tests of plugins.

@pytest.mark.parametrize("check", CHECKS)
def test_brevity_is_a_good_scorer(check):
    check(Brevity(max_words=20), sample_subjects())
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from pydantic import ValidationError

from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
    RetrievedChunk,
    TokenUsage,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import Measurement, Measurements, MissingInput, Scorer, Subject
from traceweir.scorers.judge import Judge
from traceweir.scorers.scripted_judge import AgreeableJudge, ScriptedJudge

__all__ = ["CHECKS", "AgreeableJudge", "Check", "ScriptedJudge", "sample_subjects"]

Check = Callable[[Scorer, Sequence[Subject]], None]


def sample_subjects(judge: Judge | None = None) -> list[Subject]:
    """Returns sample invocations, traces and sessions for the checks.

    The invocations have or lack a question, a reference, an answer or tools, in several scripts; the traces are short,
    long and failed; the sessions have none, one or several of the invocations.

    Args:
        judge: The judge for the scorers; if None, an `AgreeableJudge`.
    """
    judge = judge or AgreeableJudge()
    find = FunctionCall(name="find", args={"city": "Seoul"})
    book = FunctionCall(name="book", args={"seats": [1, 2]})
    timetable = [RetrievedChunk(doc_uri="timetable", content="Every hour."), RetrievedChunk(doc_uri="fares")]
    expected = Reference(
        final_response=Content.of("Two seats are booked."), tool_uses=[find, book], retrieved_context=timetable
    )
    events = [Part(function_call=find), Part(text="I found two."), Part(function_call=book)]
    invocations = [
        Invocation(),
        Invocation(final_response=Content.of("")),
        Invocation(
            user_content=Content.of("Please book two seats on the next train to Seoul."),
            final_response=Content.of("Your two seats are booked."),
            intermediate_data=_used(find, book),
            retrieved_context=timetable[:1],
            token_usage=TokenUsage(input_tokens=900, output_tokens=30),
            latency_seconds=1.25,
            inference_call_count=2,
            app_details={"agent_details": {"clerk": {"instructions": "You book trains.", "tool_declarations": []}}},
        ),
        Invocation(
            user_content=Content.of("서울행 좌석 두 개 예약해 주세요"),
            final_response=Content.of("좌석 두 개를 예약했습니다 🙂"),
            intermediate_data=_used(book, find, find),
        ),
        Invocation(final_response=Content.of("word " * 5_000), intermediate_data=_used(*[find] * 100)),
        Invocation(
            final_response=Content(parts=[Part(text="Two seats"), Part(text="are booked.")]),
            intermediate_data=InvocationEvents(invocation_events=[InvocationStep(content=Content(parts=events))]),
        ),
    ]
    answered = Invocation(
        user_content=Content.of("Is there a train?"),
        final_response=Content.of("There is none."),
        intermediate_data=IntermediateData(
            tool_uses=[find, find],
            tool_responses=[
                FunctionResponse(name="find", response={"error": "timeout"}),
                FunctionResponse(name="find", response=[]),
            ],
        ),
    )
    references = [None, Reference(), Reference(final_response=Content.of(""), tool_uses=[]), expected]
    steps: list[list[tuple[str, str | None]]] = [
        [("thought", None)],
        [("thought", None), ("tool_call", "find"), ("observation", None)],
        [("tool_call", "find"), ("error_recovery", None)] * 3 + [("tool_call", "book")],
        [("tool_call", f"tool {number}") for number in range(60)],
    ]
    return [
        *(
            Subject(invocation=invocation, reference=reference, judge=judge)
            for invocation in (*invocations, answered)
            for reference in references
        ),
        *(Subject(trace=_trace(kinds, success), judge=judge) for kinds in steps for success in (True, False)),
        *(_session(turns, judge) for turns in ([], [answered], [answered, *invocations])),
    ]


def check_it_is_documented(scorer: Scorer, subjects: Sequence[Subject]) -> None:
    """Checks that the scorer's class has its own docstring."""
    documentation = type(scorer).__doc__
    _require(
        bool(documentation) and documentation != Scorer.__doc__,
        f"{_name(scorer)} has no docstring that says what it measures",
    )


def check_its_options_are_its_config(scorer: Scorer, subjects: Sequence[Subject]) -> None:
    """Checks that a scorer survives a JSON round trip, in snake_case and camelCase, and rejects unknown options."""
    for by_alias in (False, True):
        text = scorer.model_dump_json(by_alias=by_alias)
        _require(
            type(scorer).model_validate_json(text) == scorer,
            f"{_name(scorer)} read from its own JSON differs from the original: {text}",
        )
    try:
        type(scorer).model_validate({**scorer.model_dump(), "no_such_option": 1})
    except ValidationError:
        return
    _require(False, f"{_name(scorer)} accepts an option that does not exist; do not set extra='allow' or 'ignore'")


def check_it_is_immutable(scorer: Scorer, subjects: Sequence[Subject]) -> None:
    """Checks that no option can be set after construction."""
    for option in type(scorer).model_fields:
        try:
            setattr(scorer, option, getattr(scorer, option))
        except ValidationError:
            continue
        _require(False, f"{_name(scorer)}.{option} can be set; leave model_config frozen")


def check_its_range_and_version(scorer: Scorer, subjects: Sequence[Subject]) -> None:
    """Checks that the range goes from a lower to a higher number, and that the version is a string."""
    lowest, highest = scorer.range
    _require(lowest < highest, f"{_name(scorer)}.range must go from a lower to a higher number, not {scorer.range}")
    _require(
        isinstance(scorer.version, str) and scorer.version != "",
        f"{_name(scorer)}.version must be a string such as '1', not {scorer.version!r}",
    )


def check_its_values(scorer: Scorer, subjects: Sequence[Subject]) -> None:
    """Checks the scorer's values.

    At least one subject has a value, every value and their aggregate are in the range, and details and summary are
    JSON.
    """
    lowest, highest = scorer.range
    measured = [found for found in map(_measured(scorer), _of_its_level(scorer, subjects)) if found is not None]
    _require(bool(measured), f"{_name(scorer)} returns no value for any subject; pass subjects that it can measure")
    for found in measured:
        _require(
            lowest <= found.value <= highest,
            f"{_name(scorer)} returns {found.value}, outside its range {scorer.range}",
        )
        json.dumps(dict(found.details), allow_nan=False)
    session = Measurements.of(measured, len(measured))
    whole = scorer.aggregate(session)
    json.dumps(scorer.summary(session), allow_nan=False)
    _require(lowest <= whole <= highest, f"{_name(scorer)} aggregates to {whole}, outside its range {scorer.range}")


def check_it_is_deterministic(scorer: Scorer, subjects: Sequence[Subject]) -> None:
    """Checks that an equal scorer returns an equal value, rationale and details, and does not change the subject."""
    twin = type(scorer).model_validate(scorer.model_dump())
    for subject in _of_its_level(scorer, subjects):
        before = repr(subject)
        first = _measured(scorer)(subject)
        second = _measured(twin)(subject)
        same = (first and (first.value, first.rationale, first.details)) == (
            second and (second.value, second.rationale, second.details)
        )
        _require(same, f"{_name(scorer)} measures {first}, then {second} for the same subject")
        _require(repr(subject) == before, f"{_name(scorer)} changes the subject that it measures")


CHECKS: tuple[Check, ...] = (
    check_it_is_documented,
    check_its_options_are_its_config,
    check_it_is_immutable,
    check_its_range_and_version,
    check_its_values,
    check_it_is_deterministic,
)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _name(scorer: Scorer) -> str:
    return type(scorer).__name__


def _of_its_level(scorer: Scorer, subjects: Sequence[Subject]) -> list[Subject]:
    field = {"invocation": "invocation", "trace": "trace", "session": "session"}[scorer.level]
    return [subject for subject in subjects if getattr(subject, field) is not None]


def _measured(scorer: Scorer) -> Callable[[Subject], Measurement | None]:
    def measure(subject: Subject) -> Measurement | None:
        try:
            found = scorer.score(subject)
            return asyncio.run(_result(found)) if inspect.isawaitable(found) else found
        except MissingInput:
            return None

    return measure


async def _result(measurement: Awaitable[Measurement]) -> Measurement:
    return await measurement


def _used(*calls: FunctionCall) -> IntermediateData:
    return IntermediateData(tool_uses=list(calls))


def _session(invocations: Sequence[Invocation], judge: Judge) -> Subject:
    began = datetime(2026, 1, 31, 12, tzinfo=UTC)
    session = Session(
        session_id=f"sample-{len(invocations)}",
        segment=0,
        revision=0,
        closed_because=ClosingReason.IDLE,
        first_record_at=began,
        last_record_at=began,
        events=[],
        traces=[],
    )
    turns = [
        Turn(invocation.model_copy(update={"invocation_id": f"i{number}"}))
        for number, invocation in enumerate(invocations)
    ]
    wanted = Reference(task="Book two seats to Seoul.", guidelines=["The agent is polite."])
    return Subject(session=session, reference=wanted, turns=turns, judge=judge)


def _trace(steps: Sequence[tuple[str, str | None]], success: bool) -> ReasoningTrace:
    return ReasoningTrace.model_validate(
        {
            "@context": "https://openknowledgepulse.org/schema/v1",
            "@type": "ReasoningTrace",
            "id": f"kp:trace:sample-{len(steps)}-{success}",
            "metadata": {
                "created_at": "2026-01-31T12:00:00Z",
                "task_domain": "travel",
                "success": success,
                "quality_score": 0,
                "visibility": "network",
                "privacy_level": "aggregated",
            },
            "task": {"objective": "Book two seats to Seoul"},
            "steps": [
                {"step_id": number, "type": kind, "content": f"step {number}"}
                | ({"tool": {"name": tool}} if tool else {})
                for number, (kind, tool) in enumerate(steps)
            ],
            "outcome": {"result_summary": "Booked", "confidence": 0.9},
        }
    )
