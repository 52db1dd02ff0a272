"""Tests the scores that `traceweir score` prints, and its exit codes."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from tests.support.cli_inputs import EVENT, WriteInput, trace
from tests.support.command_line import Run
from tests.support.mlflow import mlflow_run
from tests.support.paths import ROOT

from traceweir.schemas.score import Score
from traceweir.streams.tools.results.table import COLUMNS


def test_json_output_is_one_score_per_line_in_input_order(run: Run, write_input: WriteInput) -> None:
    file = write_input("traces.jsonl", trace(2), trace(1))

    ended = run("score", file, "--embedder", "none", "--config", write_input("none.json", {}), "--json")

    scores = [Score.model_validate_json(line) for line in ended.out.splitlines()]
    assert [(score.trace_id, score.metric, score.status) for score in scores] == [
        ("kp:trace:2", "trace_value", "PASSED"),
        ("kp:trace:2", "gate", "PASSED"),
        ("kp:trace:1", "trace_value", "PASSED"),
        ("kp:trace:1", "gate", "PASSED"),
    ]
    assert (ended.code, ended.err) == (0, "")


def test_without_a_config_every_session_is_scored_and_stderr_names_the_criteria(
    run: Run, write_input: WriteInput
) -> None:
    ended = run("score", write_input("events.jsonl", EVENT), "--embedder", "none", "--json")

    scores = [Score.model_validate_json(line) for line in ended.out.splitlines()]
    assert [(score.level, score.metric, score.value) for score in scores] == [
        ("invocation", "tool_call_count_v1", 1.0),
        ("session", "tool_call_count_v1", 1.0),
    ]
    assert ended.err == (
        "no config, so the default criteria are on: tool_call_count_v1; for sessions with the input also "
        "inference_call_count_v1, token_usage_v1\n"
    )
    assert ended.code == 0


EXAMPLE_CONFIG = str(ROOT / "examples" / "eval.json")
RECALL = "retrieval/ground_truth/document_recall"


def recalled(run: Run, write_input: WriteInput, *options: str) -> str:
    """Returns the scores of two rows with the criterion `document_recall`."""
    row = {"response": "a", "retrieved_context": ["d"], "expected_retrieved_context": ["d"]}
    file = write_input("rows.jsonl", {"request": "q1", **row}, {"request": "q2", **row})
    config = write_input("config.json", {"criteria": {"document_recall": 0.5}})
    return run("score", file, "--config", config, "--embedder", "none", *options).out


@pytest.mark.slow
def test_a_metric_has_the_same_name_in_text_and_in_json(run: Run, write_input: WriteInput) -> None:
    assert {orjson.loads(line)["metric"] for line in recalled(run, write_input, "--json").splitlines()} == {RECALL}
    text = recalled(run, write_input)
    assert text.count("document_recall") == text.count(RECALL) == 5  # Twice per session, once in the sums.


def test_a_narrow_terminal_shows_the_whole_name_in_two_lines(
    run: Run, write_input: WriteInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # stands for a terminal
    monkeypatch.setenv("NO_COLOR", "1")
    lines = [line.split() for line in recalled(run, write_input).splitlines()]
    folded = [(line, after) for line, after in pairwise(lines) if "retrieval/ground_truth/" in line]
    assert len(folded) == 4
    assert all(after[0] == "document_recall" for _, after in folded)


def test_output_for_mlflow_is_one_assessment_per_line(run: Run, write_input: WriteInput) -> None:
    file = write_input("traces.jsonl", mlflow_run(trace_id="tr-1", execution_duration_ms=51).encode())
    config = write_input("config.json", {"criteria": {"latency": {}, "document_recall": 0.5}})

    ended = run("score", file, "--config", config, "--embedder", "none", "--output-format", "mlflow")

    found = [orjson.loads(line) for line in ended.out.splitlines()]
    assert [(each["assessment_name"], each.get("trace_id"), each["feedback"]["value"]) for each in found] == [
        ("agent/latency_seconds", "tr-1", 0.051),
        ("agent/latency_seconds", None, 0.051),
        ("retrieval/ground_truth/document_recall", "tr-1", None),
        ("retrieval/ground_truth/document_recall", None, None),
    ]
    assert {each["source"]["source_type"] for each in found} == {"CODE"}
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--output-format", "xml"], "'xml' is not an output format; choose from text, json, mlflow"),
        (["--json", "--output-format", "mlflow"], "--json and --output-format mlflow exclude each other"),
    ],
)
def test_an_unusable_output_format_has_exit_code_2(
    options: list[str], why: str, run: Run, write_input: WriteInput
) -> None:
    ended = run("score", write_input("traces.jsonl", trace(1)), *options)
    assert (ended.code, ended.out) == (2, "")
    assert why in " ".join(ended.err.replace("│", " ").split())


@pytest.mark.slow
def test_a_missed_threshold_has_exit_code_1_and_a_sentence_that_names_the_metric(
    run: Run, write_input: WriteInput
) -> None:
    low = {"confidence": 0.1}
    config = write_input("none.json", {})
    file = write_input("traces.jsonl", trace(1, outcome=low), trace(2), trace(3, outcome=low))
    ended = run("score", file, "--embedder", "none", "--config", config, "--json")
    assert (ended.code, ended.err) == (1, "2 scores missed the threshold: trace_value (2)\n")

    ended = run("score", write_input("one.jsonl", trace(1, outcome=low)), "--embedder", "none", "--config", config)
    assert (ended.code, ended.err) == (1, "1 score missed the threshold: trace_value (1)\n")


@pytest.mark.slow
def test_without_a_config_a_low_trace_value_is_no_failure_and_is_said(run: Run, write_input: WriteInput) -> None:
    chat = {
        "session_id": "museum",
        "messages": [
            {"role": "user", "content": "Is the museum open on Monday?"},
            {"role": "assistant", "content": "Yes, the museum is open on Monday from 10:00 to 18:00."},
        ],
    }
    ended = run("score", write_input("chat.json", chat))
    assert ended.code == 0
    assert "1 trace is below the gate's default threshold and would not be shared" in ended.err
    assert "missed the threshold" not in ended.err


def test_the_config_of_the_examples_fails_an_answer_on_something_else(run: Run, write_input: WriteInput) -> None:
    for question in ("2+2?", "What is 2+2?", "What is the price?", "When does flight 12 leave?"):
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": "Bananas are yellow."}]
        ended = run("score", write_input("chat.json", {"messages": messages}), "--config", EXAMPLE_CONFIG)
        assert (ended.code, "missed the threshold" in ended.err) == (1, True), (question, ended.out)


def test_the_config_of_the_examples_fails_no_right_answer_of_a_word_or_a_sentence(
    run: Run, write_input: WriteInput
) -> None:
    for answer in ("4", "Four.", "It is 4.", "The answer is 4.", "2+2 is 4."):
        messages = [{"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": answer}]
        ended = run("score", write_input("chat.json", {"messages": messages}), "--config", EXAMPLE_CONFIG)
        assert "missed the threshold: c" not in ended.err, (answer, ended.out)


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b" \n\n", b"[]"], ids=["no byte", "blank lines", "empty list"])
def test_an_input_without_documents_has_exit_code_1_and_is_named(
    content: bytes, run: Run, write_input: WriteInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "contains no document; check that the file is the right one and is not empty\n"
    file, config = write_input("empty.json", content), write_input("none.json", {})
    ended = run("score", file, "--embedder", "none", "--config", config, "--json")
    assert (ended.code, ended.out, ended.err) == (1, "", f"{file}: {why}")

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    ended = run("score", "-", "--embedder", "none", "--config", config, "--json")
    assert (ended.code, ended.out, ended.err) == (1, "", f"the input: {why}")


def test_a_value_without_a_threshold_is_informational_and_has_not_passed(run: Run, write_input: WriteInput) -> None:
    ended = run("score", write_input("events.jsonl", EVENT), "--embedder", "none")
    rows = [line.split(maxsplit=3) for line in ended.out.splitlines() if "tool_call_count_v1" in line]
    assert {row[3].split("  ")[0] for row in rows} == {"INFORMATIONAL"}
    assert "2 scores: 0 passed, 0 failed, 0 not evaluated, 2 informational; " in ended.out
    assert ended.code == 0


SAFETY = {
    "criteria": {"safety_v1": {"threshold": 1.0, "judge_model_options": {"judge_model": "nobody", "num_samples": 1}}}
}


@pytest.mark.slow
@pytest.mark.xdist_group("litellm")
def test_only_failures_of_the_judge_have_exit_code_1(
    run: Run, write_input: WriteInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for the file of verdicts
    answers = {"user_content": {"parts": [{"text": "Hi"}]}, "final_response": {"parts": [{"text": "Hello."}]}}
    event = {"type": "invocation.recorded", "session_id": "s", "occurred_at": "2026-01-31T11:00:00Z"}
    config = write_input("config.json", SAFETY)

    unanswered = run("score", write_input("a.jsonl", event | {"invocation": answers}), "--config", config, "--json")
    assert {orjson.loads(line)["not_evaluated_because"] for line in unanswered.out.splitlines()} == {"error"}
    assert unanswered.code == 1
    [sentence] = unanswered.err.splitlines()
    assert sentence.startswith("no judge gave a verdict: all 2 judged scores are NOT_EVALUATED (2 error); the first: ")

    del answers["final_response"]
    not_asked = run("score", write_input("b.jsonl", event | {"invocation": answers}), "--config", config, "--json")
    assert {orjson.loads(line)["not_evaluated_because"] for line in not_asked.out.splitlines()} == {"missing_input"}
    assert (not_asked.code, not_asked.err) == (0, "")


@pytest.mark.slow
def test_a_private_trace_that_the_gate_rejects_has_exit_code_0(run: Run, write_input: WriteInput) -> None:
    file = write_input("traces.jsonl", trace(1, metadata={"visibility": "private"}))

    ended = run("score", file, "--embedder", "none", "--config", write_input("none.json", {}), "--json")

    assert [orjson.loads(line)["status"] for line in ended.out.splitlines()] == ["PASSED", "FAILED"]
    assert ended.code == 0


@pytest.mark.slow
def test_an_unusable_record_is_reported_on_stderr_with_exit_code_1(run: Run, write_input: WriteInput) -> None:
    file = write_input("traces.jsonl", trace(1), trace(2, outcome={"confidence": 1.5}), trace(3))

    ended = run("score", file, "--embedder", "none", "--config", write_input("none.json", {}), "--json")

    assert (ended.code, len(ended.out.splitlines())) == (1, 4)
    assert ended.err.startswith(f"{file}: document 2: invalid: outcome.confidence: ")


def test_an_unreadable_transcript_is_reported_once(run: Run, write_input: WriteInput) -> None:
    chat = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}
    file = write_input("chats.jsonl", chat, {"messages": []})

    config = write_input("none.json", {})
    ended = run("score", file, "--format", "openai-chat", "--embedder", "none", "--config", config, "--json")

    assert (ended.code, len(ended.out.splitlines())) == (1, 2)
    assert ended.err.count(f"{file}: document 2: messages is a list of 0") == 1


def test_an_unreadable_table_has_exit_code_2(run: Run, write_input: WriteInput) -> None:
    ended = run("score", write_input("rows.parquet", b"no Parquet"), "--embedder", "none")
    assert (ended.code, "cannot be read as Parquet" in ended.err) == (2, True)


@pytest.mark.slow
def test_the_preset_knowledgepulse_changes_the_weights(run: Run, write_input: WriteInput) -> None:
    config = write_input("config.json", {"trace_value": {"preset": "knowledgepulse"}})
    file = write_input("traces.jsonl", trace(1, metadata={"task_domain": "finance"}))

    ended = run("score", file, "--embedder", "none", "--config", config, "--json")

    weights = orjson.loads(ended.out.splitlines()[0])["details"]["weights"]
    default = run("score", file, "--embedder", "none", "--config", write_input("none.json", {}), "--json")
    assert weights != orjson.loads(default.out.splitlines()[0])["details"]["weights"]


def test_a_dash_reads_standard_input(run: Run, write_input: WriteInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(orjson.dumps(trace(1)))))
    ended = run("score", "-", "--embedder", "none", "--config", write_input("none.json", {}), "--json")
    assert (ended.code, len(ended.out.splitlines())) == (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("traces", [1, 300])  # output that fits the buffer meets the closed pipe only at the end
def test_a_closed_pipe_ends_the_command_without_an_error_message(traces: int, write_input: WriteInput) -> None:
    file = write_input("traces.jsonl", *(trace(number) for number in range(traces)))
    options = ["--embedder", "none", "--config", write_input("none.json", {}), "--json"]
    command = [sys.executable, "-m", "traceweir.streams.cli.main", "score", file, *options]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.slow
def test_out_writes_every_score_to_a_file_and_leaves_the_output_as_it_is(
    run: Run, write_input: WriteInput, tmp_path: Path
) -> None:
    file, config = write_input("traces.jsonl", trace(2), trace(1)), write_input("none.json", {})
    options = [file, "--embedder", "none", "--config", config]
    without = run("score", *options)

    for name in ("scores.jsonl", "scores.csv"):
        assert run("score", *options, "--out", str(tmp_path / name)) == without

    written = [Score.model_validate_json(line) for line in (tmp_path / "scores.jsonl").read_bytes().splitlines()]
    expected = [(f"kp:trace:{number}", metric) for number in (2, 1) for metric in ("trace_value", "gate")]
    assert [(score.trace_id, score.metric) for score in written] == expected
    with (tmp_path / "scores.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert [(row["trace_id"], row["metric"], row["offset"]) for row in rows] == [
        (*each, str(number)) for number, each in enumerate(expected)
    ]


@pytest.mark.slow
def test_out_writes_parquet_with_the_columns_of_an_export(run: Run, write_input: WriteInput, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install '.[tables]'")
    file = write_input("traces.jsonl", trace(1), {**trace(2), "outcome": {"confidence": 2}})
    path = tmp_path / "scores.parquet"

    ended = run("score", file, "--embedder", "none", "--config", write_input("none.json", {}), "--out", str(path))

    found = parquet.read_table(path)
    assert ended.code == 1  # the second trace is not valid
    assert found.column_names == [column.name for column in COLUMNS]
    assert found.column("metric").to_pylist() == ["trace_value", "gate"]
    assert found.column("value").to_pylist()[1] == 1.0


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scores.txt", "the name must end in .parquet, .csv or .jsonl"),
        ("missing/scores.jsonl", "cannot be written (No such file or directory). Name a file in a writable folder."),
    ],
)
def test_an_unusable_out_file_has_exit_code_2_before_anything_is_scored(
    name: str, why: str, run: Run, write_input: WriteInput, tmp_path: Path
) -> None:
    ended = run("score", write_input("traces.jsonl", trace(1)), "--json", "--out", str(tmp_path / name))

    assert (ended.code, ended.out) == (2, "")
    assert why in " ".join(ended.err.replace("│", " ").split())


def test_an_input_that_cannot_be_read_leaves_the_out_file_as_it_was(
    run: Run, write_input: WriteInput, tmp_path: Path
) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text("old\n")

    ended = run("score", write_input("rows.parquet", b"no Parquet"), "--out", str(path))

    assert (ended.code, path.read_text()) == (2, "old\n")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
