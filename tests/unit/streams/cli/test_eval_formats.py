"""Tests that `traceweir eval --format` reads recorded sessions in a named format, such as spans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.support.collect import agent_trace, log_request, request, span
from tests.support.command_line import Run
from tests.support.eval_sets import case, eval_set, invocation, write

TOOLS = [{"name": f"tool_{number}", "args": {"n": 1}} for number in (1, 2)]
CONFIG = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 1.0}}


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write(
        Path("a.evalset.json"),
        eval_set(
            case("met", invocation("question 1", "answer 1", TOOLS)),
            case("missed", invocation("question 2", "another answer", TOOLS[:1])),
        ),
    )
    write(Path("config.json"), CONFIG)


def statuses(out: str) -> dict[str, str]:
    return {each["eval_id"]: each["status"] for each in map(json.loads, out.splitlines())}


EVAL = ("eval", "a.evalset.json", "--config", "config.json", "--json")


def test_spans_are_compared_with_an_eval_set_by_session_id(run: Run) -> None:
    Path("spans.bin").write_bytes(request(*agent_trace(1, session="met"), *agent_trace(2, session="missed")))
    ended = run(*EVAL, "--sessions", "spans.bin", "--format", "otlp")
    assert statuses(ended.out) == {"met": "PASSED", "missed": "FAILED"}
    assert ended.code == 1


def test_several_files_of_spans_are_one_run(run: Run) -> None:
    first, *rest = agent_trace(1, session="s1")
    Path("first.bin").write_bytes(request(first))
    Path("rest.bin").write_bytes(request(*rest))
    matched = ("--match", "met=s1", "--sessions", "first.bin", "--sessions", "rest.bin", "--format", "otlp")
    ended = run("eval", "a.evalset.json:met", "--config", "config.json", "--json", *matched)
    assert (ended.code, statuses(ended.out)) == (0, {"met": "PASSED"})


def test_several_files_of_another_format_are_several_runs(run: Run) -> None:
    chat = {
        "session_id": "met",
        "messages": [{"role": "user", "content": "question 1"}, {"role": "assistant", "content": "answer 1"}],
    }
    for name in ("one.json", "two.json"):
        write(Path(name), chat)
    files = ("--sessions", "one.json", "--sessions", "two.json")
    named = run(*EVAL, *files, "--format", "openai-chat")
    recognized = run(*EVAL, *files)
    assert (named.code, named.out) == (recognized.code, recognized.out)


def test_content_in_log_records_of_another_file_is_read(run: Run) -> None:
    root = span(1, 0, session="met")
    without = [each for each in root.attributes if each.key != "output.value"]
    bare = Span(
        trace_id=root.trace_id,
        span_id=root.span_id,
        name=root.name,
        start_time_unix_nano=root.start_time_unix_nano,
        end_time_unix_nano=root.end_time_unix_nano,
        attributes=without,
    )
    said = '[{"role": "assistant", "parts": [{"type": "text", "content": "answer 1"}]}]'
    log = LogRecord(
        time_unix_nano=root.end_time_unix_nano,
        trace_id=root.trace_id,
        span_id=root.span_id,
        event_name="gen_ai.client.inference.operation.details",
        attributes=[KeyValue(key="gen_ai.output.messages", value=AnyValue(string_value=said))],
    )
    Path("spans.bin").write_bytes(request(*agent_trace(1)[:2], bare))
    Path("logs.bin").write_bytes(log_request(log))
    files = ("--sessions", "spans.bin", "--sessions", "logs.bin", "--format", "otlp")
    ended = run("eval", "a.evalset.json:met", "--config", "config.json", "--json", *files)
    assert statuses(ended.out) == {"met": "PASSED"}, ended


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello", "Name a file of OTLP requests"),
        (request(*agent_trace(1))[:-4], "request 1"),
        (request(Span(name="no ids"), *agent_trace(1)), "spans[0]"),
    ],
)
def test_a_file_that_cannot_be_used_whole_is_refused(content: bytes, said: str, run: Run) -> None:
    Path("spans.bin").write_bytes(content)
    ended = run(*EVAL, "--sessions", "spans.bin", "--format", "otlp")
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--format", "otlp"), "needs --sessions"),
        (("--format", "otlp", "--from-kafka"), "needs --sessions"),
        (("--format", "nothing", "--sessions", "a.json"), "there is no such format"),
    ],
)
def test_a_format_without_files_or_without_meaning_is_refused(options: tuple[str, ...], said: str, run: Run) -> None:
    ended = run(*EVAL, *options)
    assert ended.code == 2
    assert said in ended.err
