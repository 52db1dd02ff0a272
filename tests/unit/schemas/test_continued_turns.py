"""Tests which steps of a session continue an earlier turn."""

from __future__ import annotations

import pytest

from traceweir.schemas.continued_turns import TurnStep, turns_of_steps


def step(written: str) -> TurnStep:
    """Returns a step: `1?` asks, `1!` says, `1:c` calls c, `1=c` answers the call c, `1~c` does so alone, and `1-c` says
    that the answer comes later."""
    turn, kind, call = written[0], written[1], written[2:]
    return TurnStep(
        turn,
        asks=kind == "?",
        says=kind == "!",
        calls=[call] if kind == ":" else (),
        answers=[call] if kind in "=~-" else (),
        pending=[call] if kind == "-" else (),
        alone=kind == "~",
    )


@pytest.mark.parametrize(
    ("steps", "turns"),
    [
        # An approval, or a late response, without a question.
        ("1? 1:c 2=c 2!", "1111"),
        # The call was answered before, and the agent had said something.
        ("1? 1:c 1=c 1! 2=c 2!", "111111"),
        # An approval in words.
        ("1? 1:c 2? 2=c 2!", "11111"),
        # The agent has said something, so the message is a question of its own.
        ("1? 1:c 1! 2? 2=c 2!", "111212"),
        # The agent works for the next question when the response comes.
        ("1? 1:c 2? 2:d 2=c 2=d 2!", "1122122"),
        # The same id in two turns.
        ("1? 1:c 1=c 2=c 2:c", "11122"),
        # A response without a call.
        ("1? 1:c 2=x 2!", "1122"),
        # The response comes beside another question.
        ("1? 1:c 2~c 2? 2!", "11122"),
        # The agent speaks before the response, and nobody has asked.
        ("1? 1:c 2! 2=c 2!", "11111"),
        # A further approval of a turn that continues another one.
        ("1? 1:c 2=c 2:d 3=d 3!", "111111"),
        # The call was answered, but only with the promise of a response.
        ("1? 1:c 1-c 1! 2? 2! 2=c 2!", "11112212"),
        ("1? 1:c 1-c 1! 2? 2=c 2!", "1111212"),
        ("1? 1:c 1-c 1! 2~c 2? 2!", "1111122"),
        ("1? 1:c 1-c 2? 2=c 2!", "111111"),
        ("1? 1:c 1-c 1! 2? 2-c 2! 3? 3=c 3!", "1111212313"),
    ],
)
def test_a_step_belongs_to_the_turn_that_it_continues(steps: str, turns: str) -> None:
    assert "".join(turns_of_steps([step(each) for each in steps.split()])) == turns


@pytest.mark.parametrize(
    ("steps", "turns"),
    [
        ("1? 1:c 2? 2! 2=c 2! 3? 3!", "11221133"),
        ("1? 1:c 2? 2:d 2=c 2=d 2!", "1122122"),
        # A call has a promise first, or a second response, and its response after another question.
        ("1? 1:c 1-c 1! 2? 2! 2=c 2!", "11112211"),
        ("1? 1:c 1=c 1! 2? 2! 2=c 2!", "11112211"),
        ("1? 1:c 1=c 2? 2=c 2!", "111212"),
    ],
)
def test_without_names_of_turns_the_answer_after_a_late_response_belongs_to_its_turn(steps: str, turns: str) -> None:
    assert "".join(turns_of_steps([step(each) for each in steps.split()], named=False)) == turns


@pytest.mark.parametrize("has_said", [True, False])
def test_a_turn_that_lacks_its_call_keeps_the_response_though_an_earlier_turn_used_the_same_id(has_said: bool) -> None:
    first = [TurnStep("1", asks=True), TurnStep("1", calls=["c"]), TurnStep("1", answers=["c"])]
    first += [TurnStep("1", says=True)] * has_said
    second = [TurnStep("2", asks=True), TurnStep("2", answers=["c"]), TurnStep("2", says=True)]

    assert turns_of_steps([*first, *second]) == ["1"] * len(first) + ["2"] * len(second)


def test_a_turn_whose_beginning_has_not_come_continues_no_turn_whose_calls_are_answered() -> None:
    first = [TurnStep("1", asks=True), TurnStep("1", calls=["c"]), TurnStep("1", answers=["c"])]
    second = [TurnStep("2", answers=["c"], begins=False), TurnStep("2", says=True, begins=False)]

    assert turns_of_steps([*first, *second]) == ["1", "1", "1", "2", "2"]


def asked(turn: str, question: str) -> TurnStep:
    return TurnStep(turn, asks=True, content=question)


def called(turn: str, call: str, name: str = "") -> TurnStep:
    return TurnStep(turn, calls=[call] if call else (), content=call or name)


def answered(turn: str, call: str) -> TurnStep:
    return TurnStep(turn, answers=[call] if call else (), responds=True)


def said(turn: str) -> TurnStep:
    return TurnStep(turn, says=True)


FIRST = [asked("1", "q"), called("1", "c")]


@pytest.mark.parametrize(
    ("steps", "turns"),
    [
        # Each model call is a turn of its source, and repeats what it has read.
        ([*FIRST, asked("2", "q"), called("2", "c"), answered("2", "c"), said("2")], "111111"),
        (
            [
                *FIRST,
                *(asked("2", "q"), called("2", "c"), answered("2", "c"), called("2", "d")),
                *(
                    asked("3", "q"),
                    called("3", "c"),
                    answered("3", "c"),
                    called("3", "d"),
                    answered("3", "d"),
                    said("3"),
                ),
            ],
            "111111111111",
        ),
        # Calls without ids have the same names and arguments.
        (
            [asked("1", "q"), called("1", "", "look"), asked("2", "q"), called("2", "", "look"), answered("2", "")],
            "11111",
        ),
        # Another agent, which is asked meanwhile, has a turn of its own.
        (
            [*FIRST, asked("2", "other"), called("2", "d"), asked("3", "q"), called("3", "c"), answered("3", "c")],
            "1122111",
        ),
        # The user asks the same again.
        ([*FIRST, asked("2", "q"), called("2", "d")], "1122"),
        ([*FIRST, asked("2", "other"), called("2", "c")], "1122"),
        ([*FIRST, said("1"), asked("2", "q"), called("2", "c")], "11122"),
        ([*FIRST, answered("1", "c"), asked("2", "q"), called("2", "c"), answered("2", "c")], "111222"),
        (
            [asked("1", "q"), called("1", "", "look"), answered("1", ""), asked("2", "q"), called("2", "", "look")],
            "11122",
        ),
        ([asked("1", "q"), asked("2", "q"), said("2")], "122"),
    ],
)
def test_a_turn_that_repeats_a_question_and_its_open_calls_continues_it(steps: list[TurnStep], turns: str) -> None:
    assert "".join(turns_of_steps(steps)) == turns
