"""`traceweir config` refuses input that cannot be used before it asks Kafka, and names every problem."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command_line import Run

from traceweir.schemas.pushed_config import PushedConfig
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.config_topic import TopicState


def test_validate_names_every_problem_at_once(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "eval.json"
    file.write_text('{"criteria": {"response_match_score": 7, "no": 1}, "gate": {"minimum": 1}}')
    ended = run("config", "validate", str(file))
    assert ended.code == 2
    for problem in (
        "criteria.response_match_score: the threshold must be",
        "criteria.no: there is no",
        "gate.minimum",
    ):
        assert problem in ended.err


def test_validate_prints_the_digest_of_a_good_config_as_json(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "eval.json"
    file.write_text('{"criteria": {"response_match_score": 0.5}, "gate": {"cacheSize": 5}}')
    ended = run("config", "validate", str(file), "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["criteria"]) == (0, ["response_match_score"])
    assert found["notes"] == ["gate.cache_size has an effect only in the workers' config file"]


def test_validate_warns_of_a_threshold_that_does_not_hold_in_some_languages(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "eval.json"
    file.write_text('{"criteria": {"keyword_coverage": 0.6, "completeness": 0.5}}')
    warning = "keyword_coverage compares words, not meaning: >= 0.6 does not tell right answers from wrong ones in our"
    assert f"warning: {warning}" in run("config", "validate", str(file)).err
    [found] = json.loads(run("config", "validate", str(file), "--json").out)["warnings"]
    assert found.startswith(warning)


def test_validate_warns_of_criteria_that_are_never_measured_or_need_a_reference(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "TRACEWEIR_JUDGE_API_KEY", "TRACEWEIR_JUDGE_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    judged = {"threshold": 1, "judge_model_options": {"judge_model": "openai/gpt-4o"}}
    when = {"any": [{"metric": "trajectory_recall", "below": 0}]}
    criteria = {
        "response_evaluation_score": 3,
        "safety_v1": judged,
        "trajectory_recall": 1,
        "answered": {"threshold": 1, "when": when},
        "guidelines": judged,
    }
    file = tmp_path / "eval.json"
    file.write_text(json.dumps({"criteria": criteria}))
    ended = run("config", "validate", str(file))
    assert ended.code == 0
    for warning in (
        "warning: response_evaluation_score is never measured: Traceweir does not compute it",
        "warning: safety_v1 is never measured: the judge openai/gpt-4o has no key; set OPENAI_API_KEY or",
        "warning: answered is never measured: no condition of `when` can hold (trajectory_recall < 0, and its values are",
        "warning: measured only where a reference says what was expected: trajectory_recall",
        "warning: guideline_adherence is measured only where a reference has guidelines: set criteria.guidelines.",
    ):
        assert warning in ended.err
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-that-is-not-shown")
    found = run("config", "validate", str(file), "--json")
    assert len(json.loads(found.out)["warnings"]) == 4
    assert "a-key-that-is-not-shown" not in found.out + found.err


def test_validate_names_a_window_of_a_model_that_nobody_asks(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-key-that-is-not-shown")
    file = tmp_path / "eval.json"
    file.write_text('{"criteria": {"safety_v1": 1}, "judge": {"window_tokens": {"gemini-2.5-flash": 32768}}}')
    ended = run("config", "validate", str(file))
    warning = "judge.window_tokens.gemini-2.5-flash has no effect: no criterion asks this model, "
    assert (ended.code, f"warning: {warning}" in ended.err) == (0, True)
    assert "did you mean 'gemini/gemini-2.5-flash'?" in ended.err
    [found] = json.loads(run("config", "validate", str(file), "--json").out)["warnings"]
    assert found.startswith(warning)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "must be a JSON object"),
        ('{"criteria": {"no": 1}}', "criteria.no: there is no such metric"),
        ('{"criteria": {}, "criteria": {}}', "occurs twice"),
        ('{"userSimulatorConfig": "\\ud800"}', "cannot be a record of the topic"),
        ('{"userSimulatorConfig": 1e999}', "should be a finite number"),
        ('{"userSimulatorConfig": ' + "[" * 5_000 + "]" * 5_000 + "}", "cannot"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "push"])
def test_a_config_that_cannot_be_used_is_refused_without_kafka(
    run: Run, tmp_path: Path, command: str, text: str, said: str
) -> None:
    file = tmp_path / "eval.json"
    file.write_text(text)
    ended = run("config", command, str(file))
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["push", "missing.json"], "cannot be read"),
        (["push"], "Missing argument"),
        (["push", "eval.json", "--app", ""], "1 to 256 characters"),
        (["push", "eval.json", "--environment", "e" * 257], "1 to 256 characters"),
        (["push", "eval.json", "--comment", "c" * 1_001], "the maximum is 1000"),
        (["show", "--version", "0"], "--version"),
        (["show", "--digest", "ab", "--app", "travel"], "names a config alone"),
        (["show", "--digest", ""], "is empty"),
        (["rollback", "--to", "0"], "--to"),
        (["rollback", "--to", "x"], "--to"),
        (["diff", "current"], "Missing argument"),
        (["diff", "missing.json", "missing.json"], "cannot be read"),
        (["history", "x"], "unexpected extra argument"),
        (["no"], "No such command"),
    ],
)
def test_options_that_cannot_be_used_are_refused_without_kafka(run: Run, arguments: list[str], said: str) -> None:
    ended = run("config", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_two_files_are_compared_without_kafka(run: Run, tmp_path: Path) -> None:
    left, right = tmp_path / "left.json", tmp_path / "right.json"
    left.write_text('{"criteria": {"response_match_score": 0.5}}')
    right.write_text('{"criteria": {"response_match_score": 0.8}, "gate": {"threshold": 0.9}}')
    ended = run("config", "diff", str(left), str(right))
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "~ criteria.response_match_score: 0.5 -> 0.8",
        "+ gate.threshold: 0.9",
        "response_match_score has the same values; its statuses are by another threshold",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "calls"),
    [
        (["push", "plain.json"], 0, ["read", "push"]),
        (["push", "challenged.json"], 0, ["read", "topics", "create", "push"]),
        (["show", "--digest", "ab"], 1, ["read", "topics"]),
        (["diff", "digest:ab", "plain.json"], 1, ["read", "topics"]),
    ],
)
def test_a_command_asks_one_cluster_throughout(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, calls: list[str]
) -> None:
    """The `traceweir up` whose broker was asked first can have ended, and another one can have begun."""
    clusters, used = iter(("first:9092", "second:9092", "third:9092")), list[tuple[str, str]]()

    def note(call: str, settings: Settings) -> None:
        used.append((call, settings.kafka_bootstrap_servers))

    async def read_topic(settings: Settings) -> TopicState:
        note("read", settings)
        return TopicState()

    async def push(settings: Settings, decide: Callable[[TopicState], PushedConfig | None]) -> PushedConfig | None:
        note("push", settings)
        return decide(TopicState())

    def existing_topics(settings: Settings) -> set[str]:
        note("topics", settings)
        return set()

    for module in ("push", "output"):
        monkeypatch.setattr(
            f"traceweir.streams.cli.config.{module}.kafka_settings",
            lambda: Settings(kafka_bootstrap_servers=next(clusters)),
        )
    monkeypatch.setattr("traceweir.streams.cli.config.output.read_topic", read_topic)
    monkeypatch.setattr("traceweir.streams.cli.config.push.push", push)
    for module in ("challenger_name", "digests"):
        monkeypatch.setattr(f"traceweir.streams.lab.shadow.{module}.existing_topics", existing_topics)
    monkeypatch.setattr(
        "traceweir.streams.lab.shadow.challenger_name.create_named", lambda settings, *_: note("create", settings)
    )
    monkeypatch.chdir(tmp_path)
    Path("plain.json").write_text("{}")
    Path("challenged.json").write_text(
        '{"challenger": {"name": "next", "config": {"criteria": {"response_match_score": 0.5}}}}'
    )
    ended = run("config", *arguments)
    assert ended.code == code, ended.err
    assert used == [(call, "first:9092") for call in calls]
