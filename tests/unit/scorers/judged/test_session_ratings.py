"""Tests the criteria that judge a session as a whole: their inputs, their answers, and the turns that they name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    Rubric,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import Measurement, MissingInput
from traceweir.scorers.evaluation.registry import BUILT_IN
from traceweir.scorers.judge import AnswerUnusable, Question
from traceweir.scorers.judged.base import JudgedScorer, subject_at_end
from traceweir.scorers.judged.conversation_ratings import UserFrustration
from traceweir.scorers.judged.session_rating import SessionRating
from traceweir.scorers.judged.tool_call_ratings import NO_EXPECTATION
from traceweir.scorers.judged.yes_no_rating import read_rating
from traceweir.scorers.scripted_judge import ScriptedJudge

ONCE = {"num_samples": 1}
TRAJECTORY = "rubric_based_multi_turn_trajectory_quality_v1"
ROLE: JsonObject = {"agent_details": {"clerk": {"instructions": "You sell train tickets."}}}
RATINGS = [name for name, kind in BUILT_IN.items() if isinstance(kind, type) and issubclass(kind, SessionRating)]
YES_NO = [name for name in RATINGS if name != "user_frustration"]


def turn(number: int, question: str, answer: str, **more: Any) -> Turn:
    return Turn(
        Invocation(
            invocation_id=f"i{number}",
            user_content=Content.of(question),
            final_response=Content.of(answer, "model"),
            app_details=ROLE,
            **more,
        )
    )


ENGLISH = [
    turn(1, "I am allergic to nuts. A cake, please.", "The lemon cake has no nuts."),
    turn(2, "And to drink?", "Take the almond milk."),
    turn(3, "Did you listen?", "I am sorry."),
]
KOREAN = [
    turn(1, "저는 견과류 알레르기가 있어요. 케이크 하나 주세요.", "레몬 케이크에는 견과류가 없습니다."),
    turn(2, "마실 것은요?", "아몬드 우유를 드세요."),
    turn(3, "제 말 들으셨어요?", "죄송합니다."),
]
REASONS = {"en": "Turn 2 forgets the allergy.", "ko": "2번째 차례에서 알레르기를 잊었습니다."}
BOTH = pytest.mark.parametrize(
    ("turns", "reason"), [(ENGLISH, REASONS["en"]), (KOREAN, REASONS["ko"])], ids=["en", "ko"]
)


def scorer_of(metric: str, **options: Any) -> JudgedScorer:
    if metric == "conversational_guidelines":
        options.setdefault("guidelines", ["The agent is polite."])
    found: Any = BUILT_IN[metric].model_validate({"judge_model_options": ONCE, **options})
    assert isinstance(found, JudgedScorer)
    return found


def answer(result: str, turns: Any = (), reason: str = "because") -> str:
    given = {"rationale": reason, "turns": list(turns) if isinstance(turns, Sequence) else turns, "result": result}
    return json.dumps(given, ensure_ascii=False)


async def measured(scorer: JudgedScorer, turns: Sequence[Turn], *replies: str) -> tuple[Measurement, list[Question]]:
    judge = ScriptedJudge(*replies)
    found = await scorer.score(subject_at_end(scorer, turns, judge))  # type: ignore[misc]
    return found, judge.asked


@BOTH
@pytest.mark.parametrize("metric", YES_NO)
async def test_a_session_has_the_value_of_the_answer_and_names_its_turns(
    metric: str, turns: list[Turn], reason: str
) -> None:
    bad, asked = await measured(scorer_of(metric), turns, answer("no", [2], reason))
    good, _ = await measured(scorer_of(metric), turns, answer("yes", [], reason))

    assert (bad.value, bad.details["turns"], good.value, good.details["turns"]) == (0.0, ["i2"], 1.0, [])
    assert reason in bad.rationale
    assert BUILT_IN[metric].level == "session"
    said = turns[1].invocation.user_content
    assert said is not None
    assert f'{{"turn": 2, "user": {json.dumps(said.text, ensure_ascii=False)}}}' in asked[0].prompt


@pytest.mark.parametrize("metric", RATINGS)
async def test_a_korean_session_is_judged_by_unbroken_texts_within_marks_and_keeps_its_reason(metric: str) -> None:
    found_call = FunctionCall(id="c1", name="케이크_찾기", args={"맛": "레몬"})
    result = FunctionResponse(id="c1", name="케이크_찾기", response={"재고": "두 개"})
    used = IntermediateData(tool_uses=[found_call], tool_responses=[result])
    first = KOREAN[0].invocation.model_copy(update={"intermediate_data": used})
    verdict = "unresolved" if metric == "user_frustration" else "no"
    scorer = scorer_of(metric)
    reason = '아니요. "2번째" 차례에서 알레르기를 잊었습니다.'

    found, [question] = await measured(scorer, [Turn(first), *KOREAN[1:]], answer(verdict, [2, 3], reason))

    _, _, after = question.prompt.partition(f"<dialogue {question.tag}>\n")
    dialogue, closed, outside = after.partition(f"\n</dialogue {question.tag}>")
    said = [
        text.text
        for turn in KOREAN
        for text in (turn.invocation.user_content, turn.invocation.final_response)
        if text is not None
    ]
    assert closed
    assert all(json.dumps(text, ensure_ascii=False) in dialogue for text in [*said, "맛", "레몬", "재고", "두 개"])
    assert "케이크_찾기" in dialogue
    assert not any(text in question.prompt.replace(dialogue, "") for text in said)
    assert "\\u" not in dialogue
    assert outside
    assert (found.value, found.details["turns"]) == (0.0, ["i2", "i3"])
    assert found.rationale.endswith(f": {reason}")


@BOTH
@pytest.mark.parametrize(("category", "value"), [("none", 1.0), ("resolved", 1.0), ("unresolved", 0.0)])
async def test_frustration_keeps_its_category(category: str, value: float, turns: list[Turn], reason: str) -> None:
    found, _ = await measured(scorer_of("user_frustration"), turns, answer(category, [3], reason))
    assert (found.value, found.category, found.details["turns"]) == (value, category, ["i3"])


@pytest.mark.parametrize("word", ["yes", "no", "unknown", "resolved and unresolved", ""])
async def test_a_word_that_is_no_category_is_no_verdict(word: str) -> None:
    with pytest.raises(AnswerUnusable):
        await measured(scorer_of("user_frustration"), ENGLISH, answer(word))


@pytest.mark.parametrize("metric", YES_NO)
@pytest.mark.parametrize("word", ["unknown", "none", "perhaps"])
async def test_a_session_has_no_third_answer(metric: str, word: str) -> None:
    with pytest.raises(AnswerUnusable):
        await measured(scorer_of(metric), ENGLISH, answer(word))


async def test_the_most_frequent_category_of_the_verdict_counts_with_its_reason_and_turns() -> None:
    scorer = UserFrustration.model_validate({"judge_model_options": {"num_samples": 5}})
    replies = [
        answer("resolved", [1], "it has passed"),
        answer("unresolved", [3], "still angry"),
        answer("none", [2], "calm"),
        answer("none", [], "calm too"),
        answer("unresolved", [3], "still angry"),
    ]
    found, _ = await measured(scorer, ENGLISH, *replies)
    assert (found.value, found.category, found.details["turns"]) == (1.0, "none", ["i2"])
    assert found.rationale.endswith("calm")


async def test_answers_with_different_categories_in_one_reply_are_none() -> None:
    two = answer("none") + "\n" + answer("resolved")
    with pytest.raises(AnswerUnusable):
        await measured(scorer_of("user_frustration"), ENGLISH, two)


@pytest.mark.parametrize(
    ("named", "turns", "unknown"),
    [
        ([3, 1, 3], ["i1", "i3"], None),
        (["2", "Turn 3", 1.0], ["i1", "i2", "i3"], None),
        (2, ["i2"], None),
        ([2, 9, 0, -1], ["i2"], ["9", "0", "-1"]),
        (["the last one", True, None], [], ["the last one", "True", "None"]),
        ([[2]], [], ["[2]"]),
        ("none", [], ["none"]),
        (None, [], None),
        (list(range(4, 4000)), [], ["4", "5", "6", "7", "8"]),
    ],
)
async def test_a_turn_that_the_session_does_not_have_is_dropped_and_said(
    named: Any, turns: list[str], unknown: list[str] | None
) -> None:
    reply = json.dumps({"rationale": "because", "turns": named, "result": "no"})
    found, _ = await measured(scorer_of("knowledge_retention"), ENGLISH, reply)
    assert (found.details["turns"], found.details.get("unknown_turns")) == (turns, unknown)
    assert ("turns that the session does not have: " in found.rationale) is (unknown is not None)


async def test_a_verdict_as_text_names_no_turn() -> None:
    found, _ = await measured(scorer_of("conversational_safety"), ENGLISH, "It is fine.\nVerdict: yes")
    assert (found.value, found.details["turns"]) == (1.0, [])


@pytest.mark.parametrize("metric", [*RATINGS, TRAJECTORY])
async def test_a_session_without_a_turn_lacks_its_input(metric: str) -> None:
    scorer = scorer_of(metric)
    with pytest.raises(MissingInput, match="the session has no invocation"):
        await measured(scorer, [])


UNREAD: dict[str, dict[str, Any]] = {
    "answers": {"final_response": None, "unread": ["the answer is not recorded"]},
    "questions": {"user_content": None, "unread": ["the question is not recorded"]},
    "calls": {"unread": ["the tool calls of a model's answer, which has two, are not recorded"]},
}
RUBRIC = {"rubrics": [Rubric(rubric_id="r1", rubric_content={"text_property": "It is polite."})]}


@pytest.mark.parametrize("metric", [*RATINGS, TRAJECTORY])
@pytest.mark.parametrize("part", UNREAD)
async def test_a_part_that_the_criterion_needs_and_the_source_lacks_is_named_with_its_turn(
    metric: str, part: str
) -> None:
    kind: Any = BUILT_IN[metric]
    scorer = scorer_of(metric, **RUBRIC) if metric == TRAJECTORY else scorer_of(metric)
    broken = ENGLISH[1].invocation.model_copy(update=UNREAD[part])
    turns = [ENGLISH[0], Turn(broken), ENGLISH[2]]
    needed = ("calls",) if metric == TRAJECTORY else kind.needs
    if part in needed:
        with pytest.raises(MissingInput, match=f"^turn 2: {UNREAD[part]['unread'][0]}") as lacking:
            await measured(scorer, turns)
        assert lacking.value.cause == "not_recorded"
    else:
        word = '{"verdicts": {"r1": {"rationale": "r", "verdict": "yes"}}}' if metric == TRAJECTORY else None
        _, asked = await measured(scorer, turns, word or answer("none" if metric == "user_frustration" else "yes"))
        assert len(asked) == 1


async def test_a_failed_turn_without_an_answer_is_judged() -> None:
    failed = Turn(Invocation(invocation_id="i2", user_content=Content.of("And?"), error="quota exceeded"))
    found, asked = await measured(scorer_of("conversation_completeness"), [ENGLISH[0], failed], answer("no", [2]))
    assert found.details["turns"] == ["i2"]
    assert '{"turn": 2, "error": "quota exceeded"}' in asked[0].prompt


@pytest.mark.parametrize(
    ("metric", "changes", "lacks"),
    [
        ("conversational_role_adherence", {"app_details": None}, "instructions of the developer to the agent"),
        (
            "conversational_role_adherence",
            {"app_details": {"agent_details": {"a": {"instructions": ""}}}},
            "instructions",
        ),
        ("user_frustration", {"user_content": None}, "a message of the user"),
        ("conversational_safety", {"final_response": Content.of("")}, "an answer of the agent"),
    ],
)
async def test_a_session_in_which_no_invocation_has_the_part_lacks_it(
    metric: str, changes: dict[str, Any], lacks: str
) -> None:
    turns = [Turn(each.invocation.model_copy(update=changes)) for each in ENGLISH]
    with pytest.raises(MissingInput, match=f"no invocation of the session has {lacks}"):
        await measured(scorer_of(metric), turns)


async def test_guidelines_are_those_of_the_criterion_and_of_all_references() -> None:
    turns = [
        Turn(each.invocation, Reference(guidelines=guidelines))
        for each, guidelines in zip(ENGLISH, [["First."], None, ["Last.", "First."]], strict=True)
    ]
    _, asked = await measured(scorer_of("conversational_guidelines", guidelines="Own."), turns, answer("yes"))
    assert '\n"Own."\n"First."\n"Last."\n' in asked[0].prompt
    with pytest.raises(MissingInput, match="there are no guidelines"):
        await measured(scorer_of("conversational_guidelines", guidelines=[]), ENGLISH)


async def test_the_task_and_the_expected_outcome_are_those_of_the_reference() -> None:
    wanted = Reference(task="Sell a cake.", expected_outcome="The user has a cake without nuts.")
    turns = [Turn(ENGLISH[0].invocation), Turn(ENGLISH[1].invocation, wanted)]
    _, asked = await measured(scorer_of("multi_turn_task_success_v1"), turns, answer("yes"))
    assert "Sell a cake." in asked[0].prompt
    assert "The user has a cake without nuts." in asked[0].prompt


def rubric(name: str, kind: str | None = "TRAJECTORY_QUALITY") -> Rubric:
    return Rubric(rubric_id=name, rubric_content={"text_property": f"It is {name}."}, type=kind)


def verdicts(**by_rubric: tuple[str, list[int]]) -> str:
    return json.dumps(
        {"verdicts": {name: {"rationale": "r", "turns": at, "verdict": word} for name, (word, at) in by_rubric.items()}}
    )


async def test_rubrics_count_from_all_turns_and_their_references_and_name_their_turns() -> None:
    turns = [
        Turn(
            ENGLISH[0].invocation.model_copy(update={"rubrics": [rubric("kind"), rubric("other", "TOOL_USE_QUALITY")]})
        ),
        Turn(ENGLISH[1].invocation, Reference(rubrics=[rubric("short")])),
        # Equal to the rubric of the first turn, as an eval case copies it.
        Turn(ENGLISH[2].invocation.model_copy(update={"rubrics": [rubric("kind")]})),
    ]
    scorer = scorer_of(TRAJECTORY, rubrics=[rubric("own", None)])
    reply = verdicts(own=("yes", [1]), kind=("no", [2, 8]), short=("no", [3, 2]))
    found, _ = await measured(scorer, turns, reply)

    assert found.value == pytest.approx(1 / 3)
    assert found.details["turns"] == ["i2", "i3"]
    assert found.details["unknown_turns"] == ["8"]
    rubrics = found.details["rubrics"]
    assert isinstance(rubrics, dict)
    assert {name: entry["turns"] for name, entry in rubrics.items()} == {  # type: ignore[call-overload, index]
        "own": ["i1"],
        "kind": ["i2"],
        "short": ["i2", "i3"],
    }


async def test_two_rubrics_of_a_session_with_one_id_are_an_error_that_names_them() -> None:
    other = rubric("kind").model_copy(update={"rubric_content": {"text_property": "Something else."}})
    turns = [
        Turn(each.invocation.model_copy(update={"rubrics": [own]}))
        for each, own in zip(ENGLISH[:2], [rubric("kind"), other], strict=True)
    ]
    with pytest.raises(ValueError, match="rubric id 'kind' is used by two rubrics of the session"):
        await measured(scorer_of(TRAJECTORY), turns)


async def test_no_rubric_of_the_session_is_a_missing_input() -> None:
    with pytest.raises(MissingInput, match="no invocation or reference of the session has a rubric of type TRAJECTORY"):
        await measured(scorer_of(TRAJECTORY), ENGLISH)


async def test_instructions_and_tools_of_all_turns_are_told_once() -> None:
    tools = [{"name": "bake"}]
    turns = [
        ENGLISH[0],
        Turn(ENGLISH[1].invocation),
        Turn(
            ENGLISH[2].invocation.model_copy(
                update={
                    "app_details": {"agent_details": {"clerk": {"instructions": "Stop.", "tool_declarations": tools}}}
                }
            )
        ),
    ]
    _, asked = await measured(scorer_of("multi_turn_trajectory_quality_v1"), turns, answer("yes"))
    prompt = asked[0].prompt
    assert (prompt.count("You sell train tickets."), prompt.count("Stop."), prompt.count('"bake"')) == (1, 1, 1)


CALLED = turn(
    1,
    "서울 날씨는요?",
    "12도입니다.",
    intermediate_data=IntermediateData(
        tool_uses=[FunctionCall(name="weather", args={"town": "Seoul"})],
        tool_responses=[FunctionResponse(name="weather", response={"celsius": 12})],
    ),
)


@pytest.mark.parametrize("metric", ["tool_call_correctness", "tool_call_efficiency"])
@pytest.mark.parametrize(("word", "value"), [("yes", 1.0), ("no", 0.0)])
async def test_tool_calls_are_judged_turn_by_turn(metric: str, word: str, value: float) -> None:
    found, asked = await measured(scorer_of(metric), [CALLED], answer(word, reason="인자가 요청과 같습니다."))
    assert (BUILT_IN[metric].level, found.value) == ("invocation", value)
    assert "인자가 요청과 같습니다." in found.rationale
    assert '"town": "Seoul"' in asked[0].prompt


@pytest.mark.parametrize("metric", ["tool_call_correctness", "tool_call_efficiency"])
@pytest.mark.parametrize("part", ["calls", "questions"])
async def test_tool_calls_that_were_not_recorded_are_not_judged(metric: str, part: str) -> None:
    broken = Turn(CALLED.invocation.model_copy(update=UNREAD[part]))
    with pytest.raises(MissingInput):
        await measured(scorer_of(metric), [broken])


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        (None, NO_EXPECTATION),
        (Reference(final_response=Content.of("12")), NO_EXPECTATION),
        (Reference(tool_uses=[]), "\n[]\n"),
        (Reference(tool_uses=[FunctionCall(name="weather")]), '"name": "weather"'),
    ],
)
async def test_expected_calls_are_told_and_no_call_differs_from_no_expectation(
    expected: Reference | None, shown: str
) -> None:
    _, asked = await measured(scorer_of("tool_call_correctness"), [Turn(CALLED.invocation, expected)], answer("yes"))
    block = asked[0].prompt.partition("The expected calls:")[2].partition("</expected")[0]
    assert shown in block


@pytest.mark.parametrize(
    "reply",
    [
        "{}",
        '{"rationale": "The user is furious.", "turns": [1], "verdict": "unresolved"}',
        '{"rationale": "r", "result": null}',
        '{"rationale": "r", "result": "unresolved", "Result": "none"}',
        '{"error": "I cannot"}',
    ],
)
def test_an_answer_without_a_category_is_not_taken_for_the_category_none(reply: str) -> None:
    assert read_rating(reply, UserFrustration.categories) is None
