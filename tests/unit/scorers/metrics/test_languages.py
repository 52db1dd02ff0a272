"""Spellings and forms of the same word and number are equal for metrics that compare words, in many languages."""

from __future__ import annotations

import pytest
from tests.support.scoring import scores_of

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan
from traceweir.scorers.metrics.completeness import completeness
from traceweir.scorers.metrics.keyword_coverage import keywords
from traceweir.scorers.text.elements import elements
from traceweir.scorers.text.folding import with_plain_numbers
from traceweir.scorers.text.scripts import script_of


async def score_of(metric: str, question: str, answer: str, **options: str) -> Score:
    turn = Turn(Invocation(user_content=Content.of(question), final_response=Content.of(answer)))
    return (await scores_of(read_plan({"criteria": {metric: {"threshold": 0.5, **options}}}), [turn]))[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("مَكْتَبَة", "مكتبة"),
        ("1,000", "1000"),
        ("1’000’000", "1.000.000"),
        ("1\u202f000", "1000"),
        ("١٬٠٠٠", "1000"),
        ("१०००", "1000"),
        ("ＡＢＣ", "abc"),
        ("갔습니다", "가나요"),
        ("됩니다", "되나요"),
        ("도와줄게요", "도와주세요"),
        ("예약했습니다", "예약할까요"),
    ],
)
def test_two_spellings_are_one_element(one: str, other: str) -> None:
    assert completeness(one, other).score == 1.0
    assert completeness(other, one).score == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [("1.500", "1500"), ("12,50", "1250"), ("1,00", "100"), ("погода", "погоня"), ("2024,100", "2024100")],
)
def test_other_numbers_and_words_stay_others(one: str, other: str) -> None:
    assert completeness(one, other).score < 1.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$10,000.50", "$10000.50"),
        ("1’000.50", "1000.50"),
        ("1.000.000,50", "1000000,50"),
        ("1,000.5.3", "1,000.5.3"),
        ("1,000.5,000", "1,000.5,000"),
        ("10,000,000 won", "10000000 won"),
        ("1,2,3", "1,2,3"),
        ("1,000,00", "1,000,00"),
    ],
)
def test_only_groups_of_three_digits_are_joined(text: str, found: str) -> None:
    assert with_plain_numbers(text) == found


@pytest.mark.parametrize(
    ("asked", "answered"),
    [("회의실 예약", "회의실예약이 되었습니다."), ("회의실예약", "회의실 예약이 되었습니다.")],
)
def test_a_korean_compound_is_covered_with_a_blank_and_without(asked: str, answered: str) -> None:
    assert completeness(asked, answered).score == 1.0


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("제 가방은 어디에 있나요?", "제 가방은 서울에 있습니다."),
        ("鞄はどこにありますか？", "鞄は東京にあります。"),
        ("我的包在哪里？", "我的包在北京。"),
        ("Где моя сумка?", "Моя сумка в Москве."),
    ],
)
def test_words_that_only_ask_are_not_expected(question: str, answer: str) -> None:
    assert completeness(question, answer).score == 1.0


@pytest.mark.parametrize(
    ("question", "answer", "at_most"),
    [
        ("What is 2+2?", "Bananas are yellow.", 1 / 3),
        ("What is the price?", "Bananas are yellow.", 1 / 4),
        ("Where are you?", "Bananas are yellow.", 1 / 3),
        ("Wo ist der Hund?", "Die Katze ist schwarz.", 1 / 4),
        ("¿Dónde está el perro?", "El gato duerme.", 1 / 4),
    ],
)
def test_an_answer_to_another_question_does_not_gain_by_the_words_that_ask(
    question: str, answer: str, at_most: float
) -> None:
    assert completeness(question, answer).score <= at_most


def test_a_question_of_words_that_only_ask_is_compared_as_it_is() -> None:
    assert completeness("Why?", "Why not").score == 1.0
    assert completeness("왜요?", "").input_elements


def test_grammar_in_hiragana_is_not_an_element() -> None:
    assert elements("東京の天気はどうですか？") == elements("東京 天気 どう")
    assert elements("りんごをください") == ["りん", "んご"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When does the library open?", "At ten."),
        ("도서관은 언제 여나요?", "열 시입니다."),
        ("図書館は何時に開きますか？", "午前十です。"),
        ("图书馆几点开门？", "上午十分。"),
        ("Сколько стоит билет?", "Сто рублей."),
        ("What is the capital of Australia?", "Sydney"),
        ("Which bus stops here?", "No. 7"),
        ("入場料はいくらですか？", "無料です。"),
        ("客は何人ですか？", "少ないです。"),
        ("这趟车开往哪里？", "无锡。"),
        ("哪个国家最幸福？", "不丹。"),
        ("碗是什么做的？", "不锈钢。"),
        ("ما عاصمة بوليفيا؟", "لا باز"),
        ("어떤 약을 썼나요?", "모르핀"),
        ("รอนานเท่าไร", "ไม่กี่วัน"),
    ],
)
async def test_a_short_answer_without_a_word_of_the_question_has_no_value(question: str, answer: str) -> None:
    score = await score_of("completeness", question, answer)
    assert (score.status, score.not_evaluated_because) == ("NOT_EVALUATED", "missing_input")
    assert "relevance_to_query" in score.rationale
    assert (await score_of("completeness", question, answer, compat="mastra")).value is not None


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When does the library open?", "Your parcel left our warehouse yesterday."),
        ("도서관은 언제 여나요?", "고객님의 소포가 어제 나갔습니다."),
        ("When does the library open?", ""),
        ("Open the window", "No."),
        ("2+2?", "Bananas are yellow."),
        ("What is the capital of Australia?", "I don't know."),
        ("What is the capital of Australia?", "No."),
        ("What is the capital of Australia?", "Can't say."),
        ("Wo hält der Zug?", "Weiß nicht."),
        ("도서관은 언제 여나요?", "몰라요."),
        ("図書館は何時に開きますか？", "知りません。"),
        ("图书馆几点开门？", "不知道。"),
        ("图书馆几点开门？", "没有。"),
        ("图书馆几点开门？", "不。"),
        ("図書館は何時に開きますか？", "ありません。"),
        ("図書館は何時に開きますか？", "わからない。"),
        ("도서관은 언제 여나요?", "모릅니다."),
        ("도서관은 언제 여나요?", "없습니다."),
        ("पुस्तकालय कब खुलता है?", "नहीं।"),
        ("Wann öffnet die Bibliothek?", "Keine Ahnung."),
        ("¿Cuándo abre la biblioteca?", "Ni idea."),
        ("متى تفتح المكتبة؟", "لا أعرف."),
        ("متى تفتح المكتبة؟", "لا."),
        ("Which bus stops here?", "No, 7."),
    ],
)
async def test_any_other_answer_that_covers_nothing_is_0(question: str, answer: str) -> None:
    assert (await score_of("completeness", question, answer)).value == 0.0


def test_keywords_have_one_spelling() -> None:
    assert keywords("مَكْتَبَة Straße") == keywords("مكتبة STRASSE")


async def test_similarity_ignores_vowel_signs_and_the_grouping_of_numbers() -> None:
    assert (await score_of("content_similarity", "المَكْتَبَةُ 1,000", "المكتبة 1000")).value == 1.0
    assert (await score_of("content_similarity", "STRASSE", "Straße")).value == 1.0
    assert (await score_of("content_similarity", "1,000", "1000", compat="mastra")).value != 1.0


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Привет", "Cyrillic"),
        ("مرحبا", "Arabic"),
        ("שלום", "Hebrew"),
        ("नमस्ते", "Devanagari"),
        ("สวัสดี", "Thai"),
        ("你好 world", "Han"),
        ("Grüße 你", "Latin"),
        ("123", "Latin"),
    ],
)
def test_the_script_of_most_letters(text: str, script: str) -> None:
    assert script_of(text) == script
