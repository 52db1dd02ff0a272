"""Tests `traceweir alerts test` on files, and that the page's commands run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.support.command_line import Run
from tests.support.commands import shown_in
from tests.support.paths import ROOT

from traceweir.schemas.score import Score

START = datetime(2026, 11, 1, tzinfo=UTC)


def written(days: int = 9, metric: str = "helpful", rate_after: float = 0.3, **changes: object) -> None:
    """Writes scores with a pass rate of 0.9 for 8 days, and then of another."""
    random = np.random.default_rng(2)
    lines = []
    for number in range(days * 24 * 10):
        moment = START + timedelta(hours=number / 10)
        passed = bool(random.random() < (0.9 if number < 8 * 240 else rate_after))
        fields = {
            "result_id": f"r{number}",
            "revision": 0,
            "session_id": f"s{number}",
            "segment": 0,
            "level": "session",
            "metric": metric,
            "value": float(passed),
            "threshold": 0.5,
            "status": "PASSED" if passed else "FAILED",
            "scorer_version": "1",
            "config_digest": "d",
            "agent_version": "1" if number < 8 * 240 else "2",
            "occurred_at": moment,
            "evaluated_at": moment,
        }
        lines.append(Score.model_validate(fields | changes).wire())
    Path("results.jsonl").write_bytes(b"\n".join(lines) + b"\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "240")


@pytest.mark.slow
def test_the_alert_is_printed_with_its_time_change_and_suspect(run: Run) -> None:
    written()
    ended = run("alerts", "test", "--results", "results.jsonl")
    assert ended.code == 0, ended.err
    assert "agent_version 2" in ended.out
    assert "2026-11-09" in ended.out
    assert "helpful session: see s" in ended.out


@pytest.mark.slow
def test_what_agents_send_is_no_markup_and_no_control_character(run: Run) -> None:
    written(category="[/refund]", labels={"a\x1b[2J": "[red]b"})
    rule = {"id": "r", "what": "category", "category": "[/refund]", "direction": "drop", "by": ["labels.a\x1b[2J"]}
    Path("rule.json").write_text(json.dumps(rule), "utf-8")
    ended = run("alerts", "test", "rule.json", "--results", "results.jsonl")
    assert ended.code == 0, ended.err
    assert "\x1b[2J" not in ended.out

    written(labels={"a\x1b[2J": "[red]b"})
    ended = run("alerts", "test", "--results", "results.jsonl")
    assert ended.code == 0, ended.err
    assert "\x1b[2J" not in ended.out


@pytest.mark.slow
def test_the_json_has_the_alert_and_the_stream(run: Run) -> None:
    written()
    found = json.loads(run("alerts", "test", "--results", "results.jsonl", "--json").out)
    (alert,) = found["alerts"]
    assert alert["stream"] == {"metric": "helpful", "level": "session", "slice": {}}
    assert alert["onset"]["from"] <= "2026-11-09T00:00:00Z" <= alert["onset"]["to"]
    assert alert["suspects"][0] == {"field": "agent_version", "value": "2", "first_seen": "2026-11-09T00:00:00Z"}
    assert len(alert["sessions"]) == 10
    assert found["streams"][0]["state"] == "raised"
    assert found["rule"]["id"] == "any-pass-rate-drops"


@pytest.mark.slow
def test_the_commands_and_the_rule_of_the_page_run(run: Run) -> None:
    page = (ROOT / "docs" / "alert-rules.md").read_text("utf-8")
    rule = next(part.split("```")[0] for part in page.split("```json\n")[1:])
    Path("rule.json").write_text(rule, "utf-8")
    written(metric=json.loads(rule)["metric"], app_name="shop")
    # tests/broker/test_documented_commands.py runs those that read the topic.
    (command,) = [each for each in shown_in(page) if "--results" in each.arguments]
    ended = run(*command.arguments)
    assert ended.code == 0, ended.err
    assert "agent_version 2" in ended.out


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{", "not a rule of alerts"),
        ('{"id": "r", "window": "1h"}', "window: Extra inputs are not permitted"),
        ('{"id": "r", "by": ["team"]}', "by: team: no such dimension; there are app_name,"),
        ('{"id": "r", "cause": "too_long"}', "only a rule of not_evaluated has a cause"),
        ('{"id": "r", "by": ["model", "user_id", "model"]}', "by names 'model' twice; name each dimension once"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused(rule: str, message: str, run: Run) -> None:
    written(days=1)
    Path("rule.json").write_text(rule, "utf-8")
    ended = run("alerts", "test", "rule.json", "--results", "results.jsonl")
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_files_without_a_usable_score_are_said(run: Run) -> None:
    ended = run("alerts", "test", "--results", "results.jsonl")
    assert ended.code == 2
    assert "results.jsonl: cannot be read" in ended.err
    Path("results.jsonl").write_bytes(b"")
    ended = run("alerts", "test", "--results", "results.jsonl")
    assert ended.code == 1
    assert "contains no document" in ended.err
    written(days=1)
    Path("rule.json").write_text('{"id": "r", "metric": "other"}', "utf-8")
    ended = run("alerts", "test", "rule.json", "--results", "results.jsonl")
    assert ended.code == 1
    assert "no score fits the rule 'r'" in ended.err


def test_a_bad_line_costs_itself_and_the_exit_code(run: Run) -> None:
    written(days=1)
    with Path("results.jsonl").open("ab") as file:
        file.write(b"{\n")
    ended = run("alerts", "test", "--results", "results.jsonl")
    assert ended.code == 1
    assert "line 241: " in ended.err
    assert "learning" in ended.out


def test_hostile_names_are_escaped(run: Run) -> None:
    written(days=1, metric="\x1b[31m[red]x", app_name="\x1b]0;y")
    Path("rule.json").write_text('{"id": "\\u001b[2J", "by": ["app_name"]}', "utf-8")
    ended = run("alerts", "test", "rule.json", "--results", "results.jsonl")
    assert "\x1b" not in ended.out + ended.err
    assert "[red]x" in ended.out
