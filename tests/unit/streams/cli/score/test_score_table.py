"""Tests the table that `traceweir score` prints without `--json`."""

from __future__ import annotations

import orjson
import pytest
from tests.support.cli_inputs import EVENT, WriteInput, trace
from tests.support.command_line import Run


def test_the_output_shows_full_metric_names_and_reports_invalid_rows(run: Run, write_input: WriteInput) -> None:
    config = write_input("config.json", {"criteria": {"latency": {}, "input_token_count": {}}})
    file = write_input("rows.csv", b"request_id,request,response,execution_time_ms", b"r1,q,a,250000", b"r2,q,,")

    ended = run("score", file, "--embedder", "none", "--config", config)

    shown = " ".join(ended.out.split())
    assert "r1 agent/latency_seconds 250 INFORMATIONAL 250 s" in shown
    assert "r1 agent/input_token_count NOT_EVALUATED missing_input: no model call reports its input tokens" in shown
    assert ended.err == f"{file}: row 2, columns 'response' and 'trace': Missing required field(s): response or trace\n"
    assert ended.code == 1


def test_the_means_over_all_sessions_are_printed_last(run: Run, write_input: WriteInput) -> None:
    config = write_input("config.json", {"criteria": {"latency": {}, "input_token_count": {}, "completeness": 0.5}})
    rows = [b"q,alpha,1000", b"alpha beta gamma,,3000", b"alpha,alpha,"]
    file = write_input(
        "rows.csv", b"request,response,execution_time_ms", rows[0], rows[1].replace(b",,", b",alpha,"), rows[2]
    )

    shown = " ".join(run("score", file, "--embedder", "none", "--config", config).out.split())

    before, _, sums = shown.partition("all sessions ")
    assert before.endswith(
        "values without a threshold agent/latency_seconds median 1.000 s, p95 3.000 s; lower is better "
    )
    assert sums.startswith(
        "agent/latency_seconds 2.000 mean of 2 of 3 sessions agent/input_token_count none of 3 sessions "
        "completeness 0.444 "
    )
    assert "mean of 3 of 3 sessions, 2 failed 3 documents" in sums
    assert (
        "all sessions"
        not in run("score", write_input("one.csv", b"request,response", b"q,a"), "--embedder", "none").out
    )


@pytest.mark.parametrize(
    ("milliseconds", "sessions", "mean"),
    [
        (1_234_567_000, 2, "1,234,567 mean of 2 of 2 sessions"),
        pytest.param(1.7e308, 1_100, "1.7e+305 mean of 1100 of 1100 sessions", marks=pytest.mark.slow),
    ],
)
def test_the_mean_of_values_whose_sum_overflows_is_printed_in_short_form(
    milliseconds: float, sessions: int, mean: str, run: Run, write_input: WriteInput
) -> None:
    config = write_input("config.json", {"criteria": {"latency": {}}})
    row = {"request": "q", "response": "a", "execution_time_ms": milliseconds}
    file = write_input("rows.jsonl", *[row] * sessions)

    ended = run("score", file, "--embedder", "none", "--config", config)

    assert f"latency_seconds {mean}" in " ".join(ended.out.partition("all sessions")[2].split())


def test_the_table_shows_value_status_and_reason(run: Run, write_input: WriteInput) -> None:
    ended = run("score", write_input("traces.jsonl", trace(1, outcome={"confidence": 0.1})), "--embedder", "none")

    assert "trace_value" in ended.out
    assert "FAILED (needs >= 0.75)  complexity" in ended.out
    assert "rejected: below_threshold" in ended.out
    assert "1 document, 1 session, 0 duplicates, 0 problems; 4 scores: " in ended.out


@pytest.mark.parametrize("hostile", ["[red]x[/nope]", "a\x1b[31mb", "right\u202eleft"])
def test_hostile_text_neither_colours_nor_breaks_the_table(hostile: str, run: Run, write_input: WriteInput) -> None:
    event = {**orjson.loads(EVENT), "session_id": hostile}
    config = write_input("config.json", {"criteria": {"response_match_score": 0.5}})

    ended = run("score", write_input("events.jsonl", event), "--embedder", "none", "--config", config)

    assert ended.code == 0
    assert hostile.encode("unicode_escape").decode() in ended.out
    assert not {"\x1b", "\u202e"} & set(ended.out)


def test_in_a_pipe_ids_are_whole_and_no_line_ends_with_blanks(
    run: Run, write_input: WriteInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "kp:trace:" + "long-name-" * 12
    file = write_input("traces.jsonl", {**trace(1), "id": name}, trace(2))

    lines = run("score", file, "--embedder", "none").out.splitlines()

    assert sum(name in line for line in lines) == 4
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_value_just_below_its_threshold_has_the_digits_that_show_it(run: Run, write_input: WriteInput) -> None:
    config = write_input("config.json", {"criteria": {"content_similarity": 0.6667}})
    file = write_input("rows.csv", b"request,response", b"abc d,abc e")

    shown = " ".join(run("score", file, "--embedder", "none", "--config", config).out.split())

    assert " 0.66667 FAILED (needs >= 0.6667)" in shown
