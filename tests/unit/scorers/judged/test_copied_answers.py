"""A judge that copies from its prompt has given no verdict, whatever word stands in the copy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.scorers.judged.test_prompts import ASKED, FULL, VARIANTS, subject_of

from traceweir.scorers.base import Subject
from traceweir.scorers.judge import AnswerUnusable, Judge, Question, Reply
from traceweir.scorers.judged.copied_reasons import is_copied
from traceweir.scorers.judged.safety_v1 import Safety
from traceweir.scorers.scripted_judge import PRICE, AgreeableJudge, ScriptedJudge

VERDICTS = [name for name in ASKED if not name.endswith((*VARIANTS, ".sentences"))]
EXAMPLE = re.compile(r'^\{"\w+": .*"\.\.\."[^"]*\}$', re.MULTILINE)
VERDICT_WORD = re.compile(r"\b(yes|no|valid|invalid|safe|unsafe|supported|unsupported|true|false|pass|fail)\b")


class CopyingJudge(Judge):
    """Divides a response into one sentence, and answers all else with what `copied` makes of an agreeable answer."""

    def __init__(self, copied: Callable[[Question, Any], str]) -> None:
        self._copied = copied

    async def ask(self, question: Question) -> Reply:
        agreeable = await AgreeableJudge().ask(question)
        answer = json.loads(agreeable.text)
        return agreeable if "sentences" in answer else Reply(text=self._copied(question, answer), cost=PRICE)


def example(question: Question, answer: Any) -> str:
    [found] = EXAMPLE.findall(question.prompt)
    return str(found)


def with_reason(reason: str) -> Callable[[Question, Any], str]:
    """Returns a function that gives an agreeable answer the same reason everywhere."""

    def copied(question: Question, answer: Any) -> str:
        return json.dumps(_with_reason(answer, reason))

    return copied


def _with_reason(answer: Any, reason: str) -> Any:
    if isinstance(answer, list):
        return [_with_reason(each, reason) for each in answer]
    if isinstance(answer, dict):
        return {
            key: reason if key in ("rationale", "reasoning") else _with_reason(each, reason)
            for key, each in answer.items()
        }
    return answer


@pytest.mark.parametrize("name", VERDICTS)
async def test_the_example_of_a_prompt_names_no_verdict_and_is_none(name: str) -> None:
    scorer, _, _ = ASKED[name]
    prompts: list[str] = []

    def copied(question: Question, answer: Any) -> str:
        prompts.append(question.prompt)
        return example(question, answer)

    with pytest.raises(AnswerUnusable):
        await scorer.score(subject_of(name, CopyingJudge(copied)))  # type: ignore[misc]
    [shown] = {example(Question(metric="m", version="1", model="m", prompt=each), None) for each in prompts}
    assert VERDICT_WORD.findall(shown) == []


@pytest.mark.parametrize("name", VERDICTS)
@pytest.mark.parametrize(
    "reason", ["...", "Escape quotation marks in a text, as JSON requires.", "write one JSON OBJECT and nothing else"]
)
async def test_a_verdict_beside_a_copied_reason_does_not_count(name: str, reason: str) -> None:
    scorer, _, _ = ASKED[name]
    judge = CopyingJudge(with_reason(reason))
    with pytest.raises(AnswerUnusable):
        await scorer.score(subject_of(name, judge))  # type: ignore[misc]


async def test_a_reason_that_quotes_the_case_counts() -> None:
    reply = {"reasoning": "Is there a train to Busan? Yes: KTX 121.", "is_the_agent_response_safe": "yes"}
    judge = ScriptedJudge(*[json.dumps(reply)] * 5)
    assert (await Safety().score(Subject(invocation=FULL, judge=judge))).value == 1.0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("safety_v1", "Violence: it glorifies violence, calls for it"),
        ("hallucinations_v1.labels", "The context states it, or it follows from the context."),
        ("groundedness", "the context contradicts it"),
        ("relevance_to_query", "The answer is about something else."),
    ],
)
def test_a_reason_in_the_words_of_the_rules_is_a_reason(name: str, reason: str) -> None:
    assert not is_copied(reason, name)
