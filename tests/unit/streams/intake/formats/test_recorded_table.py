"""Tests the tables of recorded sessions: their values, errors of invalid files, and the table in the documentation."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from benchmarks import recorded
from benchmarks.result_tables import stored, tables_in
from tests.support.paths import ROOT
from tests.support.recorded import recorded_sessions

from traceweir.streams.intake.formats.documents import InputError

PAGE = ROOT / "docs" / "recorded-sessions.md"
FIND, BOOK = {"name": "find", "kwargs": {"to": "SEA"}}, {"name": "book", "kwargs": {"seats": 2}}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRACEWEIR_") and name != recorded.VARIABLE]:
        monkeypatch.delenv(name)


def transcript(*calls: dict[str, Any], answer: str = "Done.", **more: Any) -> dict[str, Any]:
    """Returns a session with these calls, one per message, whose reference expects `find` and then `book`."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Book a flight."}]
    for number, call in enumerate(calls):
        function = {"name": call["name"], "arguments": json.dumps(call["kwargs"])}
        made = {"id": f"call-{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": f"call-{number}", "name": call["name"], "content": "[]"})
        if number == 0:  # a second user message: the reference applies to the whole session and not to one turn
            messages += [{"role": "assistant", "content": "Shall I?"}, {"role": "user", "content": "Yes."}]
    task = {"actions": [FIND, BOOK], "outputs": []}
    return {"traj": [*messages, {"role": "assistant", "content": answer}], "info": {"task": task}, **more}


def write(path: Path, *documents: dict[str, Any]) -> Path:
    path.write_text(json.dumps(documents))
    return path


def cells(text: str) -> dict[str, list[str]]:
    """Returns the cells of each row by the name of the row."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    assert {len(row) for row in rows} == {9}
    return {row[0]: row[1:] for row in rows}


@pytest.mark.slow
def test_every_criterion_has_a_row_with_its_statistics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(
        tmp_path / "a.json",
        transcript(FIND, BOOK, reward=1.0, task_id=0),
        transcript(BOOK, FIND, reward=1.0, task_id=1),
        transcript(FIND, reward=0.0, task_id=2),
        transcript({"name": "find", "kwargs": {"to": "JFK"}}, reward=0.5, task_id=3),
        transcript(FIND, BOOK, task_id=4),
    )
    recorded.main([str(file)])
    said = capsys.readouterr().out
    rows = cells(said)

    assert f"`{hashlib.sha256(file.read_bytes()).hexdigest()}`" in said
    assert "5 sessions of 5 tasks; 2 with reward 1, 2 with another, 1 without one." in said
    assert rows["`trajectory_in_order_match`"][:7] == ["5", "0", "0.400", "0.000", "0.000", "1.000", "0.750"]
    assert rows["`trajectory_any_order_match`"][:7] == ["5", "0", "0.600", "0.000", "1.000", "1.000", "1.000"]
    assert rows["`trajectory_recall`"][:7] == ["5", "0", "0.700", "0.500", "1.000", "1.000", "1.000"]
    assert rows["`trajectory_recall`, `ignore_args`"][2] == "0.800"
    assert rows["`tool_trajectory_avg_score`, `EXACT`"] == rows["`trajectory_exact_match`"]
    assert rows["`trajectory_single_tool_use`, `book`"][:3] == ["5", "0", "0.600"]
    assert rows["`response_match_score`"] == ["0", "5 `missing_input`", *["undefined"] * 6]
    assert rows["`trace_value`, `novelty`"][:2] == ["4", "1 `first_of_scope`"]
    assert rows["`trace_value`, `outcome_confidence`"][6:] == ["0.500", "all equal"]
    assert "nan" not in said


def test_the_area_under_the_curve_of_a_single_class_is_undefined(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", transcript(FIND, reward=1), transcript(FIND, BOOK, reward=1.0))
    for row in cells(recorded.tables(file)).values():
        assert row[6] == "undefined"


@pytest.mark.slow
def test_expected_outputs_are_compared_with_the_last_answer(tmp_path: Path) -> None:
    said = transcript(answer="It is 327 dollars.", reward=1)
    said["info"]["task"]["outputs"] = ["327"]
    row = cells(recorded.tables(write(tmp_path / "a.json", said, transcript(reward=0))))["`response_match_score`"]
    assert row[:3] == ["1", "1 `missing_input`", "0.400"]


def test_an_empty_list_of_actions_is_an_expectation_and_a_missing_list_is_not(tmp_path: Path) -> None:
    nothing, unsaid = transcript(reward=1), transcript(reward=0)
    nothing["info"]["task"]["actions"], unsaid["info"] = [], {}
    rows = cells(recorded.tables(write(tmp_path / "a.json", nothing, unsaid)))
    assert rows["`trajectory_exact_match`"][:3] == ["1", "1 `missing_input`", "1.000"]


def test_names_from_the_file_cannot_break_the_table(tmp_path: Path) -> None:
    call = {"name": "a|b`c\n| `d", "kwargs": {}}
    rows = cells(recorded.tables(write(tmp_path / "a.json", transcript(call, reward=1))))
    assert any(name.startswith("`trajectory_single_tool_use`, `a/b'c") for name in rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": "good"}, "document 2: reward must be a number, not 'good'"),
        ({"reward": True}, "document 2: reward must be a number, not 'True'"),
        ({"info": {"task": {"actions": {}}}}, "document 2: info.task.actions must be a list"),
        (
            {"info": {"task": {"actions": [FIND, {"name": "x"}]}}},
            r"document 2: info.task.actions\[1\]: must be an object",
        ),
        ({"info": {"task": {"outputs": [1]}}}, "document 2: info.task.outputs must be a list of strings"),
        ({"traj": 7}, "document 2: traj"),
    ],
)
def test_an_invalid_file_is_reported_with_document_and_key(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    file = write(tmp_path / "a.json", transcript(reward=0), {**transcript(FIND, reward=1), **change})
    with pytest.raises(InputError, match=message):
        recorded.tables(file)


def test_a_missing_or_empty_file_has_exit_code_2_and_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.json").write_text("[]")
    for name, message in (("none.json", "cannot be opened"), ("empty.json", "contains no recorded session")):
        with pytest.raises(SystemExit) as ended:
            recorded.main([str(tmp_path / name)])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err


def test_without_a_file_the_benchmark_names_the_variable_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(recorded.VARIABLE, raising=False)
    recorded.run()
    assert capsys.readouterr().out.startswith(f"recorded: skipped; set {recorded.VARIABLE}")


@pytest.mark.large
def test_the_files_have_the_printed_tables() -> None:
    file, page = recorded_sessions(), PAGE.read_text("utf-8")
    if hashlib.sha256(file.read_bytes()).hexdigest() not in page:
        pytest.skip(f"the page is about another file than {recorded.VARIABLE} names")
    *metrics, rates = tables_in(recorded.tables(file))
    assert [row for table in metrics for row in table.rows] == stored("recorded-sessions").rows
    assert rates == stored("recorded-rates")
