"""Tests the exit code and the message of commands whose options, config, environment or files cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.cli_inputs import EVENT, WriteInput
from tests.support.command_line import Run

WRONG_CONFIG = {"criteria": {"no_such_metric": 1, "response_match_score": 2}, "trace_value": {"weight": {}}}


def test_an_unknown_format_is_reported_with_the_known_formats(run: Run, write_input: WriteInput) -> None:
    ended = run("score", write_input("events.jsonl", EVENT), "--format", "chat")
    said = " ".join(ended.err.replace("│", " ").split())
    assert (ended.code, ended.out) == (2, "")
    assert "format 'chat': there is no such format; it must be one of traceweir, openai-chat," in said


@pytest.mark.parametrize("command", ["worker", "score"])
def test_every_problem_of_a_config_is_reported_before_anything_starts(
    command: str, run: Run, write_input: WriteInput
) -> None:
    config = write_input("config.json", WRONG_CONFIG)
    file = [write_input("events.jsonl", EVENT)] if command == "score" else []

    ended = run(command, *file, "--config", config)

    assert (ended.code, ended.out) == (2, "")
    heading, *problems = ended.err.splitlines()
    assert heading == "the evaluation config cannot be used:"
    assert [problem.split(":")[0] for problem in problems] == [
        "  - criteria.no_such_metric",
        "  - criteria.response_match_score",
        "  - trace_value.weight",
    ]
    assert "did you mean 'weights'?" in problems[2]


@pytest.mark.parametrize("command", ["worker", "score -", "emit -", "topics check", "topics create", "broker", "otlp"])
def test_every_problem_of_the_environment_is_reported_at_once(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_PARTITIONS", "0")
    monkeypatch.setenv("TRACEWEIR_IDLE_GAP_S", "-1")

    ended = run(*command.split())

    assert (ended.code, ended.out) == (2, "")
    assert [line.split(":")[0] for line in ended.err.splitlines()] == ["TRACEWEIR_PARTITIONS", "TRACEWEIR_IDLE_GAP_S"]


@pytest.mark.parametrize("command", ["worker", "topics create", "topics check"])
def test_an_unknown_stage_is_rejected(command: str, run: Run) -> None:
    ended = run(*command.split(), "--stages", "assemble,judge")
    assert ended.code == 2
    assert "'judge' is not a stage; choose from collect, assemble, score, gate" in ended.err


@pytest.mark.parametrize("arguments", [["score", "nowhere.jsonl"], ["score", "-", "--config", "nowhere.json"]])
def test_a_missing_file_is_reported_by_name(arguments: list[str], run: Run) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "nowhere.json" in ended.err
    assert "No such file or directory" in ended.err


@pytest.mark.parametrize("arguments", [["score"], ["score", "-", "--format", "csv"], ["nonsense"], ["worker", "--no"]])
def test_wrong_usage_has_exit_code_2(arguments: list[str], run: Run) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Usage: " in ended.err


def test_an_unavailable_embedder_has_exit_code_1(run: Run, write_input: WriteInput) -> None:
    ended = run("score", write_input("events.jsonl", EVENT), "--embedder", "./no-such-model")
    assert (ended.code, ended.out) == (1, "")
    assert "embedder './no-such-model'" in ended.err


def test_a_path_of_70000_characters_in_the_environment_is_reported_by_its_variable(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_SECURITY_PROTOCOL", "SSL")
    monkeypatch.setenv("TRACEWEIR_KAFKA_SSL_CAFILE", "x" * 70_000)

    ended = run("topics", "check")

    assert ended == (2, "", "TRACEWEIR_KAFKA_SSL_CAFILE: a path of 70000 characters is too long; name a PEM file\n")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("config push eval.json", "--by"),
        ("config push eval.json", "--comment"),
        ("config withdraw", "--by"),
        ("shadow --name v2", "--app"),
        ("results export scores.csv", "--session"),
        ("results export scores.csv", "--metric"),
        ("sessions --from-kafka", "--session"),
    ],
)
def test_an_option_whose_bytes_are_no_text_is_refused_without_kafka(command: str, option: str, run: Run) -> None:
    ended = run(*command.split(), option, os.fsdecode(b"Z\xfcrich"))
    said = " ".join(ended.err.replace("│", " ").split())
    assert (ended.code, ended.out) == (2, "")
    assert f"{option}: 'Z\\udcfcrich' is not text in the encoding of this system, utf-8" in said


def test_the_name_of_a_file_can_have_any_bytes(run: Run, write_input: WriteInput, tmp_path: Path) -> None:
    config = os.fsdecode(os.fsencode(tmp_path) + b"/Z\xfcrich.json")
    Path(config).write_text('{"criteria": {"latency": {}}}')
    ended = run("score", write_input("events.jsonl", EVENT), "--config", config)
    assert (ended.code, "is not text" in ended.err) == (0, False)
    assert run("config", "validate", config).code == 0
