"""Tests `traceweir score` with large inputs: its table, its means, and what it says when it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from math import fsum
from pathlib import Path

import pytest
from tests.support.cli_inputs import WriteInput, trace
from tests.support.command_line import Run

from traceweir.streams.cli.score.tally import ScoreLine, ScoreTally

pytestmark = pytest.mark.slow


def test_the_table_of_a_large_input_has_the_first_and_the_worst_rows(run: Run, write_input: WriteInput) -> None:
    confidences = [1.0 if number % 50 else number / 5_000 for number in range(1, 301)]
    traces = (trace(number, outcome={"confidence": each}) for number, each in enumerate(confidences, start=1))
    config = write_input("none.json", {})

    ended = run("score", write_input("traces.jsonl", *traces), "--embedder", "none", "--config", config)

    first, _, rest = ended.out.partition(
        "\n100 of 600 scores are shown above; --json and --out FILE write all of them\n"
    )
    assert first.count("trace_value") == 50
    worst, _, after = rest.partition("\nall sessions\n")
    lines = worst.strip().splitlines()
    assert lines[0] == "the 6 furthest from their thresholds, of 6 scores that missed them"
    assert [line.split()[1] for line in lines[1:]] == [f"kp:trace:{number}" for number in range(50, 301, 50)]
    assert "mean of 300 of 300 traces, 6 failed" in after
    assert "300 documents, 300 sessions, 0 duplicates, 0 problems; 600 scores: " in after


def test_the_worst_rows_are_the_twenty_that_miss_their_threshold_by_most(run: Run, write_input: WriteInput) -> None:
    confidences = [(number * 37 % 211) / 400 for number in range(211)]
    traces = (trace(number, outcome={"confidence": each}) for number, each in enumerate(confidences))
    config = write_input("none.json", {})

    ended = run("score", write_input("traces.jsonl", *traces), "--embedder", "none", "--config", config)

    worst = ended.out.partition("furthest from")[2].partition("\nall sessions\n")[0].strip().splitlines()[1:]
    expected = sorted(range(211), key=lambda number: confidences[number])[:20]
    assert [line.split()[1] for line in worst] == [f"kp:trace:{number}" for number in expected]


def test_the_mean_is_that_of_the_exact_sum() -> None:
    values = [0.1] * 10 + [1e16, 1.0, -1e16, 5e-324]
    tally = ScoreTally(judged=())
    for value in values:
        tally.add(ScoreLine("s", 0, "session", "m", value, None, "PASSED"))

    [(metric, mean, of)] = tally.sums()

    assert (metric, mean, of) == ("m", f"{fsum(values) / len(values):.3f}", "mean of 14 of 14 sessions")


@pytest.mark.slow
def test_the_mean_of_a_metric_is_split_by_judge_where_several_have_judged() -> None:
    def sums(*judges: str | None) -> list[tuple[str, str, str]]:
        tally = ScoreTally(judged=["m"])
        for number, judge in enumerate(judges):
            value = 1.0 if judge == "one" else 0.5
            tally.add(ScoreLine(f"s{number}", 0, "session", "m", value, None, "PASSED", judge=judge))
        return tally.sums()

    assert sums("one", "one", "two\x1b") == [
        ("m", "0.833", "mean of 3 of 3 sessions"),
        ("  judge one", "1.000", "mean of 2 of 2 sessions"),
        ("  judge two\\x1b", "0.500", "mean of 1 of 1 session"),
    ]
    assert len(sums("one", "one", None)) == len(sums(None)) == 1


@pytest.mark.large
def test_ctrl_c_while_the_input_is_read_ends_with_code_130_and_says_that_nothing_was_scored(
    write_input: WriteInput,
) -> None:
    command = [sys.executable, "-m", "traceweir.streams.cli.main", "score", "-", "--embedder", "none", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        document = (b'{"type": "session.ended", "session_id": "s", "occurred_at": "2026-01-31T11:00:00Z"}\n') * 40_000
        process.stdin.write(document)  # returns when nearly all of it was read, so the command is reading
        process.stdin.flush()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate()

    assert (process.returncode, out) == (130, b"")
    assert err.decode().startswith("interrupted after ")
    assert err.decode().endswith(" documents of the input; nothing was scored\n")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.large)])
def test_ctrl_c_while_sessions_are_scored_ends_with_code_130_and_says_what_was_written(
    jobs: int, write_input: WriteInput, tmp_path: Path
) -> None:
    out_file = tmp_path / "scores.parquet"
    file = write_input("traces.jsonl", *(trace(number) for number in range(5_000)))
    options = ["--embedder", "none", "--config", write_input("none.json", {}), "--json", "--jobs", f"{jobs}"]
    options += ["--out", str(out_file)]
    command = [sys.executable, "-m", "traceweir.streams.cli.main", "score", file, *options]
    # Without a buffer, `communicate` gets what `readline` has not returned.
    with subprocess.Popen(command, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate()

    scores = len((first + out).splitlines())
    assert process.returncode == 130
    assert 0 < scores < 10_000
    assert (first + out).endswith(b"}\n")
    assert err.decode() == (
        f"interrupted: {scores // 2} of 5000 sessions have been scored, with {scores} scores; "
        f"they are on standard output; {out_file} was not written\n"
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["none.json", "traces.jsonl"]


@pytest.mark.large
def test_jobs_without_effect_are_said_with_the_reason(
    run: Run, write_input: WriteInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for the file of verdicts
    safety = {"threshold": 1.0, "judge_model_options": {"judge_model": "nobody"}}
    config = write_input("config.json", {"criteria": {"safety_v1": safety}})

    ended = run("score", write_input("empty.jsonl"), "--embedder", "none", "--config", config, "--jobs", "4")

    assert ended.err.splitlines()[0] == (
        "--jobs 4 has no effect: criteria ask a judge, and one process keeps its budget, its rate limits and its verdicts"
    )
