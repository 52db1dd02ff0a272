"""The dialogue of a session as a judge reads it."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from traceweir.schemas.invocation import Content, FunctionCall, FunctionResponse, IntermediateData, Invocation
from traceweir.schemas.turns import Turn
from traceweir.scorers.judged.dialogue import BEGINNING_IS_MISSING, NO_ANSWER, START_CHARACTERS, dialogue_of


def _turn(question: str | None, answer: str | None = None, **more: object) -> Turn:
    return Turn(
        Invocation(
            user_content=None if question is None else Content.of(question),
            final_response=None if answer is None else Content.of(answer, "model"),
            **more,  # type: ignore[arg-type]
        )
    )


def _calls(*calls: FunctionCall, responses: tuple[FunctionResponse, ...] = ()) -> IntermediateData:
    return IntermediateData(tool_uses=[*calls], tool_responses=[*responses])


def _lines(turns: list[Turn], first: int = 1) -> list[object]:
    return [json.loads(line) for line in str(dialogue_of(turns, first=first)).splitlines()]


def test_a_turn_is_told_in_order_with_each_call_before_its_result() -> None:
    data = _calls(
        FunctionCall(id="1", name="weather", args={"city": "Oslo"}),
        FunctionCall(id="2", name="weather", args={"city": "Paris"}),
        FunctionCall(name="clock"),
        responses=(
            FunctionResponse(id="2", name="weather", response={"degrees": 14}),
            FunctionResponse(id="1", name="weather", response={"error": "no such city"}),
        ),
    )

    assert _lines([_turn("And Paris?", "14 degrees.", intermediate_data=data)]) == [
        {"turn": 1, "user": "And Paris?"},
        {"turn": 1, "tool_call": "weather", "id": "1", "arguments": {"city": "Oslo"}},
        {"turn": 1, "tool_result": "weather", "id": "1", "response": {"error": "no such city"}},
        {"turn": 1, "tool_call": "weather", "id": "2", "arguments": {"city": "Paris"}},
        {"turn": 1, "tool_result": "weather", "id": "2", "response": {"degrees": 14}},
        {"turn": 1, "tool_call": "clock", "arguments": None},
        {"turn": 1, "agent": "14 degrees."},
    ]


def test_what_is_missing_is_said() -> None:
    turns = [_turn("a"), _turn("b", error="quota exceeded"), _turn("c", unread=["the answer was not recorded"])]

    assert _lines(turns, first=4) == [
        {"note": BEGINNING_IS_MISSING},
        {"turn": 4, "user": "a"},
        {"turn": 4, "note": NO_ANSWER},
        {"turn": 5, "user": "b"},
        {"turn": 5, "error": "quota exceeded"},
        {"turn": 6, "user": "c"},
        {"turn": 6, "note": "the answer was not recorded"},
    ]


@given(st.text(), st.text())
@example("\u2028", "\x85\u2029\x0b")
def test_no_text_can_look_like_a_further_line(question: str, answer: str) -> None:
    told = str(dialogue_of([_turn(question, answer)])).splitlines()

    spoken = [{"turn": 1, "user": question}] if question else []
    spoken += [{"turn": 1, "agent": answer} if answer else {"turn": 1, "note": NO_ANSWER}]
    assert [json.loads(line) for line in told] == spoken


def test_old_tool_results_are_shortened_first_then_old_messages_and_the_last_turn_never() -> None:
    long = "x" * 1_000

    def turn(question: str) -> Turn:
        data = _calls(FunctionCall(name="search", args={}), responses=(FunctionResponse(name="search", response=long),))
        return _turn(question, f"first line\n{long}", intermediate_data=data)

    dialogue = dialogue_of([turn("1"), turn("2"), turn("3")])

    a_little = dialogue.shorter(100)
    assert a_little is not None
    assert a_little.left_out() == {"characters": 1_002 - START_CHARACTERS, "shortened": {"tool_result": 1}}
    assert [line.turn for line in a_little.lines if line.left_out] == [1]

    much = a_little.shorter(2_000)
    assert much is not None
    assert much.left_out()["shortened"] == {"tool_result": 2, "agent": 2}
    assert [line.text for line in much.lines if line.left_out and line.kind == "agent"] == ["first line"] * 2
    assert {line.turn for line in much.lines if line.left_out} == {1, 2}

    assert much.shorter(1) is None


def test_errors_are_shortened_after_all_else() -> None:
    long = "x" * 1_000
    dialogue = dialogue_of([_turn(long, error=long), _turn("last", "answer")])

    first = dialogue.shorter(800)
    assert first is not None
    assert first.left_out()["shortened"] == {"user": 1}
    then = first.shorter(1)
    assert then is not None
    assert then.left_out()["shortened"] == {"user": 1, "error": 1}
