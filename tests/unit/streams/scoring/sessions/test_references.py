"""Tests which reference a turn is compared with."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from traceweir.schemas.dimensions import UNKNOWN, Dimensions
from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.reference import Reference, case_reference_id
from traceweir.schemas.score import Score
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.turns import Turn
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.streams.scoring.sessions.references import References


def asked(
    question: str,
    *,
    app: str = "shop",
    reference: Reference | None = None,
    reference_id: str | None = None,
    case: str | None = None,
) -> Turn:
    dimensions = UNKNOWN if case is None else Dimensions(labels={"case_id": case})
    invocation = Invocation(user_content=Content.of(question))
    return Turn(invocation, reference, reference_id, app, dimensions=dimensions)


def expecting(answer: str, question: str | None = None, app: str | None = None) -> Reference:
    return Reference(question=question, app_name=app, final_response=Content.of(answer))


def answers(references: References, *turns: Turn, session_id: str = "s-1") -> list[str | None]:
    return [
        turn.reference.final_response.text if turn.reference and turn.reference.final_response else None
        for turn in references.resolve(turns, session_id)
    ]


def test_an_inline_reference_precedes_the_reference_id_and_the_id_precedes_the_question() -> None:
    references = References()
    references.put("by-id", expecting("by id"))
    references.put("by-question", expecting("by question", "Where is my bag?", "shop"))
    question = "where IS my  bag?"
    inline = asked(question, reference=expecting("inline"), reference_id="by-id")
    assert answers(references, inline, asked(question, reference_id="by-id"), asked(question)) == [
        "inline",
        "by id",
        "by question",
    ]


def test_a_question_is_looked_up_in_its_app_and_then_among_references_without_an_app() -> None:
    references = References()
    references.put("a", expecting("of the shop", "Hello?", "shop"))
    references.put("b", expecting("of any app", "Hello?"))
    turns = asked("hello?"), asked("hello?", app="bank"), asked("bye?")
    assert answers(references, *turns) == ["of the shop", "of any app", None]


def test_the_latest_reference_of_an_id_applies_and_a_tombstone_deletes_it() -> None:
    references = References()
    references.put("a", expecting("first", "Hello?"))
    references.put("a", expecting("second", "Good day?"))
    assert answers(references, asked("Hello?"), asked("Good day?")) == [None, "second"]
    references.put("a", None)
    assert answers(references, asked("Good day?", reference_id="a")) == [None]


def test_a_question_has_its_former_reference_again_if_the_latest_is_removed() -> None:
    references = References()
    references.put("a", expecting("first", "Hello?"))
    references.put("b", expecting("second", "hello?"))
    references.put("b", None)
    assert answers(references, asked("Hello?")) == ["first"]
    references.put("a", None)
    references.put("c", expecting("third"))
    assert answers(references, asked("Hello?")) == [None]


def test_a_question_of_references_that_expect_different_things_selects_none_and_names_them() -> None:
    references = References()
    references.put("b#1", expecting("second", "hello?"))
    references.put("a\n#1", expecting("first", "Hello?"))
    (turn,) = references.resolve([asked("HELLO?")], "s-1")
    assert turn.reference is None
    assert turn.without_reference == (
        "references a\\n#1, b#1 have this question and expect different things, so none of them counts: remove all but "
        "one, or name the case by the label `case_id`"
    )
    assert answers(references, asked("Hello?", reference_id="b#1")) == ["second"]
    assert answers(references, asked("Hello?", case="b")) == ["second"]
    references.put("of the app", expecting("third", "Hello?", "shop"))
    assert answers(references, asked("Hello?")) == ["third"]


def test_references_of_a_question_that_expect_the_same_are_one() -> None:
    references = References()
    references.put("a", expecting("same", "Hello?"))
    references.put("b", expecting("same", "hello?").model_copy(update={"reference_id": "b"}))
    assert answers(references, asked("Hello?")) == ["same"]


async def test_a_score_names_the_references_that_its_question_does_not_tell_apart() -> None:
    references = References()
    references.put("a", expecting("first", "When?"))
    references.put("b", expecting("second", "When?"))
    (score,) = [each for each in await scored(references, [asked("When?")], "s-1") if each.level == "invocation"]
    assert score.status == "NOT_EVALUATED"
    assert (score.rationale or "").endswith("or name the case by the label `case_id`")


def test_an_unknown_reference_id_has_no_reference() -> None:
    references = References()
    references.put("a", expecting("first"))
    assert answers(references, asked("Hello?", reference_id="b")) == [None]


async def scored(references: References, turns: Sequence[Turn], session_id: str, *more: str) -> list[Score]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    session = Session(
        session_id=session_id,
        segment=0,
        revision=0,
        closed_because=ClosingReason.IDLE,
        first_record_at=now,
        last_record_at=now,
        events=[],
        traces=[],
    )
    plan = read_plan({"criteria": {"response_match_score": 0.5, **{name: {} for name in more}}})
    resolved = references.resolve(turns, session_id)
    return await evaluate(plan, session, resolved, now=lambda: now, timeout_s=1)


def with_case(case: str, *answers: str) -> References:
    references = References()
    for number, answer in enumerate(answers):
        references.put(case_reference_id(case, number), expecting(answer))
    return references


def test_a_label_names_the_case_of_a_session_and_precedes_its_id() -> None:
    references = with_case("refund", "in five days")
    references.put("rebooking#1", expecting("on Tuesday"))
    assert answers(references, asked("When?", case="rebooking"), session_id="refund") == ["on Tuesday"]
    assert answers(references, asked("When?"), session_id="refund") == ["in five days"]
    assert answers(references, asked("When?"), session_id="other") == [None]


def test_a_case_of_several_turns_is_compared_turn_by_turn_or_not_at_all() -> None:
    references = with_case("refund", "in five days", "to the card")
    references.put("question", expecting("by question", "And where?"))
    one, two, three = (asked(text, case="refund") for text in ("When?", "And where?", "Thanks."))
    assert answers(references, one, two) == ["in five days", "to the card"]
    assert answers(references, one) == [None]
    assert answers(references, one, two, three) == [None, None, None]


def test_labels_that_name_two_cases_name_none() -> None:
    references = with_case("refund", "in five days", "to the card")
    first, second = asked("When?", case="refund"), asked("And where?", case="rebooking")
    assert answers(references, first, second) == [None, None]


def test_a_case_that_became_shorter_is_compared_at_its_new_length() -> None:
    references = with_case("refund", "in five days", "to the card")
    references.put("refund#2", None)
    assert answers(references, asked("When?"), session_id="refund") == ["in five days"]


def test_a_reference_of_an_event_precedes_that_of_the_case() -> None:
    references = with_case("refund", "of the case")
    references.put("by-id", expecting("by id"))
    inline = asked("When?", reference=expecting("inline"), case="refund")
    assert answers(references, inline) == ["inline"]
    assert answers(references, asked("When?", reference_id="by-id", case="refund")) == ["by id"]


@pytest.mark.parametrize(
    ("cases", "session_id", "why"),
    [
        (["refund"], "s-1", "the case 'refund' has 2 turns, and the session 1 invocation, so they are not compared"),
        ([None], "refund", "the case 'refund' has 2 turns, and the session 1 invocation, so they are not compared"),
        (
            [None] * 3,
            "refund",
            "the case 'refund' has 2 turns, and the session 3 invocations, so they are not compared",
        ),
        (["refund", "other"], "s-1", "the label `case_id` names 2 cases in one session, so none counts"),
        (["re\nfund"], "s-1", "no reference has the case 're\\nfund' that the label `case_id` names"),
        ([None], "s-1", None),
    ],
)
async def test_a_score_says_why_the_named_case_is_not_compared(
    cases: Sequence[str | None], session_id: str, why: str | None
) -> None:
    references = with_case("refund", "in five days", "to the card")

    scores = await scored(references, [asked("When?", case=case) for case in cases], session_id, "answered")

    compared = [score for score in scores if score.metric.endswith("response_match_score")]
    assert {score.status for score in compared} == {"NOT_EVALUATED"}
    ends = f": {why}" if why else ""
    number = f"{len(cases)} invocations"
    assert [score.rationale for score in compared] == [
        *[f"no reference says which final response was expected{ends}"] * len(cases),
        f"none of {number} has a value{ends}",
    ]
    assert not any("case" in (score.rationale or "") for score in scores if score not in compared)
