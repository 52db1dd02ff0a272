"""Each alert fires when its condition lasts, stays silent otherwise, reads metrics that exist, and has a runbook."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.paths import ROOT

from traceweir.streams.base.topics import Topics
from traceweir.streams.worker.telemetry.catalogue import CATALOGUE
from traceweir.streams.worker.telemetry.tool_catalogue import ALERTS, CANARY, EXPORT, TRUST

FILE = ROOT / "monitoring" / "alerts.yaml"
RULES = {rule["alert"]: rule for group in yaml.safe_load(FILE.read_text("utf-8"))["groups"] for rule in group["rules"]}
PAGE = (ROOT / "docs" / "alerts.md").read_text("utf-8")

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed: apt-get install prometheus"
)


@dataclass(frozen=True)
class Case:
    """What a rule reads in a minute's steps, and whom it names after an hour and a half."""

    fires: dict[str, str]
    silent: dict[str, str]
    labels: dict[str, str] = field(default_factory=dict)


A = '{instance="a"}'
ASSEMBLE = 'stage="assemble"'
CASES = {
    "TraceweirNoWorker": Case({}, {f"traceweir_build{A}": "1x100"}),
    "TraceweirWorkerNotReady": Case(
        {f"traceweir_worker_ready{A}": "0x100", 'traceweir_worker_ready{instance="b"}': "1x100"},
        {f"traceweir_worker_ready{A}": "1x80 0x5 1x20"},
        {"instance": "a"},
    ),
    "TraceweirWorkerUnhealthy": Case(
        {f"traceweir_worker_problems{A}": "2x100"}, {f"traceweir_worker_problems{A}": "0x100"}, {"instance": "a"}
    ),
    "TraceweirCheckpointStuck": Case(
        {f"traceweir_checkpoint_age_seconds{A}": "0+1x100", f"traceweir_transaction_timeout_seconds{A}": "60x100"},
        {f"traceweir_checkpoint_age_seconds{A}": "0x88 70 0x20", f"traceweir_transaction_timeout_seconds{A}": "60x110"},
        {"instance": "a"},
    ),
    "TraceweirTransactionSlow": Case(
        {f"traceweir_checkpoint_age_seconds{A}": "0x87 31 0x20", f"traceweir_transaction_timeout_seconds{A}": "60x110"},
        {f"traceweir_checkpoint_age_seconds{A}": "29x110", f"traceweir_transaction_timeout_seconds{A}": "60x110"},
        {"instance": "a"},
    ),
    "TraceweirOpenTransaction": Case(
        {'traceweir_transactions_open_age_seconds{topic="t"}': "0+60x100"},
        {'traceweir_transactions_open_age_seconds{topic="t"}': "0x88 90 0x20"},
        {"topic": "t"},
    ),
    "TraceweirCheckpointsFail": Case(
        {f"traceweir_checkpoint_failures_total{A}": "0x80 1x20"},
        {f"traceweir_checkpoint_failures_total{A}": "0x50 1x60"},
        {"instance": "a"},
    ),
    "TraceweirScoringProcessDies": Case(
        {f"traceweir_scoring_restarts_total{A}": "0+1x100"},
        {f"traceweir_scoring_restarts_total{A}": "0x80 1x30"},
        {"instance": "a"},
    ),
    "TraceweirClockApart": Case(
        {f"traceweir_clock_ahead_seconds{A}": "-7x100"},
        {f"traceweir_clock_ahead_seconds{A}": "0.1x87 9 0.1x20"},
        {"instance": "a"},
    ),
    "TraceweirEventLoopBlocked": Case(
        {f"traceweir_event_loop_lag_seconds{A}": "7x100"},
        {f"traceweir_event_loop_lag_seconds{A}": "0.1x87 9 0.1x20"},
        {"instance": "a"},
    ),
    "TraceweirCanaryFails": Case(
        {f"traceweir_canary_success{A}": "1x50 0x50"}, {f"traceweir_canary_success{A}": "1x86 0x3 1x20"}
    ),
    "TraceweirCoverageGap": Case(
        {
            f"traceweir_records_consumed_total{{{ASSEMBLE}}}": "0+10x100",
            f'traceweir_stage_events_total{{{ASSEMBLE}, event="joined"}}': "0+9x100",
        },
        {
            f"traceweir_records_consumed_total{{{ASSEMBLE}}}": "0+10x100",
            f'traceweir_stage_events_total{{{ASSEMBLE}, event="joined"}}': "0+7x100",
            f'traceweir_stage_events_total{{{ASSEMBLE}, event="duplicate"}}': "0+1x100",
            f'traceweir_stage_events_total{{{ASSEMBLE}, event="opened"}}': "0+5x100",
            f'traceweir_dead_letters_total{{{ASSEMBLE}, reason="late"}}': "0+2x100",
        },
        {"stage": "assemble"},
    ),
    "TraceweirSessionsWithoutScores": Case(
        {'traceweir_records_consumed_total{stage="score"}': "0+5x100", 'traceweir_scores_total{metric="m"}': "7x100"},
        {'traceweir_records_consumed_total{stage="score"}': "0+5x100", 'traceweir_scores_total{metric="m"}': "0+9x100"},
    ),
    "TraceweirDeadLetters": Case(
        {f'traceweir_dead_letters_total{{{ASSEMBLE}, reason="invalid"}}': "0x80 3x20"},
        {
            f'traceweir_dead_letters_total{{{ASSEMBLE}, reason="late"}}': "0x80 3x20",
            f'traceweir_dead_letters_total{{{ASSEMBLE}, reason="missed"}}': "0x80 3x20",
            'traceweir_dead_letters_total{stage="export", reason="given_up"}': "0x80 3x20",
        },
        {"stage": "assemble", "reason": "invalid"},
    ),
    "TraceweirRecordsLate": Case(
        {f'traceweir_dead_letters_total{{{ASSEMBLE}, reason="late"}}': "0x80 300x20"},
        {
            f'traceweir_dead_letters_total{{{ASSEMBLE}, reason="late"}}': "3x100",
            f'traceweir_dead_letters_total{{{ASSEMBLE}, reason="invalid"}}': "0x80 3x20",
        },
        {"stage": "assemble"},
    ),
    "TraceweirUnreadExpires": Case(
        {
            'traceweir_records_unread_age_seconds{topic="t", instance="a"}': "0+60x100",
            'traceweir_records_unread_age_seconds{topic="t", instance="b"}': "0x100",
            'traceweir_topic_retention_seconds{topic="t", instance="b"}': "7200x100",
        },
        {
            'traceweir_records_unread_age_seconds{topic="t"}': "0x50 3000x100",
            'traceweir_topic_retention_seconds{topic="t"}': "7200x100",
            'traceweir_records_unread_age_seconds{topic="kept for ever"}': "0+60x100",
            'traceweir_topic_retention_seconds{topic="u"}': "60x100",
        },
        {"topic": "t"},
    ),
    "TraceweirRecordsMissed": Case(
        {
            f'traceweir_stage_events_total{{{ASSEMBLE}, event="missed", instance="ended"}}': "500x60",
            f'traceweir_stage_events_total{{{ASSEMBLE}, event="missed", instance="new"}}': "_x80 10x20",
        },
        {
            f'traceweir_stage_events_total{{{ASSEMBLE}, event="missed"}}': "40x100",
            f'traceweir_stage_events_total{{{ASSEMBLE}, event="joined"}}': "0+9x100",
        },
        {"stage": "assemble"},
    ),
    "TraceweirLagGrows": Case(
        {'traceweir_consumer_lag{topic="t"}': "0+100x100"},
        {'traceweir_consumer_lag{topic="t"}': "90000-100x100", 'traceweir_consumer_lag{topic="u"}': "0+1x100"},
        {"topic": "t"},
    ),
    "TraceweirWatermarkBehind": Case(
        {f"traceweir_watermark_lag_seconds{A}": "0+60x100"}, {f"traceweir_watermark_lag_seconds{A}": "60x100"}
    ),
    "TraceweirExportNotReady": Case(
        {
            'traceweir_export_ready{group="ended", instance="a"}': "1x20 0x2 _x80",
            'traceweir_export_ready{group="other", instance="b"}': "1x100",
        },
        {
            'traceweir_export_ready{group="replaced", instance="a"}': "1x40 _x60",
            'traceweir_export_ready{group="replaced", instance="b"}': "_x45 0x4 1x60",
            'traceweir_export_ready{group="recovers", instance="a"}': "1x83 0x3 1x20",
        },
        {"group": "ended"},
    ),
    "TraceweirExportGivenUp": Case(
        {'traceweir_dead_letters_total{stage="export", reason="given_up", instance="a"}': "0x80 60x20"},
        {
            'traceweir_dead_letters_total{stage="export", reason="given_up", instance="a"}': "3x100",
            'traceweir_dead_letters_total{stage="export", reason="refused", instance="a"}': "0x80 3x20",
        },
        {"instance": "a"},
    ),
    "TraceweirScoresLate": Case(
        {
            'traceweir_score_freshness_seconds_bucket{le="600.0"}': "0+9x100",
            'traceweir_score_freshness_seconds_bucket{le="1800.0"}': "0+10x100",
            'traceweir_score_freshness_seconds_bucket{le="+Inf"}': "0+10x100",
        },
        {
            'traceweir_score_freshness_seconds_bucket{le="10.0"}': "0+99x100",
            'traceweir_score_freshness_seconds_bucket{le="+Inf"}': "0+100x100",
        },
    ),
    "TraceweirScoresWithoutValue": Case(
        {
            'traceweir_scores_total{metric="m", status="NOT_EVALUATED", reason="error"}': "0+2x100",
            'traceweir_scores_total{metric="m", status="PASSED", reason=""}': "0+8x100",
        },
        {
            'traceweir_scores_total{metric="m", status="NOT_EVALUATED", reason="error"}': "0+1x100",
            'traceweir_scores_total{metric="m", status="NOT_EVALUATED", reason="missing_input"}': "0+90x100",
            'traceweir_scores_total{metric="m", status="PASSED", reason=""}': "0+19x100",
        },
        {"metric": "m", "reason": "error"},
    ),
    "TraceweirJudgeBudgetSpent": Case(
        {'traceweir_scores_total{metric="m", reason="budget"}': "0x80 4x20"},
        {'traceweir_scores_total{metric="m", reason="budget"}': "4x100"},
        {"metric": "m"},
    ),
    "TraceweirJudgeBudgetNearlySpent": Case(
        {
            'traceweir_judge_budget_left{limit="usd_per_day", instance="a"}': "1x80 0.15x20",
            'traceweir_judge_budget_left{limit="usd_per_day", instance="b"}': "1x100",
        },
        {
            'traceweir_judge_budget_left{limit="usd_per_day"}': "0.25x100",
            'traceweir_judge_budget_left{limit="tokens_per_minute"}': "0x100",
        },
        {"limit": "usd_per_day"},
    ),
    "TraceweirJudgeDown": Case(
        {'traceweir_judge_breaker_open{model="m"}': "0x10 1x100"},
        {'traceweir_judge_breaker_open{model="m"}': "0x10 1x3 0x20 1x3 0x100"},
        {"model": "m"},
    ),
    "TraceweirJudgeAnswersUnusable": Case(
        {
            'traceweir_judge_request_duration_seconds_count{model="m", outcome="answered"}': "0+8x100",
            'traceweir_judge_request_duration_seconds_count{model="m", outcome="refused"}': "0+2x100",
            'traceweir_judge_request_failures_total{model="m", cause="judge_truncated"}': "0+2x100",
        },
        {
            'traceweir_judge_request_duration_seconds_count{model="m", outcome="answered"}': "0+19x100",
            'traceweir_judge_request_duration_seconds_count{model="m", outcome="temporary"}': "0+60x100",
            'traceweir_judge_request_duration_seconds_count{model="m", outcome="unusable"}': "0+1x100",
            'traceweir_judge_request_failures_total{model="m", cause="judge_unavailable"}': "0+60x100",
            'traceweir_judge_request_failures_total{model="m", cause="judge_unparsable"}': "0+1x100",
            'traceweir_judge_request_duration_seconds_count{model="few", outcome="refused"}': "0x80 1x20",
            'traceweir_judge_request_failures_total{model="few", cause="judge_refused"}': "0x80 1x20",
        },
        {"model": "m", "cause": "judge_truncated"},
    ),
    "TraceweirJudgeUnfit": Case(
        {
            'traceweir_judge_unfit{metric="m", model="weak", instance="a"}': "0x80 1x20",
            'traceweir_judge_unfit{metric="m", model="weak", instance="b"}': "0x100",
        },
        {
            'traceweir_judge_unfit{metric="m", model="good"}': "0x100",
            'traceweir_judge_unfit{metric="m", model="weak"}': "0x10 1x3 0x87",
        },
        {"metric": "m", "model": "weak"},
    ),
    "TraceweirScoresWorse": Case(
        {
            'traceweir_alerts_raised{rule="r", metric="m", level="session", instance="a"}': "_x30 2x70",
            'traceweir_alerts_scores_total{event="read", instance="b"}': "0x100",
        },
        {'traceweir_alerts_raised{rule="r", metric="m", level="session"}': "2x50 _x50"},
        {"rule": "r", "metric": "m", "level": "session"},
    ),
    "TraceweirAlertsNotReady": Case(
        {'traceweir_alerts_ready{instance="a"}': "1x20 0x20 _x60", 'traceweir_alerts_ready{instance="b"}': "1x30 _x70"},
        {'traceweir_alerts_ready{instance="a"}': "1x20 _x80", 'traceweir_alerts_ready{instance="b"}': "0x20 1x80"},
    ),
}


@needs_promtool
@pytest.mark.parametrize("alert", RULES)
def test_an_alert_fires_when_its_condition_lasts_and_not_otherwise(alert: str, tmp_path: Path) -> None:
    assert_fires(alert, CASES[alert], tmp_path)


def assert_fires(alert: str, case: Case, tmp_path: Path, *, at: str = "90m", step: str = "1m") -> None:
    expected = {"exp_labels": {**RULES[alert]["labels"], **case.labels}}
    document = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": step,
        "tests": [
            {
                "interval": step,
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": alerts}],
            }
            for series, alerts in ((case.fires, [expected]), (case.silent, []))
        ],
    }
    rule = {name: content for name, content in RULES[alert].items() if name != "annotations"}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [rule]}]}))
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(document))
    ended = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@needs_promtool
def test_an_exporter_that_is_not_ready_beside_a_ready_one_of_its_group_is_told(tmp_path: Path) -> None:
    ready = 'traceweir_export_ready{group="g", instance="%s"}'
    case = Case({ready % "a": "1x100", ready % "b": "0x100"}, {ready % "a": "1x100"}, {"group": "g"})
    assert_fires("TraceweirExportNotReady", case, tmp_path)


@needs_promtool
def test_an_exporter_that_has_ended_is_told_for_as_long_as_kafka_keeps_its_scores(tmp_path: Path) -> None:
    topics = Topics.of("traceweir.")
    days = topics.retention_days()[topics.results]
    ready = 'traceweir_export_ready{group="ended"}'
    case = Case({ready: f"1x20 _x{days * 24}"}, {ready: f"1x20 _x{days * 24 - 30} 1x20"}, {"group": "ended"})
    assert_fires("TraceweirExportNotReady", case, tmp_path, at=f"{days * 24}h", step="1h")


@needs_promtool
def test_the_file_of_rules_is_valid_with_its_texts() -> None:
    ended = subprocess.run(["promtool", "check", "rules", str(FILE)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("alert", RULES)
def test_a_rule_reads_metrics_that_workers_have(alert: str) -> None:
    names = {instrument.prometheus_name for instrument in (*CATALOGUE, *CANARY, *EXPORT, *TRUST, *ALERTS)}
    read = set(re.findall(r"\btraceweir_[a-z_]+", str(RULES[alert]["expr"])))
    assert read
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in read} <= names


@pytest.mark.parametrize("alert", RULES)
def test_a_rule_has_a_runbook_with_its_meaning_causes_and_first_commands(alert: str) -> None:
    rule: dict[str, Any] = RULES[alert]
    assert rule["annotations"]["runbook"] == f"docs/alerts.md#{alert.lower()}"
    section = PAGE.partition(f"## {alert}\n")[2].partition("\n## ")[0]
    assert "**Causes.**" in section
    assert len(re.findall(r"^[a-z]", section.partition("```bash\n")[2].partition("```")[0], re.MULTILINE)) == 3


def test_each_rule_has_a_case() -> None:
    assert list(CASES) == list(RULES)
