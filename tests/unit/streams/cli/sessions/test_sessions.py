"""`traceweir sessions`: what Traceweir understood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.cli_inputs import WriteInput
from tests.support.command_line import Run
from tests.support.paths import ROOT

from traceweir.schemas.session import Session
from traceweir.streams.tools.testing.builders import event


def file_of(path: Path, *events: object) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in events))
    return str(path)


def text(found: str) -> dict[str, object]:
    return {"parts": [{"text": found}]}


def story(session: str = "s") -> list[object]:
    return [
        event("invocation.started", session, 1, invocation_id="i", user_content=text("Is it \x1b[31m[bold]late?")),
        event("tool.called", session, 2, invocation_id="i", name="clock", args={"zone": "UTC"}, call_id="1"),
        event("tool.returned", session, 3, invocation_id="i", name="clock", call_id="1", response={"time": 9}),
        event("tool.called", session, 4, invocation_id="i", name="bell", call_id="2"),
        event("tool.returned", session, 5, invocation_id="i", name="bell", call_id="2", error="no bell"),
        event("model.called", session, 6, invocation_id="i", model="m-1", input_tokens=7, output_tokens=2),
        event("invocation.completed", session, 8, invocation_id="i", final_response=text("No.")),
    ]


def test_a_session_shows_question_tools_answer_and_tokens(run: Run, tmp_path: Path) -> None:
    ended = run("sessions", file_of(tmp_path / "a.jsonl", *story()))
    lines = [line.strip() for line in ended.out.splitlines()]
    assert lines[0].startswith("session s: 1 invocation, 0 reasoning traces")
    assert lines[2:] == [
        r"question: Is it \x1b[31m[bold]late?",
        'tool clock({"zone":"UTC"})',
        'result: {"time":9}',
        "tool bell(args missing)",
        "error: no bell",
        "answer: No.",
        "tokens: 7 in, 2 out (m-1)",
    ]
    assert (ended.code, ended.err) == (0, "")


def in_cloud_event(data: object, number: int, **more: object) -> dict[str, object]:
    return {"specversion": "1.0", "id": str(number), "source": "/shop", "type": "x", "data": data, **more}


@pytest.mark.parametrize("more", [{}, {"session_id": "other"}], ids=["plain", "with another session"])
def test_events_in_cloud_events_are_those_of_the_session_that_they_name(
    run: Run, tmp_path: Path, more: dict[str, object]
) -> None:
    events = [in_cloud_event(each, number, **more) for number, each in enumerate(story())]
    plain = run("sessions", file_of(tmp_path / "plain.jsonl", *story()))
    ended = run("sessions", file_of(tmp_path / "a.jsonl", *events))
    assert (ended.code, ended.out) == (0, plain.out)


def test_a_refused_event_in_a_cloud_event_is_known_to_its_session(run: Run, tmp_path: Path) -> None:
    broken = {**event("tool.called", "s", 7, invocation_id="i", name="x"), "app_name": 7}
    ended = run("sessions", file_of(tmp_path / "a.jsonl", *story(), in_cloud_event(broken, 1)))
    assert "the tool calls can be in a refused record: document 8 (invalid)" in ended.out


@pytest.mark.parametrize("notes", [[], ["the result is not in the spans"]])
def test_what_is_missing_is_said(run: Run, tmp_path: Path, notes: list[str]) -> None:
    events = [event("tool.called", "s", 2, invocation_id="i", name="t")]
    events += [event("tool.returned", "s", 3, invocation_id="i", name="t", missing=[note]) for note in notes]
    ended = run("sessions", file_of(tmp_path / "a.jsonl", *events))
    assert [line.strip() for line in ended.out.splitlines()][2:] == [
        "question: missing",
        "tool t(args missing)",
        "result: missing",
        "answer: missing",
        "tokens: missing",
        *(f"not read: {note}" for note in notes),
    ]


def test_a_missing_result_does_not_hide_that_of_another_call_of_the_tool(run: Run, tmp_path: Path) -> None:
    events: list[object] = []
    returned: list[dict[str, object]] = [{"response": {"r": 1}}, {"missing": ["the result is not in the spans"]}]
    for place, told in enumerate(returned):
        events += [
            event("tool.called", "s", 2 * place, invocation_id="i", name="t", args={"a": place}),
            event("tool.returned", "s", 2 * place + 1, invocation_id="i", name="t", **told),
        ]
    ended = run("sessions", file_of(tmp_path / "a.jsonl", *events))
    assert [line.strip() for line in ended.out.splitlines()][3:7] == [
        'tool t({"a":0})',
        'result: {"r":1}',
        'tool t({"a":1})',
        "result: missing",
    ]


def test_the_error_of_a_call_without_an_id_is_not_that_of_the_next_call_of_the_tool(run: Run, tmp_path: Path) -> None:
    events: list[object] = []
    returned: list[dict[str, object]] = [{"error": "offline"}, {"response": {"r": 1}}]
    for place, outcome in enumerate(returned):
        events += [
            event("tool.called", "s", 2 * place, invocation_id="i", name="t", args={"a": place}),
            event("tool.returned", "s", 2 * place + 1, invocation_id="i", name="t", **outcome),
        ]
    ended = run("sessions", file_of(tmp_path / "a.jsonl", *events))
    assert [line.strip() for line in ended.out.splitlines()][3:7] == [
        'tool t({"a":0})',
        "error: offline",
        'tool t({"a":1})',
        'result: {"r":1}',
    ]


def test_several_files_are_one_input_and_json_is_one_session_a_line(run: Run, tmp_path: Path) -> None:
    half, rest = file_of(tmp_path / "a.jsonl", *story()[:3]), file_of(tmp_path / "b.jsonl", *story()[3:], *story("t"))
    ended = run("sessions", half, rest, "--json")
    found = [Session.model_validate_json(line) for line in ended.out.splitlines()]
    assert [(each.session_id, len(each.events)) for each in found] == [("s", 7), ("t", 7)]


def test_an_unusable_document_names_its_file_and_costs_no_other(run: Run, tmp_path: Path) -> None:
    good, bad = file_of(tmp_path / "a.jsonl", *story()), file_of(tmp_path / "b.jsonl", {"type": "tool.called"})
    ended = run("sessions", good, bad)
    assert ended.out.startswith("session s")
    assert "b.jsonl: document 1" in ended.err
    assert ended.code == 1


def test_one_session_can_be_chosen(run: Run, tmp_path: Path) -> None:
    file = file_of(tmp_path / "a.jsonl", *story(), *story("t"))
    assert run("sessions", file, "--session", "t").out.startswith("session t")
    absent = run("sessions", file, "--session", "x")
    assert (absent.code, absent.out) == (1, "")
    assert "no session 'x'" in absent.err


def test_files_and_kafka_exclude_each_other(run: Run) -> None:
    assert [run("sessions", *each).code for each in ((), ("--from-kafka",), ("f", "--from-kafka"))] == [2, 2, 2]


def test_a_printed_session_with_reasoning_traces_can_be_read_again(run: Run) -> None:
    printed = run("sessions", "examples/chats.json", "--json").out
    assert [len(Session.model_validate_json(line).traces) for line in printed.splitlines()] == [1, 1]
    assert all("@context" in line for line in printed.splitlines())


def test_several_files_of_otlp_are_one_input(run: Run, write_input: WriteInput) -> None:
    first, second, third = (ROOT / "examples/otlp/spans.jsonl").read_bytes().splitlines()
    files = write_input("a.jsonl", third + b"\n" + first), write_input("b.jsonl", second)
    ended = run("sessions", *files, "--format", "otlp")
    assert (ended.code, ended.err) == (0, "")
    lines = [line.strip() for line in ended.out.splitlines()]
    assert lines[0] == "session booking-7: 2 invocations, 2 reasoning traces, closed because idle"
    assert 'tool search_flights({"origin":"ICN","destination":"LHR","date":"2026-03-02"})' in lines
    assert "answer: No. KE907 is the first flight on that day." in lines
    assert "tokens: 499 in, 55 out (gpt-5-mini)" in lines


def test_an_empty_file_is_a_failure_with_a_sentence(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")

    done = run("sessions", str(empty))

    assert done.code == 1
    assert "contains no document" in done.err


def test_a_reason_why_parts_were_not_read_is_printed_once_a_session(run: Run, tmp_path: Path) -> None:
    notes = ["the question is not in the spans: set A=1 (before 2.0: true)", "the answer is not in the spans: set B=1"]
    events = [event("invocation.started", "s", n, invocation_id=f"i{n}", missing=notes) for n in (1, 2)]
    ended = run("sessions", file_of(tmp_path / "a.jsonl", *events))
    lines = [line.strip() for line in ended.out.splitlines()]
    unread = "not read: the question is not in the spans [1], the answer is not in the spans [2]"
    assert lines.count(unread) == 2
    assert lines[-2:] == ["[1] set A=1 (before 2.0: true)", "[2] set B=1"]


def test_the_error_of_an_invocation_that_failed_is_shown(run: Run, tmp_path: Path) -> None:
    failed = event("invocation.completed", "s", 2, invocation_id="i", error="HTTP 400: too \x1b[31mlong")
    ended = run("sessions", file_of(tmp_path / "a.jsonl", story()[0], failed))

    assert r"    error: HTTP 400: too \x1b[31mlong" in ended.out.splitlines()
