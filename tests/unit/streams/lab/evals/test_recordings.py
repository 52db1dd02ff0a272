"""Tests reading recorded conversations: every file format, and which conversation is a run of which case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.eval_sets import case, content, eval_set, invocation, write
from tests.support.scoring import make_session, trace_document

from traceweir.schemas.events import EVENT
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.recordings import Recording, SessionParts, read_recordings, sessions_beside


def event(kind: str, session_id: str = "s1", at: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": session_id, "occurred_at": f"2026-01-31T12:00:{at:02}Z", **more}


def asked_and_answered(session_id: str = "s1") -> list[dict[str, Any]]:
    about = {"session_id": session_id, "invocation_id": "i1"}
    return [
        event("invocation.started", at=1, user_content=content("Hi"), app_name="trips", user_id="u1", **about),
        event("tool.called", at=2, name="find", args={"n": 1}, **about),
        event("invocation.completed", at=3, final_response=content("Hello.", "model"), **about),
    ]


def turn_texts(run: Recording) -> list[tuple[str, str, list[str]]]:
    return [
        (
            each.user_content.text if each.user_content else "",
            each.final_response.text if each.final_response else "",
            [call.name for call in each.tool_uses],
        )
        for each in run.invocations
    ]


HELLO = [("Hi", "Hello.", ["find"])]
SAID = invocation("Hi", "Hello.", [{"name": "find", "args": {"n": 1}}])
RESULT = {
    "eval_set_result_id": "r",
    "eval_case_results": [
        {
            "eval_id": "s1",
            "final_eval_status": 1,
            "eval_metric_result_per_invocation": [{"actual_invocation": SAID, "expected_invocation": invocation("Hi")}],
        }
    ],
}
CHAT = {
    "session_id": "s1",
    "messages": [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "assistant", "content": "Hello."},
    ],
}
SESSION = make_session("s1", events=[EVENT.validate_python(each, strict=False) for each in asked_and_answered()])


CHUNKS = [
    {
        "id": "s1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
    }
    for text, finish in (("Hello", None), (".", "stop"))
]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(json.dumps, CHUNKS)),
        json.dumps({"session_id": "s1", "chunks": CHUNKS}),
        json.dumps(
            {
                "key": "s1",
                "response": {"candidates": [{"content": {"parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]},
            }
        ),
    ],
    ids=["chunks", "chunks in a document", "a line of a batch"],
)
def test_streams_and_lines_of_batches_are_conversations(text: str, tmp_path: Path) -> None:
    (tmp_path / "recorded.jsonl").write_text(text)
    (run,) = read_recordings([str(tmp_path / "recorded.jsonl")])["s1"]

    assert turn_texts(run)[0][1] == "Hello."


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(eval_set(case("s1", SAID)), indent=2),
        json.dumps(case("s1", SAID)),
        json.dumps({"evalCases": [{"evalId": "s1", "conversation": [SAID]}]}),
        json.dumps(RESULT),
        json.dumps(json.dumps(RESULT)),
        "\n".join(map(json.dumps, asked_and_answered())),
        json.dumps(asked_and_answered()),
        SESSION.model_dump_json(by_alias=True),
        json.dumps(CHAT),
    ],
    ids=["eval set", "case", "camelCase", "adk result", "adk result in a string", "events", "array", "session", "chat"],
)
def test_every_file_format_contains_the_same_conversation(text: str, tmp_path: Path) -> None:
    [(name, [run])] = read_recordings([str(write(tmp_path / "r.json", text))]).items()
    assert (name, turn_texts(run)) == ("s1", HELLO)


def test_a_trace_alone_is_an_invocation(tmp_path: Path) -> None:
    document = trace_document(metadata={"session_id": "s1"})
    [run] = read_recordings([str(write(tmp_path / "r.json", document))])["s1"]
    assert turn_texts(run) == [("Book two seats", "Booked", [])]


def test_the_app_name_and_the_user_id_are_kept(tmp_path: Path) -> None:
    lines = "\n".join(map(json.dumps, asked_and_answered()))
    [run] = read_recordings([str(write(tmp_path / "r.jsonl", lines))])["s1"]
    assert (run.app_name, run.user_id) == ("trips", "u1")


def test_duplicate_events_count_once_and_events_are_sorted_by_time(tmp_path: Path) -> None:
    events = asked_and_answered()
    lines = "\n".join(map(json.dumps, [*reversed(events), *events]))
    [run] = read_recordings([str(write(tmp_path / "r.jsonl", lines))])["s1"]
    assert turn_texts(run) == HELLO


def test_a_repeated_case_and_a_case_of_another_file_are_additional_runs(tmp_path: Path) -> None:
    first = write(tmp_path / "1.json", eval_set(case("a", invocation("Hi", "1")), case("a", invocation("Hi", "2"))))
    second = write(tmp_path / "2.json", eval_set(case("a", invocation("Hi", "3"))))
    runs = read_recordings([str(first), str(second)])["a"]
    assert [turn_texts(run)[0][1] for run in runs] == ["1", "2", "3"]


def test_sessions_that_were_not_requested_are_not_parsed(tmp_path: Path) -> None:
    broken = {"session_id": "other", "events": [{"type": "no such type"}]}
    lines = "\n".join(map(json.dumps, [broken, *asked_and_answered(), event("tool.called", "other")]))
    assert read_recordings([str(write(tmp_path / "r.jsonl", lines))], frozenset({"s1"})).keys() == {"s1"}


def test_a_session_consists_of_the_latest_revision_of_each_segment() -> None:
    first, second, third = (EVENT.validate_python(each, strict=False) for each in asked_and_answered())
    parts = SessionParts()
    parts.add(make_session("s1", segment=1, events=[third]))
    parts.add(make_session("s1", segment=0, revision=1, events=[first, second]))
    parts.add(make_session("s1", segment=0, revision=0, events=[first]))
    assert turn_texts(parts.recordings()["s1"]) == HELLO


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"foo": 1}', "document 1: is not a recorded conversation"),
        ("[1]", "document 1: is not an object"),
        ("{oops}\n", r"document 1: is not JSON"),
        ('{"eval_cases": [{"eval_id": 1}]}', r"eval_cases\[0\]: eval_id: must be a string"),
        ('{"eval_cases": [{"eval_id": "a"}]}', r"\(case 'a'\): conversation: must be a list"),
        (
            '{"eval_cases": [{"eval_id": "a", "conversation": [{"user_content": 1}]}]}',
            r"conversation\[0\]: user_content: ",
        ),
        ('{"type": "tool.called", "session_id": "s"}', "document 1: tool.called.occurred_at: Field required"),
    ],
)
def test_an_invalid_recording_is_reported_with_the_reason(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_recordings([str(write(tmp_path / "r.json", text))])


def test_the_sessions_file_beside_an_eval_set_has_the_same_name(tmp_path: Path) -> None:
    assert sessions_beside(tmp_path / "a.test.json") is None
    lines = write(tmp_path / "a.sessions.jsonl", "")
    assert sessions_beside(tmp_path / "a.test.json") == lines
    whole = write(tmp_path / "a.sessions.json", "")
    assert {sessions_beside(tmp_path / name) for name in ("a.test.json", "a.evalset.json", "a.json")} == {whole}
