"""Tests that a file of the wrong kind is named with the place where it belongs, and that ADK's files are scored."""

from __future__ import annotations

import json

import orjson
import pytest
from tests.support.adk import BOOKING
from tests.support.cli_inputs import WriteInput
from tests.support.command_line import Run
from tests.support.eval_sets import case, eval_set, invocation

CHAT = {"id": "chat", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}
CONFIG = {"criteria": {"response_match_score": 0.5}}
EVAL_SET = eval_set(case("s1", invocation("Hi", "Hello.")))
RESULT = {
    "eval_set_id": "set1",
    "eval_case_results": [
        {
            "eval_id": "s1",
            "session_id": "run",
            "eval_metric_result_per_invocation": [
                {"actual_invocation": invocation("Hi", "Hello."), "expected_invocation": invocation("Hi", "Hello.")}
            ],
        }
    ],
}


def test_the_files_of_adk_are_scored_without_a_format(run: Run, write_input: WriteInput) -> None:
    config = write_input("eval.json", {"criteria": {"latency": {}, "response_match_score": 0.5}})
    session = write_input("s1.session.json", json.dumps(BOOKING, indent=2).encode())
    result = write_input("set1.evalset_result.json", RESULT)

    scored = run("score", session, "--config", config, "--json")
    scores = [orjson.loads(line) for line in scored.out.splitlines()]
    assert {
        (each["invocation_id"], each["value"]) for each in scores if each["metric"].endswith("latency_seconds")
    } == {
        ("e-1", 2.0),
        ("e-2", 1.0),
        (None, 1.5),
    }
    assert (scored.code, scored.err) == (0, "")
    compared = run("score", result, "--config", config, "--json")
    scores = [orjson.loads(line) for line in compared.out.splitlines()]
    assert [each["value"] for each in scores if each["metric"] == "response_match_score"] == [1.0, 1.0]
    assert (compared.code, compared.err) == (0, "")


def test_a_saved_session_of_adk_is_a_recorded_session(run: Run, write_input: WriteInput) -> None:
    session = write_input("recorded.json", BOOKING)
    added = run("evalset", "add", "s1", "--to", write_input("x", b"") + ".evalset.json", "--sessions", session)
    assert "case 's1' is added (2 invocations)" in added.err
    evaluated = run("eval", write_input("x", b"") + ".evalset.json", "--sessions", session)
    assert evaluated.code == 0, evaluated.out + evaluated.err


@pytest.mark.parametrize(
    ("command", "file", "said"),
    [
        (["score", "{}"], EVAL_SET, "document 1: looks like an eval set of Google ADK: `traceweir eval EVALSET --sess"),
        (["score", "{}"], CONFIG, "document 1: looks like an evaluation config: pass the config with --config"),
        (["score", "{}"], {"resourceSpans": []}, "document 1: looks like an OTLP request: add --format otlp"),
        (["score", "{}", "--format", "adk-session"], CHAT, "looks like a chat transcript: add --format openai-chat"),
        (["score", "chat.json", "--config", "{}"], EVAL_SET, "looks like an eval set of Google ADK, not an evaluation"),
        (["worker", "--config", "{}"], CHAT, "looks like a chat transcript, not an evaluation config: pass the file"),
        (
            ["eval", "set.json", "--sessions", "s.json", "--config", "{}"],
            RESULT,
            "looks like a result of `adk eval`, not",
        ),
        (["eval", "{}"], CHAT, "looks like a chat transcript, not an eval set of Google ADK: pass the file to"),
        (["eval", "{}"], BOOKING, "looks like a saved session of Google ADK, not an eval set of Google ADK: pass the"),
        (["eval", "{}"], CONFIG, "looks like an evaluation config, not an eval set of Google ADK: pass the config"),
        (["eval", "set.json", "--sessions", "{}"], CONFIG, "The document looks like an evaluation config: pass the"),
        (["evalset", "add", "s1", "--to", "{}", "--sessions", "s.json"], CHAT, "looks like a chat transcript, not an"),
        (["migrate", "{}"], RESULT, "looks like a result of `adk eval`, not an eval set of Google ADK: pass the file"),
    ],
)
def test_a_file_of_the_wrong_kind_is_named_with_its_place(
    command: list[str], file: object, said: str, run: Run, write_input: WriteInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write_input("given.json", file)
    monkeypatch.chdir(name.removesuffix("given.json"))
    write_input("chat.json", CHAT)
    write_input("set.json", EVAL_SET)
    write_input("s.json", BOOKING)

    ended = run(*(each.format("given.json") for each in command))

    assert said in ended.err
    assert "given.json: " in ended.err
    assert ended.code in (1, 2)


def test_recorded_sessions_in_json_lines_are_no_eval_set(run: Run, write_input: WriteInput) -> None:
    ended = run("eval", write_input("given.jsonl", CHAT, CHAT))
    assert "given.jsonl: looks like a chat transcript, not an eval set of Google ADK: pass the file to" in ended.err
    assert ended.code == 2
