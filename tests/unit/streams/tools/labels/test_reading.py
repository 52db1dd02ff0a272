"""A file of labels: each row is a label or a sentence, and a bad row costs no other one."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.tools.labels.reading import FoundLabels, LabelDefaults, read_label_file, unread_columns

TRACE: dict[str, Any] = {
    "info": {
        "trace_id": "tr-1",
        "trace_metadata": {"mlflow.trace.session": "chat-1"},
        "assessments": [],
    },
    "data": {"spans": []},
}
ASSESSMENT = {
    "assessment_name": "correctness",
    "source": {"source_type": "HUMAN", "source_id": "ana@example.org"},
    "create_time": "2026-02-01T10:00:00Z",
    "feedback": {"value": True},
    "rationale": "As documented.",
}


def read(folder: Path, name: str, content: str, **defaults: Any) -> FoundLabels:
    file = folder / name
    file.write_text(content)
    os.utime(file, (1_760_000_000, 1_760_000_000))
    with file.open("rb") as stream:
        return read_label_file(stream, LabelDefaults(**defaults))


def with_assessments(*changes: dict[str, Any]) -> str:
    info = TRACE["info"] | {"assessments": [ASSESSMENT | each for each in changes]}
    return json.dumps(TRACE | {"info": info})


def test_a_label_from_the_future_costs_no_other_row(tmp_path: Path) -> None:
    times = ("2026-01-31T12:00:00Z", "2026-01-31T12:06:00Z", "0001-01-01T00:00:00+14:00", "2026-01-31T12:04:00Z")
    rows = [f"s-{at},helpful,pass,ana,{time}" for at, time in enumerate(times)]
    columns = "session_id,criterion,verdict,annotator,occurred_at"
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    found = read(tmp_path, "labels.csv", "\n".join([columns, *rows]), now=now)
    assert [each.subject.session_id for each in found.labels] == ["s-0", "s-3"]
    ahead, old = found.problems
    assert "occurred_at: 2026-01-31T12:06:00+00:00 is more than 5 minutes ahead of now" in ahead
    assert "is before 1970" in old


def test_good_rows_of_a_table_are_kept_beside_bad_ones(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "labels.csv",
        "session_id,invocation_id,criterion,verdict,value,annotator,note,color\n"
        "s-1,,helpful,PASS,,ana,fine,red\n"
        "s-2,,helpful,maybe,,ana,,\n"
        "s-3,i-1,helpful,,4,ana,,\n"
        ",,helpful,pass,,ana,,\n"
        "s-5,,helpful,pass,,,,\n",
    )
    assert [(each.subject.session_id, each.subject.level) for each in found.labels] == [
        ("s-1", "session"),
        ("s-3", "invocation"),
    ]
    first, second = found.labels
    assert (first.verdict, first.note, second.verdict, second.value) == ("pass", "fine", None, 4.0)
    assert found.problems == [
        f"{tmp_path / 'labels.csv'}: row 2: verdict: Input should be 'pass', 'fail' or 'unsure'",
        f"{tmp_path / 'labels.csv'}: row 4: session_id: Field required",
        f"{tmp_path / 'labels.csv'}: row 5: annotator is missing: name who judged in this column, or with --annotator",
    ]
    assert (unread_columns(found) or "").startswith("not read: color;")


def test_a_file_that_is_read_twice_has_the_same_labels(tmp_path: Path) -> None:
    first, second = (
        read(tmp_path, "l.csv", "session_id,verdict\ns,fail\n", annotator="a", criterion="c") for _ in "12"
    )
    assert first.labels == second.labels


def test_a_label_without_a_time_on_standard_input_is_refused_with_the_way_out() -> None:
    given = io.BytesIO(b'{"session_id": "s", "criterion": "c", "verdict": "pass", "annotator": "a"}\n')
    found = read_label_file(given, LabelDefaults())
    (problem,) = found.problems
    assert problem.endswith("occurred_at is missing: say when the label was given, as in 2026-01-31T12:00:00Z")


def test_json_lines_are_read_as_documents_of_the_topic_and_as_flat_rows(tmp_path: Path) -> None:
    flat = {"session_id": "s", "segment": 0, "revision": 1, "criterion": "c", "verdict": "no", "annotator": "a"}
    nested = {"subject": {"session_id": "s", "segment": 0, "revision": 1, "level": "session"}, "criterion": "c"}
    nested |= {"verdict": "fail", "annotator": "a", "label_id": "own"}
    found = read(tmp_path, "l.jsonl", f"{json.dumps(flat)}\nno JSON\n{json.dumps(nested)}\n[1]\n")
    first, second = found.labels
    assert second.label_id == "own"
    assert first == second.model_copy(update={"label_id": first.label_id})
    assert [each.partition(": line ")[2][:11] for each in found.problems] == ["2: is not J", "4: is not a"]


@pytest.mark.parametrize(("written", "verdict"), [(True, "pass"), (False, "fail"), ("True", "pass")])
def test_true_and_false_are_verdicts_in_json_too(tmp_path: Path, written: bool | str, verdict: str) -> None:
    row = {"session_id": "s", "criterion": "c", "verdict": written, "annotator": "a"}
    (label,) = read(tmp_path, "l.jsonl", json.dumps(row)).labels
    assert label.verdict == verdict


def test_a_file_cannot_claim_that_a_token_proves_the_name(tmp_path: Path) -> None:
    row = {"session_id": "s", "criterion": "c", "verdict": "pass", "annotator": "root", "self_declared": False}
    (label,) = read(tmp_path, "l.jsonl", json.dumps(row)).labels
    assert label.self_declared


def test_what_people_wrote_to_mlflow_becomes_labels_of_the_traced_invocation(tmp_path: Path) -> None:
    found = read(
        tmp_path, "traces.jsonl", with_assessments({}, {"feedback": {"value": "no"}, "assessment_name": "ours"})
    )
    first, second = found.labels
    assert found.problems == []
    assert (first.subject.session_id, first.subject.invocation_id) == ("chat-1", "tr-1")
    assert first.criterion == "response/llm_judged/correctness/rating"
    assert (first.verdict, first.annotator, first.note) == ("pass", "ana@example.org", "As documented.")
    assert (first.drawn, first.calibrates, first.self_declared) == ("none", False, True)
    assert (second.criterion, second.verdict) == ("ours", "fail")


@pytest.mark.parametrize(
    "changed",
    [
        {"source": {"source_type": "LLM_JUDGE", "source_id": "gpt"}},
        {"source": {"source_type": "CODE", "source_id": "x"}},
        {"valid": False},
        {"feedback": None, "expectation": {"value": "x"}},
    ],
    ids=["judge", "code", "overridden", "expectation"],
)
def test_what_is_no_judgement_of_a_person_is_no_label(tmp_path: Path, changed: dict[str, Any]) -> None:
    found = read(tmp_path, "traces.jsonl", with_assessments(changed))
    assert (found.labels, found.problems, found.without_people) == ([], [], 1)


def test_an_assessment_of_a_session_is_a_label_of_the_session(tmp_path: Path) -> None:
    (label,) = read(tmp_path, "t.jsonl", with_assessments({"metadata": {"mlflow.trace.session": "chat-1"}})).labels
    assert (label.subject.level, label.subject.session_id) == ("session", "chat-1")


def test_an_assessment_that_cannot_be_used_is_named_and_its_neighbour_is_kept(tmp_path: Path) -> None:
    found = read(tmp_path, "t.jsonl", with_assessments({"feedback": {"value": [1]}}, {}, {"create_time": None}))
    assert len(found.labels) == 1
    listed, timeless = found.problems
    assert "line 1, assessment 'response/llm_judged/correctness/rating': category: " in listed
    assert "occurred_at is missing" in timeless


CRITERIA: dict[str, Any] = {
    "criteria": {
        "helpful": {"threshold": 0.5, "prompt": "Is it? {answer}"},
        "topic": {"threshold": 0, "prompt": "What? {question}", "scale": {"categories": {"refund": 1, "other": 0}}},
        "user_frustration": 1,
    }
}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("helpful,,7,", "value: 7 is off the scale of helpful, a number from 0 to 1"),
        ("helpful,,-0.1,", "value: -0.1 is off the scale of helpful, a number from 0 to 1"),
        ("helpful,,0.4,", None),
        ("helpful,pass,,", None),
        ("helpful,,,refund", "category: 'refund' is no category of helpful; it has none"),
        ("topic,,,refund", None),
        ("topic,,,Paris", "category: 'Paris' is no category of topic; it has other, refund"),
        ("user_frustration,,,resolved", None),
        ("user_frustration,,,angry", "category: 'angry' is no category of user_frustration"),
        ("polite,,7,", None),
    ],
)
def test_a_label_off_the_scale_of_its_criterion_is_named(tmp_path: Path, row: str, problem: str | None) -> None:
    content = f"session_id,annotator,criterion,verdict,value,category\ns-1,ana,{row}\ns-2,ana,helpful,pass,,\n"
    found = read(tmp_path, "labels.csv", content, plan=read_plan(CRITERIA))
    assert len(found.labels) == (2 if problem is None else 1)
    if problem is not None:
        assert problem in found.problems[0]
    assert found.unknown == ({"polite": 1} if row.startswith("polite") else {})
    assert read(tmp_path, "labels.csv", content).problems == []


def test_the_name_of_an_outcome_is_free(tmp_path: Path) -> None:
    content = "session_id,annotator,criterion,verdict\ns-1,ana,refunded,pass\n"
    assert read(tmp_path, "labels.csv", content, plan=read_plan(CRITERIA), kind="outcome").unknown == {}
