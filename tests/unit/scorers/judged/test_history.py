"""A judge of a turn reads the turns before it."""

import json
from collections.abc import Sequence

import pytest

from traceweir.schemas.invocation import Content, FunctionCall, FunctionResponse, IntermediateData, Invocation
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import Measurement, Subject
from traceweir.scorers.judge import Question, Room
from traceweir.scorers.judged.base import JudgedTurn
from traceweir.scorers.judged.databricks_ratings import RelevanceToQuery
from traceweir.scorers.judged.final_response_match_v2 import FinalResponseMatch
from traceweir.scorers.judged.hallucinations_v1 import Hallucinations
from traceweir.scorers.scripted_judge import AgreeableJudge, ScriptedJudge

RETURNED = "degrees " * 200
TURNS = [
    Turn(
        Invocation(
            user_content=Content.of(f"What is the weather in {city}?"),
            final_response=Content.of("Sunny."),
            intermediate_data=IntermediateData(
                tool_uses=[FunctionCall(name="weather", args={"city": city})],
                tool_responses=[FunctionResponse(name="weather", response=RETURNED)],
            ),
        )
    )
    for city in ("Oslo", "Rome")
] + [Turn(Invocation(user_content=Content.of("And Paris?"), final_response=Content.of("Sunny, 14 degrees.")))]


class _Narrow(ScriptedJudge):
    """Has a window of so many characters."""

    def __init__(self, characters: int, *script: str) -> None:
        super().__init__(*script)
        self.characters = characters

    async def room(self, question: Question) -> Room:
        return Room(len(question.prompt), self.characters)


async def _asked(scorer: JudgedTurn, position: int = 2) -> str:
    judge = ScriptedJudge(*['{"rationale": "r", "result": "yes"}'] * 9)
    await _measured(scorer, judge, position)
    return judge.asked[0].prompt


async def _measured(scorer: JudgedTurn, judge: ScriptedJudge, position: int = 2) -> Measurement:
    subject = Subject(invocation=TURNS[position].invocation, turns=TURNS, position=position, judge=judge)
    return await scorer.score(subject)  # type: ignore[misc, no-any-return]


def _history(prompt: str) -> list[object]:
    block = prompt.partition("<history ")[2].partition("\n")[2].partition("\n</history")[0]
    return [json.loads(line) for line in block.splitlines()]


async def test_the_prompt_of_a_follow_up_holds_the_turns_before_it() -> None:
    prompt = await _asked(RelevanceToQuery())

    told = [line for line in _history(prompt) if isinstance(line, dict) and "user" in line]
    assert told == [
        {"turn": 1, "user": "What is the weather in Oslo?"},
        {"turn": 2, "user": "What is the weather in Rome?"},
    ]
    assert prompt.index("</history") < prompt.index("And Paris?")


async def test_the_prompt_of_the_first_turn_names_no_conversation() -> None:
    assert "history" not in await _asked(RelevanceToQuery(), position=0)


@pytest.mark.parametrize(
    ("history", "turns"), [(0, []), (1, [None, 2, 2, 2, 2]), (2, [1, 1, 1, 1, 2, 2, 2, 2]), ("all", [1] * 4 + [2] * 4)]
)
async def test_the_number_of_turns_can_be_chosen(history: int | str, turns: Sequence[int | None]) -> None:
    prompt = await _asked(RelevanceToQuery(history=history))
    assert [line.get("turn") for line in _history(prompt) if isinstance(line, dict)] == turns


async def test_with_adks_behaviour_a_judge_reads_no_history_unless_it_is_asked_for() -> None:
    def reads_history(scorer: FinalResponseMatch | Hallucinations) -> bool:
        subject = Subject(invocation=TURNS[2].invocation, turns=TURNS, position=2, judge=AgreeableJudge())
        return scorer.dialogue(subject) is not None

    assert reads_history(Hallucinations())
    assert not reads_history(Hallucinations(compat="adk"))
    assert reads_history(Hallucinations(compat="adk", history="all"))
    assert not reads_history(FinalResponseMatch(compat="adk"))


async def test_what_was_returned_before_belongs_to_the_context_of_a_sentence() -> None:
    judge = ScriptedJudge('{"sentences": ["Sunny, 14 degrees."]}', lambda question: "")
    with pytest.raises(Exception, match="no"):
        await _measured(Hallucinations(), judge)
    labels = judge.asked[1].prompt
    assert "belongs to the context" in labels
    assert {"turn": 1, "tool_result": "weather", "response": RETURNED} in _history(labels)


async def test_a_history_that_does_not_fit_is_shortened_and_the_details_say_so() -> None:
    whole = len(await _asked(RelevanceToQuery()))
    judge = _Narrow(whole - 500, '{"rationale": "r", "result": "yes"}')

    measured = await _measured(RelevanceToQuery(), judge)

    [question] = judge.asked
    assert len(question.prompt) <= judge.characters
    fitted = measured.details["fitted"]
    assert isinstance(fitted, dict)
    assert fitted["shortened"] == {"tool_result": 1}
    assert [line.get("left_out") for line in _history(question.prompt) if isinstance(line, dict)] == [
        None,
        None,
        fitted["characters"],
        None,
        None,
        None,
        None,
        None,
    ]


async def test_a_history_that_fits_is_not_mentioned_in_the_details() -> None:
    measured = await _measured(RelevanceToQuery(), _Narrow(10**6, '{"rationale": "r", "result": "yes"}'))
    assert "fitted" not in measured.details


async def test_a_prompt_that_cannot_be_shortened_enough_is_asked_as_short_as_possible() -> None:
    """The judge itself refuses it, before anything is paid."""
    judge = _Narrow(10, '{"rationale": "r", "result": "yes"}')
    measured = await _measured(RelevanceToQuery(), judge)
    fitted = measured.details["fitted"]
    assert isinstance(fitted, dict)
    assert fitted["shortened"] == {"tool_result": 1}
