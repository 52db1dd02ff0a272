"""Tests that documents are recognized by their keys, read without `--format`, and named where they do not belong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.adk import BOOKING
from tests.support.eval_sets import case, eval_set, invocation
from tests.support.openai_chat import assistant_message, user_message
from tests.support.rows import ROW, problems, read
from tests.support.scoring import install, trace_document

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    Recognition,
    RecordsOfObject,
    Sureness,
    records_of_objects,
)
from traceweir.streams.intake.formats.databricks_rows import AGENT_EVALUATION
from traceweir.streams.intake.formats.documents import Document
from traceweir.streams.intake.formats.other_documents import CONFIG, EVAL_SET
from traceweir.streams.intake.formats.recognition import Recognizer, misplaced, surest
from traceweir.streams.intake.formats.registry import GROUP

CHAT: dict[str, Any] = {"messages": [user_message("Hi"), assistant_message("Hello.")]}
RESULT: dict[str, Any] = {"eval_case_results": []}
EVENT: dict[str, Any] = {"type": "session.ended", "session_id": "s", "occurred_at": "2026-01-31T12:00:00Z"}
RUN: dict[str, Any] = {
    "id": "r",
    "run_type": "chain",
    "inputs": CHAT,
    "outputs": {"messages": []},
    "trace_id": "r",
    "session_id": "p",
}
LOG: dict[str, Any] = {"databricks_request_id": "r", "request": "{}", "response": "{}", "status_code": 200}


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (CHAT, "openai-chat"),
        ({"traj": [], "type": "chat"}, "openai-chat"),
        (EVENT, "traceweir"),
        (EVENT | {"messages": []}, "traceweir"),
        ({"type": "tool.caled"}, "traceweir"),
        ({"@type": "ReasoningTrace"}, "traceweir"),
        (ROW | {"messages": []}, "databricks-agent-evaluation"),
        ({"messages": [], "trace": {}, "response": "A."}, "databricks-agent-evaluation"),
        ({"type": ["x"]}, "traceweir"),
        ({"type": {}, "messages": []}, "openai-chat"),
        (ROW, "databricks-agent-evaluation"),
        (LOG, "databricks-inference-table"),
        (BOOKING, "adk-session"),
        (RESULT, "adk-eval-result"),
        (CHAT | BOOKING, "adk-session"),
        (CHAT | {"databricks_request_id": "r"}, "databricks-inference-table"),
        (ROW | {"criteria": {"tone": "kind"}, "role": "user", "content": "Hi"}, "databricks-agent-evaluation"),
        ({}, None),
    ],
)
def test_the_format_of_a_document_is_recognized_by_its_keys(document: dict[str, Any], name: str | None) -> None:
    found = Recognizer().format_of(document)
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("answers", "name"),
    [
        ([Sureness.POSSIBLE, Sureness.CERTAIN], "second"),
        ([Sureness.POSSIBLE, True], "second"),
        ([Sureness.POSSIBLE, Sureness.POSSIBLE], "first"),
        ([True, Sureness.CERTAIN], "first"),
        ([False, Sureness.POSSIBLE], "second"),
        ([False, Sureness.NO], None),
    ],
)
def test_the_surest_kind_counts_and_of_equally_sure_ones_the_first(
    answers: list[bool | Sureness], name: str | None
) -> None:
    kinds = [replace(AGENT_EVALUATION, name=each) for each in ("first", "second")]
    recognizers = [lambda _, answer=answer: answer for answer in answers]
    found = surest(zip(kinds, recognizers, strict=True), {"request": "q"})[1]
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"resourceSpans": []}, "looks like an OTLP request: add --format otlp"),
        ({"resource_logs": []}, "looks like an OTLP request: add --format otlp"),
        (eval_set(case("a")), "looks like an eval set of Google ADK: `traceweir eval"),
        (case("a", invocation("Hi")), "looks like a case of an eval set of Google ADK: put the case into"),
        ({"query": "q", "reference": "a"}, "looks like a turn of an old test file of Google ADK: `traceweir eval"),
        ({"criteria": {"latency": {}}}, "looks like an evaluation config: pass the config with --config"),
        ({"session_id": "s", "segment": 0, "events": []}, "looks like a session of the topic `sessions`: pass the"),
        (
            {"result_id": "r", "metric": "latency"},
            "looks like a score of Traceweir: `traceweir diff` compares scores; pass the traces",
        ),
        (
            {"id": "0:1", "reason": "invalid", "topic": "t", "offset": 1, "value": {}},
            "looks like an exported dead letter: `traceweir dlq replay --from FILE` sends mended dead letters",
        ),
        (user_message("Hi"), "looks like a single message of a chat: put all messages of a conversation into one"),
        ({"role": "assistant", "tool_calls": []}, "looks like a single message of a chat: put all messages"),
        ({"task": {"objective": "Book"}, "steps": []}, "looks like a trace without its `@type`: add"),
        (
            {"sessionId": "s", "uuid": "u", "parentUuid": None, "type": "user", "message": {"role": "user"}},
            "looks like a line of a log of Claude Code: write the `message` of each line",
        ),
        (
            {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "isSnapshotUpdate": False},
            "looks like a line of a log of Claude Code that has no message: the messages of the session",
        ),
        (
            {"type": "summary", "summary": "Count", "leafUuid": "u"},
            "looks like a line of a log of Claude Code that has no message: the messages of the session",
        ),
        (
            {"type": "queue-operation", "operation": "enqueue", "timestamp": "t", "sessionId": "s", "content": "Hi"},
            "looks like a line of a log of Claude Code that has no message: the messages of the session",
        ),
        (
            {"sessionId": "s", "uuid": "u", "parentUuid": None, "type": "system", "subtype": "local_command"},
            "looks like a line of a log of Claude Code that has no message: the messages of the session",
        ),
        (
            {"type": "assistant", "session_id": "s", "parent_tool_use_id": None, "message": {"role": "assistant"}},
            "looks like a message that Claude Code or its SDK has written as JSON: write the prompt",
        ),
        (
            {"type": "result", "subtype": "success", "session_id": "s", "result": "Seven.", "num_turns": 2},
            "looks like a message that Claude Code or its SDK has written as JSON: write the prompt",
        ),
        (
            {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": []},
            "looks like a log of Inspect: write each of its `samples` on a line of its own",
        ),
        (
            {"id": 1, "epoch": 1, "input": "q", "target": "a", "scores": {"match": {"value": "C"}}},
            "looks like the summary of a sample of Inspect, which has no messages: `inspect log dump`",
        ),
        (
            {"info": {}, "tasks": [], "simulations": [{"messages": []}]},
            "looks like the results of tau2-bench: write each of its `simulations` on a line",
        ),
        (
            {"id": "simple_0", "question": [[{"role": "user", "content": "q"}]], "function": []},
            "looks like an entry of the Berkeley Function Calling Leaderboard: it has questions",
        ),
        (
            {"id": "simple_0", "result": "[f(x=1)]", "input_token_count": 3},
            "looks like a result of the Berkeley Function Calling Leaderboard: it has no questions",
        ),
        (
            {"id": "multi_0", "question": [[{"role": "user", "content": "q"}]], "involved_classes": ["Files"]},
            "looks like an entry of the Berkeley Function Calling Leaderboard: it has questions",
        ),
        (
            {"id": "multi_0", "result": "Error during inference: x", "traceback": "T"},
            "looks like a result of the Berkeley Function Calling Leaderboard: it has no questions",
        ),
        (
            {"id": "simple_0", "ground_truth": [{"f": {"x": [1]}}]},
            "looks like a score or a possible answer of the Berkeley Function Calling Leaderboard: it has no messages",
        ),
        (
            {"id": "simple_0", "valid": False, "test_category": "simple", "error": ["x"], "prompt": {"id": "simple_0"}},
            "looks like a score or a possible answer of the Berkeley Function Calling Leaderboard: it has no messages",
        ),
        (
            {"object": "list", "data": [{"object": "thread.message", "role": "user", "content": []}]},
            "looks like a message of a thread of OpenAI's Assistants API: put the messages of the thread, oldest first",
        ),
        (
            {"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": "user", "content": []}},
            "looks like a line of a log of Codex: write the `payload` of each response_item",
        ),
        (
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "q"}]},
            "looks like a message of Pydantic AI: put all messages of a conversation into one object",
        ),
        ({"query": "q", "response": "a", "tool_calls": []}, "looks like a row of Azure AI Evaluation: name its texts"),
        (
            {"sessionId": "s", "completion": "a", "trace": {"orchestrationTrace": {}}},
            "looks like an answer or a trace of an agent of Amazon Bedrock: send its spans",
        ),
        ({"input": "q", "actual_output": "a"}, "looks like a test case of DeepEval or Ragas: write it as a row with"),
        ({"user_input": "q", "response": "a"}, "looks like a test case of DeepEval or Ragas: write it as a row with"),
        (
            {"input": "q", "output": [{"type": "message", "role": "assistant", "content": []}]},
            'looks like a response of OpenAI\'s Responses API without its `object`: add "object": "response"',
        ),
        *(
            (document, "looks like a call of a voice agent of Vapi, Retell or ElevenLabs: write what was asked")
            for document in (
                {"transcript_object": [{"role": "agent", "content": "Hi", "words": []}], "transcript": "Agent: Hi"},
                {"messages": [{"role": "user", "message": "Hi"}, {"role": "bot", "message": "Hello"}]},
                {"transcript": [{"role": "agent", "message": "Hi"}]},
            )
        ),
        *(
            (document, "looks like a conversation of Dialogflow, Botpress or Intercom: write what was asked")
            for document in (
                {"responseId": "r", "queryResult": {"queryText": "Hi", "fulfillmentText": "Hello"}},
                {"messages": [{"type": "text", "direction": "incoming", "payload": {"text": "Hi"}}]},
                {"type": "conversation", "source": {"body": "Hi"}, "conversation_parts": {"conversation_parts": []}},
            )
        ),
        (RUN, "looks like a run of LangSmith: no format reads runs; send spans with LANGSMITH_OTEL_ENABLED=true, or"),
        (RUN | {"inputs": {"question": "Hi"}}, "looks like a run of LangSmith: no format reads runs; send"),
    ],
)
def test_a_document_that_no_format_reads_is_named_with_the_way_out(
    document: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(document))
    for format_name in ("traceweir", "openai-chat"):
        [found] = read(tmp_path / "a.jsonl", format_name)
        assert said in str(found.problem)
        assert found.records == []


OF_OTHERS: list[dict[str, Any]] = [
    {"transcript": [{"role": "agent", "message": "x"}]},
    {"conversation_parts": {}},
    {"queryResult": {"queryText": "Hi"}},
    {"turn_id": "t", "input_messages": [], "output_message": {}},
]
DIRECTED = [{**each, "direction": "in", "payload": {}} for each in CHAT["messages"]]
LINE: dict[str, Any] = {"type": "user", "sessionId": "s", "message": {"role": "user"}}


@pytest.mark.parametrize(
    "document",
    [
        *({"request": "q", "response": "a"} | more for more in OF_OTHERS),
        *(CHAT | more for more in [*OF_OTHERS, LINE]),
        {"messages": DIRECTED},
    ],
    ids=json.dumps,
)
def test_a_readable_document_is_read_though_it_has_keys_of_documents_that_no_format_reads(
    document: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(document))
    [found] = read(tmp_path / "a.jsonl", "traceweir")

    assert found.problem is None
    assert found.records


def test_a_line_of_claude_code_without_its_links_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(LINE))
    [found] = read(tmp_path / "a.jsonl", "traceweir")

    assert "looks like a line of a log of Claude Code" in str(found.problem)


def test_each_document_of_a_mixed_file_is_read_in_its_own_format(tmp_path: Path) -> None:
    documents = [CHAT, EVENT, {"resourceSpans": []}, BOOKING, ROW, RESULT, trace_document(), CHAT | {"id": 7}, {"a": 1}]
    (tmp_path / "mixed.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\nnot JSON\n")

    found = read(tmp_path / "mixed.jsonl")

    kinds = [[orjson.loads(record.value).get("type", record.kind) for record in each.records] for each in found[:8]]
    assert [(each.document.number, kind[-1:]) for each, kind in zip(found, kinds, strict=False)] == [
        (1, ["session.ended"]),
        (2, ["session.ended"]),
        (3, []),
        (4, ["session.ended"]),
        (5, ["session.ended"]),
        (6, []),
        (7, ["trace"]),
        (8, ["session.ended"]),
    ]
    assert [each.records[0].value for each in found[8:]] == [b'{"a": 1}', b"not JSON"]
    assert [each.problem is not None for each in found] == [number in (3, 6) for number in range(1, 11)]


def test_a_reader_remembers_the_earlier_documents_of_a_mixed_file(tmp_path: Path) -> None:
    other = {"id": "c", "messages": [user_message("Bye"), assistant_message("Bye.")]}
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [CHAT | {"id": "c"}, EVENT, other])))
    [problem] = problems(read(tmp_path / "a.jsonl"), tmp_path / "a.jsonl")
    assert problem.startswith("document 3: has the session id 'c' of document 1, which is a different transcript")


@pytest.mark.parametrize(
    ("document", "format_name", "said"),
    [
        (CHAT, "adk-session", "looks like a chat transcript: add --format openai-chat, or omit --format"),
        (CHAT, "databricks-agent-evaluation", "looks like a chat transcript: add --format openai-chat"),
        (BOOKING, "openai-chat", "looks like a saved session of Google ADK: add --format adk-session"),
        (EVENT, "openai-chat", "looks like a trace or an event of Traceweir: omit --format"),
        (ROW, "openai-chat", "looks like a row of Agent Evaluation: add --format databricks-agent-evaluation"),
    ],
)
def test_a_document_of_another_format_is_reported_with_its_own_format(
    document: dict[str, Any], format_name: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(document) + "\n" + json.dumps(document))
    found = read(tmp_path / "a.jsonl", format_name)
    assert [(said in str(each.problem), each.records) for each in found] == [(True, []), (True, [])]


def test_a_document_of_the_named_format_is_reported_without_a_hint(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"messages": []}\n{"a": 1}\nnot JSON')
    assert "looks like" not in "".join(problems(read(tmp_path / "a.jsonl", "openai-chat"), tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    "content",
    [json.dumps(CHAT), json.dumps([CHAT, 1]), json.dumps(CHAT, indent=2), f"{json.dumps(CHAT)}\n{json.dumps(CHAT)}\n"],
    ids=["object", "array", "indented", "lines"],
)
def test_a_file_in_the_wrong_place_is_named_by_its_first_document(content: str) -> None:
    for expected in (CONFIG, EVAL_SET):
        assert f"looks like a chat transcript, not {expected.document_name}: pass the file to" in str(
            misplaced(content, expected)
        )


@pytest.mark.parametrize("content", ["", "x", "[]", "7", '{"a": 1}', '{"criteria": {}}', b"\xff"])
def test_a_file_of_the_right_or_an_unknown_kind_is_not_named(content: str | bytes) -> None:
    assert misplaced(content, CONFIG) is None


def _is_vote(found: JsonObject) -> bool:
    return bool(found["voter"])  # raises KeyError for every other document


def _vote_reader(context: InputContext) -> RecordsOfObject:
    return lambda found, document: [AgentRecord("event", str(found["voter"]), b"{}")]


def _votes(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    return records_of_objects(documents, _vote_reader(context), context, "a vote must be an object")


VOTES = InputFormat(
    name="votes",
    description="votes",
    read_documents=_votes,
    recognition=Recognition("a vote", _is_vote, _vote_reader),
)


UNSURE = replace(VOTES, recognition=Recognition("a vote", lambda found: Sureness.POSSIBLE, _vote_reader))
"""Takes everything for a vote, but is not certain of it."""


@pytest.fixture
def install_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda place: install(tmp_path, "package-of-votes", {"votes": place}, GROUP)


def test_the_format_of_an_installed_package_recognizes_its_documents(
    install_votes: Callable[[str], None], tmp_path: Path
) -> None:
    install_votes(f"{__name__}:VOTES")
    (tmp_path / "a.jsonl").write_text('{"voter": "ann"}\n{"a": 1}')
    assert [each.records[0].session_id for each in read(tmp_path / "a.jsonl")] == ["ann", None]
    assert "looks like a vote: add --format votes" in str(read(tmp_path / "a.jsonl", "openai-chat")[0].problem)


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (CHAT, "votes"),
        ({"request": "q", "response": "a"}, "votes"),
        ({"criteria": {}}, "votes"),
        (BOOKING, "adk-session"),
        (EVENT, "traceweir"),
        (LOG, "databricks-inference-table"),
        ({"request": "q", "response": "a", "guidelines": ["Be kind."]}, "databricks-agent-evaluation"),
        ({"info": {}, "data": {"spans": []}}, "databricks-agent-evaluation"),
        ({"eval_cases": []}, None),
        (RUN, None),
    ],
)
def test_the_format_of_a_package_comes_before_built_in_kinds_whose_keys_are_common(
    document: dict[str, Any], name: str | None, install_votes: Callable[[str], None]
) -> None:
    install_votes(f"{__name__}:VOTES")
    found = Recognizer().format_of(document | {"voter": "ann"})
    assert (found and found.name) == name


def test_the_format_of_a_package_that_is_not_certain_comes_after_the_built_in_kinds(
    install_votes: Callable[[str], None],
) -> None:
    install_votes(f"{__name__}:UNSURE")
    documents: list[dict[str, Any]] = [CHAT, {"criteria": {}}, {"a": 1}]
    kinds = [Recognizer().kind_of(found) for found in documents]
    assert [isinstance(kind, InputFormat) and kind.name for kind in kinds] == ["openai-chat", False, "votes"]


def test_no_package_is_imported_for_a_document_of_which_a_built_in_kind_is_certain(
    install_votes: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "votes_that_leave_a_mark.py").write_text("import pathlib\npathlib.Path(__file__ + '.mark').touch()\n")
    install_votes("votes_that_leave_a_mark:VOTES")
    documents: list[dict[str, Any]] = [EVENT, BOOKING, {"eval_cases": []}, LOG]
    for document in documents:
        Recognizer().kind_of(document)
    assert not (tmp_path / "votes_that_leave_a_mark.py.mark").exists()
    Recognizer().kind_of(CHAT)
    assert (tmp_path / "votes_that_leave_a_mark.py.mark").exists()


def test_what_is_true_and_no_sureness_is_certain() -> None:
    answers = [True, "ann", False, None, "", Sureness.POSSIBLE, Sureness.NO]
    certain, possible, no = Sureness.CERTAIN, Sureness.POSSIBLE, Sureness.NO
    assert [Sureness.of(answer) for answer in answers] == [certain, certain, no, no, no, possible, no]


def test_a_package_that_cannot_be_imported_does_not_stop_the_reading(
    install_votes: Callable[[str], None], tmp_path: Path
) -> None:
    install_votes("tests.support.no_such_module:FORMAT")
    (tmp_path / "a.jsonl").write_text('{"voter": "ann"}')
    assert [len(each.records) for each in read(tmp_path / "a.jsonl")] == [1]
