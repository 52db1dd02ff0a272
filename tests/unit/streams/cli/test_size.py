"""`traceweir size` computes with the config and the options, prints what it assumes, and refuses what it cannot use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import Run

CHECKS: dict[str, Any] = {"criteria": {"answered": {}}}
JUDGED: dict[str, Any] = {
    "criteria": {
        "answered": {},
        "safety_v1": {
            "threshold": 1.0,
            "judge_model_options": {"judge_model": "openai/mine"},
            "when": {"any": [{"metric": "answered", "status": "FAILED"}], "else": 0.1},
        },
    },
    "sampling": {"safety_v1": 0.5},
    "judge": {"prices": {"openai/mine": {"input": 1.0, "output": 2.0}}},
}

BOUNDS = {"ROCKSDB", "WORKER_STATE"}
"""Figures that the code sets: no benchmark measures them."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sized(run: Run, config: dict[str, Any], *options: str) -> Any:
    Path("eval.json").write_text(json.dumps(config))
    ended = run("size", "--sessions-per-day", "1e6", "--config", "eval.json", "--json", *options)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_twice_the_sessions_take_twice_the_bytes(run: Run) -> None:
    one = sized(run, CHECKS)["needs"]
    two = sized(run, CHECKS, "--sessions-per-day", "2e6")["needs"]
    assert two["records_per_s"] == pytest.approx(2 * one["records_per_s"])
    for topic, size in one["kafka_mb_per_day"].items():
        assert two["kafka_mb_per_day"][topic] == pytest.approx(2 * size)
    assert two["store_mb"] == pytest.approx(2 * one["store_mb"])


def test_a_large_load_has_more_workers_and_three_partitions_for_each(run: Run) -> None:
    needs = sized(run, CHECKS, "--sessions-per-day", "1e9")["needs"]
    assert needs["workers"] > 2
    assert needs["partitions"] == 3 * needs["workers"]


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        # 1e6 / 86,400 sessions a second, three times as many at the peak, at 1,000 ms in one scoring process.
        (["--embedding-ms", "1000", "--scopes", "0"], 35),
        # At the peak 35 sessions a second stay open for a million seconds, with 3,799 bytes each.
        (["--open-seconds", "1e6", "--scopes", "0"], 53),
    ],
    ids=["scoring", "state"],
)
def test_scoring_and_state_need_workers_too(run: Run, options: list[str], workers: int) -> None:
    assert sized(run, CHECKS, *options)["needs"]["workers"] == workers


@pytest.mark.parametrize(("processes", "workers"), [("1", 199), ("4", 157)], ids=["scoring", "main thread"])
def test_further_scores_take_the_scoring_processes_and_the_main_thread(
    run: Run, monkeypatch: pytest.MonkeyPatch, processes: str, workers: int
) -> None:
    # 80 scores more than in the load of the benchmarks, with 69 and 25 µs each.
    checks = {"criteria": {"answered": {}, "repeated_calls": 3, "max_tool_calls": 20, "handoffs": 3}}
    monkeypatch.setenv("TRACEWEIR_SCORING_PROCESSES", processes)
    monkeypatch.setenv("TRACEWEIR_EMBEDDER", "hashing")
    needs = sized(run, checks, "--sessions-per-day", "1e9", "--turns", "20")["needs"]
    assert needs["scores_per_session"] == 86
    assert needs["workers"] == workers


def test_larger_records_make_a_larger_changelog(run: Run) -> None:
    one = sized(run, CHECKS)["needs"]["kafka_mb_per_day"]["changelog"]
    ten = sized(run, CHECKS, "--record-bytes", "3550")["needs"]["kafka_mb_per_day"]["changelog"]
    assert ten == pytest.approx(10 * one)


def test_bytes_of_spans_are_said_not_to_be_counted(run: Run) -> None:
    said = [run("size", "--sessions-per-day", "1e6", *options).out for options in ([], ["--spans", "5"])]
    assert ["bytes of spans" in each for each in said] == [False, True]


def test_the_environment_counts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sized(run, CHECKS)["needs"]
    monkeypatch.setenv("TRACEWEIR_GUARD_S", "36000")
    assert sized(run, CHECKS)["needs"]["state_mb"] > before["state_mb"]


@pytest.mark.slow
def test_sampling_and_a_condition_reduce_what_a_judge_is_asked(run: Run) -> None:
    [judged] = sized(run, JUDGED, "--passes-on", "0.2")["judges"]
    assert judged["criterion"] == "safety_v1"
    assert judged["share"] == pytest.approx(0.5 * (0.2 + 0.8 * 0.1))
    assert judged["questions"] > 0
    price = judged["input_tokens"] * 1e-6 + judged["output_tokens"] * 2e-6
    assert judged["usd"] == pytest.approx(price)
    assert judged["cacheable_tokens"] == 0
    assert judged["cached_usd"] == judged["usd"], "nothing is cacheable, so a cache changes no price"


@pytest.mark.slow
def test_a_model_without_a_price_is_unknown_and_not_free(run: Run) -> None:
    config = {**JUDGED, "judge": {}}
    [judged] = sized(run, config)["judges"]
    assert judged["usd"] is None
    ended = run("size", "--sessions-per-day", "1e6", "--config", "eval.json")
    assert "unknown" in ended.out


def test_each_figure_names_a_benchmark_that_exists(run: Run) -> None:
    main = (Path(__file__).parents[4] / "benchmarks" / "__main__.py").read_text("utf-8")
    for name, figure in sized(run, CHECKS)["figures"].items():
        if name not in BOUNDS:
            assert f'"{figure["benchmark"]}": ' in main, name


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--sessions-per-day", "0"], "--sessions-per-day"),
        (["--sessions-per-day", "many"], "--sessions-per-day"),
        (["--sessions-per-day", "nan"], "--sessions-per-day"),
        (["--sessions-per-day", "1e6", "--turns", "0"], "--turns"),
        (["--sessions-per-day", "1e6", "--passes-on", "2"], "--passes-on"),
        (["--sessions-per-day", "1e6", "--config", "missing.json"], "missing.json"),
        (["--sessions-per-day", "1e6", "--record-bytes", "80000"], "TRACEWEIR_SEGMENT_MAX_BYTES"),
        ([], "--sessions-per-day"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(run: Run, options: list[str], problem: str) -> None:
    ended = run("size", *options)
    assert ended.code == 2
    assert problem in ended.err
    assert "Traceback" not in ended.err
