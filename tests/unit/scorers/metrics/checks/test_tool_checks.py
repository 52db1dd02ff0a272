"""What the checks of tools find in a session, and where they say that they do not know."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.scoring import scores_of

from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
    TokenUsage,
)
from traceweir.schemas.refused_record import TOOL_CALLS, TOOL_RESULTS, refused_part
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import Subject, read_plan
from traceweir.scorers.metrics.checks.tool_use import tool_uses_of

FAILED: Any = {"error": "sold out"}


def turn(name: str, *used: tuple[str, Any, Any], unread: list[str] | None = None, **more: Any) -> Turn:
    """Returns a turn with tool calls; each has a name, arguments and a result, which is absent if it is `...`."""
    calls = [FunctionCall(id=f"{name}-{place}", name=tool, args=args) for place, (tool, args, _) in enumerate(used)]
    results = [
        FunctionResponse(id=f"{name}-{place}", name=tool, response=result)
        for place, (tool, _, result) in enumerate(used)
        if result is not ...
    ]
    data = IntermediateData(tool_uses=calls, tool_responses=results)
    return Turn(Invocation(invocation_id=name, intermediate_data=data, unread=unread, **more))


async def scored(criterion: str, options: Any, *turns: Turn) -> list[Score]:
    return await scores_of(read_plan({"criteria": {criterion: options}}), turns)


async def session_score(criterion: str, options: Any, *turns: Turn) -> Score:
    [found] = [each for each in await scored(criterion, options, *turns) if each.level == "session"]
    return found


FIND, BOOK, SOLD_OUT = ("find", {"to": "Oslo"}, ["7:00"]), ("book", {"seat": 1}, "ok"), ("book", {"seat": 1}, FAILED)


async def test_a_failed_call_fails_its_turn_and_the_session_and_its_tool_is_named() -> None:
    first, second, whole = await scored("no_tool_errors", {}, turn("a", FIND), turn("b", SOLD_OUT, BOOK))

    assert [each.status for each in (first, second, whole)] == ["PASSED", "FAILED", "FAILED"]
    assert second.rationale == "1 of 2 tool calls failed: book"
    assert whole.details["tools"] == {"book": {"calls": 2, "errors": 1}, "find": {"calls": 1, "errors": 0}}


@pytest.mark.parametrize(
    ("criterion", "used", "status"),
    [
        ("no_tool_errors", (FIND, BOOK), "NOT_EVALUATED"),
        # One that says so has failed, whatever the others did.
        ("no_tool_errors", (FIND, SOLD_OUT), "FAILED"),
        # Of two that failed, only one can be known.
        ("tool_error_rate", (FIND, SOLD_OUT), "NOT_EVALUATED"),
    ],
)
async def test_a_call_is_no_success_if_nothing_can_tell_its_failure(criterion: str, used: Any, status: str) -> None:
    lacks = "the outcome of the call of tool 'find' is not in the spans: the client leaves it out"
    score, *_ = await scored(criterion, {"threshold": 0.5}, turn("a", *used, unread=[lacks]))
    assert score.status == status
    assert status == "FAILED" or lacks in (score.rationale or "")


async def test_the_error_rate_of_a_session_is_the_share_of_its_calls_and_less_is_better() -> None:
    turns = turn("a", FIND), turn("b", SOLD_OUT, BOOK, FIND)

    passed = await session_score("tool_error_rate", 0.25, *turns)
    failed = await session_score("tool_error_rate", 0.2, *turns)

    assert (passed.value, passed.status) == (0.25, "PASSED")
    assert (failed.value, failed.status) == (0.25, "FAILED")


@pytest.mark.parametrize("criterion", ["no_tool_errors", "tool_error_rate", "retries_after_error"])
@pytest.mark.parametrize(
    ("one", "cause"),
    [
        (turn("a", ("find", {}, ...)), "not_recorded"),
        (
            turn("a", ("find", {}, None), unread=["the result of the call of tool 'find' is not in the spans"]),
            "not_recorded",
        ),
        (turn("a", ("find", {}, ...), unread=[f"the {refused_part(TOOL_RESULTS)} t-0@7"]), "record_refused"),
        (turn("a", FIND, unread=[f"the {refused_part(TOOL_CALLS)} t-0@7"]), "record_refused"),
        (Turn(Invocation(invocation_id="a")), "not_recorded"),
    ],
)
async def test_without_recorded_results_nothing_is_said_about_errors(criterion: str, one: Turn, cause: str) -> None:
    found = await session_score(criterion, {"threshold": 1}, one)
    assert (found.value, found.not_evaluated_because, found.cause) == (None, "missing_input", cause)


async def test_a_failure_counts_although_another_result_is_unknown() -> None:
    found = await session_score("no_tool_errors", {}, turn("a", SOLD_OUT, ("find", {}, ...)))
    assert found.value == 0.0
    assert found.details["tools"] == {
        "book": {"calls": 1, "errors": 1},
        "find": {"calls": 1, "errors": 0, "unknown": 1},
    }


async def test_a_session_without_tool_calls_has_no_errors_and_no_error_rate() -> None:
    assert (await session_score("no_tool_errors", {}, turn("a"))).value == 1.0
    assert (await session_score("tool_error_rate", 0.1, turn("a"))).not_evaluated_because == "missing_input"


async def test_a_forbidden_tool_is_named() -> None:
    found = await scored("forbidden_tools", {"tools": ["refund", "delete"]}, turn("a", FIND, ("refund", {}, "ok")))
    assert [each.value for each in found] == [0.0, 0.0]
    assert found[0].rationale == "forbidden tools were called: refund"
    assert (await session_score("forbidden_tools", {"tools": ["refund"]}, turn("a", FIND))).status == "PASSED"


async def test_equal_calls_over_the_turns_are_a_loop() -> None:
    turns = turn("a", FIND, BOOK), turn("b", FIND, ("find", {"to": "Bergen"}, [])), turn("c", FIND)

    looping = await session_score("repeated_calls", 2, *turns)

    assert (looping.value, looping.status) == (3.0, "FAILED")
    assert looping.details["call"] == 'find({"to": "Oslo"})'
    assert looping.details["turns"] == ["a", "b", "c"]
    assert (await session_score("repeated_calls", {"threshold": 2, "within": "invocation"}, *turns)).value == 1.0
    assert (await session_score("repeated_calls", {"threshold": 2, "ignore_tools": ["find"]}, *turns)).value == 1.0
    assert (await session_score("repeated_calls", 2, turn("a"))).value == 0.0


async def test_calls_without_recorded_arguments_are_not_equal() -> None:
    unread = ["the arguments of the call of tool 'find' are not in the spans"]
    found = await session_score("repeated_calls", 2, turn("a", ("find", None, 1), ("find", None, 2), unread=unread))
    assert (found.not_evaluated_because, found.cause) == ("missing_input", "not_recorded")


async def test_repeats_of_a_failed_call_are_counted_until_it_succeeds() -> None:
    turns = turn("a", SOLD_OUT, SOLD_OUT, FIND), turn("b", BOOK, BOOK)

    found = await session_score("retries_after_error", 1, *turns)

    assert (found.value, found.status) == (2.0, "FAILED")
    assert (found.details["recovered"], found.details["turns"]) == (1, ["a", "b"])
    changed = turn("a", SOLD_OUT, ("book", {"seat": 2}, "ok"))
    assert (await session_score("retries_after_error", 0, changed)).status == "PASSED"


@pytest.mark.parametrize(
    ("criterion", "values"),
    [("max_tool_calls", (1, 2)), ("max_model_calls", (3, 5)), ("max_tokens", (110, 220)), ("max_duration", (2, 4))],
)
async def test_a_session_has_the_greatest_value_of_its_turns_or_their_sum(
    criterion: str, values: tuple[int, int]
) -> None:
    def sized(name: str, calls: int, size: int) -> Turn:
        tokens = TokenUsage(input_tokens=100 * size, output_tokens=10 * size)
        used = [FIND] * size
        return turn(name, *used, inference_call_count=calls, token_usage=tokens, latency_seconds=2.0 * size)

    turns = sized("a", 3, 1), sized("b", 5, 2)

    found = await scored(criterion, values[0], *turns)

    assert [each.value for each in found] == [*values, max(values)]
    assert [each.status for each in found] == ["PASSED", "FAILED", "FAILED"]
    summed = await session_score(criterion, {"threshold": sum(values), "of_session": True}, *turns)
    assert (summed.value, summed.status) == (sum(values), "PASSED")


@pytest.mark.parametrize("criterion", ["max_model_calls", "max_tokens", "max_duration"])
async def test_what_was_not_recorded_is_not_below_a_limit(criterion: str) -> None:
    known = turn(
        "a", inference_call_count=1, latency_seconds=1.0, token_usage=TokenUsage(input_tokens=1, output_tokens=1)
    )
    alone = await session_score(criterion, 5, turn("b"))
    assert (alone.not_evaluated_because, alone.cause) == ("missing_input", "not_recorded")
    summed = await session_score(criterion, {"threshold": 5, "of_session": True}, known, turn("b"))
    assert summed.not_evaluated_because == "missing_input"


def said(author: str) -> InvocationStep:
    return InvocationStep(author=author, content=Content(parts=[Part(text="…")]))


async def test_handoffs_are_changes_of_the_agent_or_calls_that_transfer() -> None:
    spoken = Invocation(
        invocation_id="a",
        intermediate_data=InvocationEvents(
            invocation_events=[said(each) for each in ("desk", "user", "desk", "seats", "desk")]
        ),
    )
    assert (await session_score("handoffs", 1, Turn(spoken))).value == 2.0
    transferred = turn("b", ("transfer_to_agent", {"agent_name": "seats"}, None))
    assert (await session_score("handoffs", 1, transferred)).value == 1.0
    assert (await session_score("handoffs", 1, turn("c", FIND))).value == 0.0


async def test_the_tools_in_details_are_bounded_and_those_that_failed_come_first() -> None:
    used: list[Any] = [(f"tool {number}", {}, FAILED if number == 90 else "ok") for number in range(100)]
    found = await session_score("no_tool_errors", {}, turn("a", *used))
    tools: Any = found.details["tools"]
    assert len(tools) == 50
    assert tools["tool 90"] == {"calls": 1, "errors": 1}


@pytest.mark.parametrize(
    ("criterion", "options", "problem"),
    [
        ("forbidden_tools", {}, "tools: is missing; the config must give it"),
        ("max_tool_calls", {}, "the threshold must be a number of at least 0; none is given"),
        ("max_tokens", "inf", "the threshold must be a number of at least 0, not"),
        ("tool_error_rate", 3, "the threshold must be a number from 0 to 1, not 3"),
        ("repeated_calls", {"threshold": 2, "within": "turn"}, "within: Input should be 'session' or 'invocation'"),
    ],
)
def test_an_option_that_cannot_be_used_is_reported(criterion: str, options: Any, problem: str) -> None:
    with pytest.raises(ValueError, match="cannot be used") as refused:
        read_plan({"criteria": {criterion: options}})
    assert problem in str(refused.value)


def test_the_calls_of_an_invocation_are_paired_with_their_results_once_for_all_subjects_of_a_session() -> None:
    found_of_session: dict[Any, Any] = {}
    one = turn("a", FIND, SOLD_OUT)
    invocation = Subject(invocation=one.invocation, turns=[one], found_of_session=found_of_session)
    session = Subject(turns=[one], found_of_session=found_of_session)

    assert tool_uses_of(session, one.invocation) is tool_uses_of(invocation)
