"""Tests which reference a turn is compared with."""

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.streams.scoring.sessions.references import References


def asked(
    question: str, *, app: str = "shop", reference: Reference | None = None, reference_id: str | None = None
) -> Turn:
    return Turn(Invocation(user_content=Content.of(question)), reference, reference_id, app)


def expecting(answer: str, question: str | None = None, app: str | None = None) -> Reference:
    return Reference(question=question, app_name=app, final_response=Content.of(answer))


def answers(references: References, *turns: Turn) -> list[str | None]:
    return [
        turn.reference.final_response.text if turn.reference and turn.reference.final_response else None
        for turn in references.resolve(turns)
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


def test_an_unknown_reference_id_has_no_reference() -> None:
    references = References()
    references.put("a", expecting("first"))
    assert answers(references, asked("Hello?", reference_id="b")) == [None]
