"""The cases of eval sets become references, and what a live session cannot be matched by is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.files import Chosen, read_eval_file
from traceweir.streams.lab.evals.references import CaseReferences, references_of


def turn(question: str, answer: str) -> dict[str, Any]:
    return {"user_content": {"parts": [{"text": question}]}, "final_response": {"parts": [{"text": answer}]}}


def case(name: str, *turns: dict[str, Any], app: str | None = "desk") -> dict[str, Any]:
    given = {} if app is None else {"session_input": {"app_name": app, "user_id": "u"}}
    return {"eval_id": name, "conversation": [*turns], **given}


def pushed(folder: Path, *cases: dict[str, Any], app: str | None = None) -> CaseReferences:
    path = folder / "cases.evalset.json"
    path.write_bytes(orjson.dumps({"eval_set_id": "cases", "eval_cases": [*cases]}))
    return references_of([read_eval_file(Chosen(path))], app)


def test_a_turn_has_the_expectations_of_eval_and_the_end_of_a_former_case_is_removed(tmp_path: Path) -> None:
    rubric = {"rubric_id": "polite", "rubric_content": {"text_property": "The agent is polite."}}
    found = pushed(tmp_path, {**case("refund", turn("When?", "Soon."), turn("Where?", "Here.")), "rubrics": [rubric]})

    assert list(found.records) == ["refund#1", "refund#2", "refund#3"]
    first, second, third = found.records.values()
    assert third is None
    assert first is not None
    assert second is not None
    assert first.final_response is not None
    assert (first.final_response.text, first.tool_uses, first.question) == ("Soon.", [], None)
    assert [each.rubric_id for each in second.rubrics or ()] == ["polite"]


def test_the_question_of_a_case_with_one_turn_is_looked_up_in_its_app_or_in_the_given_one(tmp_path: Path) -> None:
    cases = case("one", turn("When?", "Soon.")), case("two", turn("Where?", "Here."), app=None)
    own, given = pushed(tmp_path, *cases), pushed(tmp_path, *cases, app="live")

    asked = {name: (each.app_name, each.question) for name, each in own.records.items() if each is not None}
    assert asked == {"one#1": ("desk", "When?"), "two#1": (None, "Where?")}
    assert {each.app_name for each in given.records.values() if each is not None} == {"live"}
    (note,) = own.notes
    assert "the app desk" in note
    assert given.notes == ()


def test_a_question_that_two_cases_answer_otherwise_selects_neither_and_this_is_said(tmp_path: Path) -> None:
    found = pushed(
        tmp_path,
        case("one", turn("When?", "Soon.")),
        case("two", turn(" when? ", "Never.")),
        case("three", turn("When?", "Soon."), app="other"),
        app=None,
    )
    assert {name for name, each in found.records.items() if each is not None and each.question} == {"three#1"}
    assert "cases 'one', 'two' ask the same question and expect different answers" in found.notes[0]


def test_cases_with_equal_expectations_are_not_ambiguous(tmp_path: Path) -> None:
    found = pushed(tmp_path, case("one", turn("When?", "Soon.")), case("two", turn("When?", "Soon.")), app="live")
    assert found.notes == ()


def test_cases_of_several_turns_and_scenarios_are_named(tmp_path: Path) -> None:
    scenario = {"eval_id": "free", "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask."}}
    found = pushed(tmp_path, case("refund", turn("When?", "Soon."), turn("Where?", "Here.")), scenario)
    several, without = found.notes
    assert "1 case has several turns ('refund')" in several
    assert without.startswith("'free': without a conversation")
    assert found.cases == 1


def test_two_files_with_the_same_case_are_refused(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.evalset.json"
        path.write_bytes(orjson.dumps({"eval_set_id": name, "eval_cases": [case("one", turn("When?", "Soon."))]}))
        files.append(read_eval_file(Chosen(path)))
    with pytest.raises(InputError, match="case 'one' has the eval id of a case in"):
        references_of(files)
