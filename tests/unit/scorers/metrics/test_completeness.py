"""Tests completeness and Mastra's other metrics on text in any script, and on missing text."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.scoring import make_turn, scores_of

from traceweir.schemas.invocation import Content, FunctionCall, Invocation, Part
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import ConfigError, Plan, read_plan
from traceweir.scorers.metrics.completeness import completeness
from traceweir.scorers.metrics.content_similarity import dice
from traceweir.scorers.metrics.keyword_coverage import keywords
from traceweir.scorers.text.elements import elements


def plan_of(metric: str, **options: Any) -> Plan:
    return read_plan({"criteria": {metric: {"threshold": 0.5, **options}}})


def turn(question: str | None, answer: str | None) -> Turn:
    return Turn(
        Invocation(
            user_content=None if question is None else Content.of(question),
            final_response=None if answer is None else Content.of(answer),
        )
    )


async def score_of(metric: str, question: str | None, answer: str | None, **options: Any) -> Score:
    return (await scores_of(plan_of(metric, **options), [turn(question, answer)]))[0]


@pytest.mark.parametrize(
    ("question", "on_the_point", "off_the_point"),
    [
        ("침실의 조명을 꺼 주세요", "침실 조명을 껐습니다.", "오늘 서울의 날씨는 맑습니다."),
        ("请解释光合作用", "光合作用是植物制造养分的过程。", "今天的天气很好。"),
        ("東京の天気を教えて", "東京の天気は晴れです。", "会議は十時に始まる予定。"),
        ("สภาพอากาศในกรุงเทพ", "กรุงเทพอากาศร้อน", "ฉันชอบกินข้าว"),
        ("Какая погода в Москве?", "Погода в Москве ясная.", "Спасибо за покупку!"),
        ("ما هو الطقس في القاهرة؟", "الطقس في القاهرة مشمس.", "شكرا لك"),
    ],
    ids=["Korean", "Chinese", "Japanese", "Thai", "Russian", "Arabic"],
)
def test_a_relevant_answer_covers_more_than_an_irrelevant_answer(
    question: str, on_the_point: str, off_the_point: str
) -> None:
    right, wrong = completeness(question, on_the_point).score, completeness(question, off_the_point).score
    assert right >= 0.3
    assert wrong <= right - 0.25
    assert completeness(question, question).score == 1.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("She has been working", ["she", "work"]),
        ("It wasn't booked", ["it", "not", "book"]),
        ("I'm sure that they’ll go", ["i", "be", "sure", "that", "they", "go"]),
        ("getUserName and HTTPServer2", ["get", "user", "name", "and", "httpserver2"]),
        ("Café Straße", ["cafe", "strasse"]),
        ("ﬁne ½ ＡＢＣ", ["fine", "1", "2", "abc"]),
        ("שָׁלוֹם", ["שלום"]),
        ("👩‍👩‍👧 ❤️ 1️⃣", ["1"]),
        ("a\u200db \u202eabc\u202c soft\u00adware", ["ab", "abc", "software"]),
        ("한글", ["한글"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("東", ["東"]),
    ],
)
def test_the_elements_of_a_text(text: str, found: list[str]) -> None:
    assert elements(text) == found


def test_one_character_is_covered_by_a_pair_that_has_it() -> None:
    assert completeness("水", "喝水").score == 1.0


async def test_a_text_of_ligatures_that_fold_to_many_letters_each_is_not_compared() -> None:
    ligatures = "\ufdfa" * 2_000
    for question, answer in ((ligatures, "peace"), ("peace", ligatures)):
        score = await score_of("completeness", question, answer)
        assert (score.status, score.not_evaluated_because) == ("NOT_EVALUATED", "error")
        assert "a text of 2,000 characters has 36,000" in score.rationale
    assert (await score_of("completeness", ligatures, "peace", compat="mastra")).value == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        " ".join(["\ufdfa"] * 30),
        "في كل صفحة من الكتاب يذكر المؤلف اسم النبي ﷺ مرة واحدة. " * 500,
        "값" * 20_000,
        "ᾂ" * 20_000,
        "½㏋…" * 20_000,
    ],
    ids=["few ligatures", "Arabic", "Korean", "Greek", "symbols"],
)
def test_ordinary_text_may_grow_when_it_is_folded(text: str) -> None:
    assert completeness(text, text).score == 1.0


async def test_details_name_the_elements_and_count_them() -> None:
    score = await score_of("completeness", "The lazy dog", "A dog")
    assert score.value == pytest.approx(1 / 3)
    assert score.details == {
        "input_elements": ["the", "lazy", "dog"],
        "output_elements": ["a", "dog"],
        "missing_elements": ["the", "lazy"],
        "element_counts": {"input": 3, "output": 2},
    }


async def test_details_stay_small_however_long_the_texts_are() -> None:
    long = " ".join(f"{'x' * 100}{number}" for number in range(2000))
    score = await score_of("completeness", long, "no")
    details: Any = score.details
    assert [len(details[name]) for name in ("input_elements", "missing_elements")] == [100, 100]
    assert len(str(score.details)) < 20_000
    assert score.details["element_counts"] == {"input": 2000, "output": 1}


@pytest.mark.parametrize("metric", ["completeness", "keyword_coverage", "content_similarity"])
async def test_without_user_content_there_is_no_value(metric: str) -> None:
    score = await score_of(metric, None, "hello")
    assert (score.status, score.not_evaluated_because) == ("NOT_EVALUATED", "missing_input")
    assert "user content" in score.rationale


@pytest.mark.parametrize("metric", ["completeness", "keyword_coverage"])
@pytest.mark.parametrize("nothing", ["", "?!", "..."])
async def test_a_question_without_words_has_a_value_only_with_mastras_rules(metric: str, nothing: str) -> None:
    assert (await score_of(metric, nothing, "hello")).not_evaluated_because == "missing_input"
    assert (await score_of(metric, nothing, "?", compat="mastra")).value == 1.0


async def test_a_missing_response_counts_as_an_empty_response() -> None:
    assert (await score_of("completeness", "hello", None)).value == 0.0
    assert (await score_of("keyword_coverage", "refund", None)).value == 0.0


async def test_only_mastra_reads_the_last_text_part_alone() -> None:
    parts = Content(parts=[Part(text="alpha"), Part(text="beta"), Part(function_call=FunctionCall(name="find"))])
    asked = [Turn(Invocation(user_content=parts, final_response=Content.of("beta")))]
    assert (await scores_of(plan_of("completeness"), asked))[0].value == 0.5
    assert (await scores_of(plan_of("completeness", compat="mastra"), asked))[0].value == 1.0


def test_keywords_can_be_in_any_script_and_exclude_stop_words() -> None:
    assert list(keywords("I don't know the price of 침실의 조명 2 光合")) == ["price", "침실", "조명", "光合"]


@pytest.mark.parametrize(
    ("one", "other", "value"), [("", "", 1.0), ("a", "b", 0.0), ("ab", "ab", 1.0), ("aaaa", "aa", 0.5)]
)
def test_the_dice_coefficient_of_two_texts(one: str, other: str, value: float) -> None:
    assert dice(one, other) == value


async def test_similarity_ignores_the_normal_form_of_a_character() -> None:
    assert (await score_of("content_similarity", "na\u00efve", "nai\u0308ve")).value == 1.0
    assert (await score_of("content_similarity", "na\u00efve", "nai\u0308ve", compat="mastra")).value != 1.0


def test_tool_call_accuracy_requires_an_expectation() -> None:
    with pytest.raises(ConfigError, match="expected_tool or expected_tool_order must be given"):
        plan_of("tool_call_accuracy")
    with pytest.raises(ConfigError, match="expectedToolOrder"):
        plan_of("tool_call_accuracy", expectedToolOrder=[])


async def test_tool_call_accuracy_reports_the_calls() -> None:
    called = [make_turn(tools=[FunctionCall(name="book")])]
    score = (await scores_of(plan_of("tool_call_accuracy", expectedTool="find"), called))[0]
    assert (score.value, score.details) == (0.0, {"called": ["book"]})


def test_compat_accepts_only_mastra() -> None:
    with pytest.raises(ConfigError, match="compat"):
        plan_of("completeness", compat="ragas")


class CountingExecutor(ThreadPoolExecutor):
    """Counts the calls that run in its threads."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.submitted = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        return super().submit(fn, *args, **kwargs)


async def test_only_long_texts_are_compared_in_a_thread() -> None:
    executor, plan, long = CountingExecutor(), plan_of("completeness"), "dog " * 20_000
    asyncio.get_running_loop().set_default_executor(executor)

    async def score_without_timeout(question: str, answer: str) -> Score:
        return (await scores_of(plan, [turn(question, answer)], timeout_s=math.inf))[0]

    assert (await score_without_timeout("dog", "dog")).value == 1.0
    assert executor.submitted == 0
    assert (await score_without_timeout(long, long)).value == 1.0
    assert executor.submitted == 1
    assert (await score_without_timeout("?" * 60_000, "")).not_evaluated_because == "missing_input"
    assert executor.submitted == 2


async def test_the_rationale_counts_covered_elements() -> None:
    score = await score_of("completeness", "engine cat", "The engineer has cats.")
    assert (score.value, (score.rationale or "").split(";")[0]) == (0.5, "1 of 2 elements of the input are covered")
