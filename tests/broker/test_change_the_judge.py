"""The guide to a change of judges: its commands run as shown, and the new judge is in effect with its certificate."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer
from tests.support.command_line import Run
from tests.support.commands import shown_in
from tests.support.paths import ROOT

from traceweir.schemas.score import Score
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.challenger_name import create_topic
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher"), pytest.mark.xdist_group("config")]

PAGE = (ROOT / "docs" / "guides" / "change-the-judge.md").read_text("utf-8")
ELSEWHERE = {"shadow", "diff"}
"""Commands that need transactions or live scores; the suites of shadows and of `diff` run them."""
SESSIONS = 500
SCORED_AT = datetime(2026, 11, 1, tzinfo=UTC)


def config(model: str) -> dict[str, Any]:
    judged = {"threshold": 0.5, "judge_model_options": {"judge_model": model}}
    return {"criteria": {"safety_v1": judged}, "gate": {"required": ["safety_v1"], "require_certified": True}}


def write_scores(settings: Settings, good: list[bool], digest: str) -> None:
    """Writes the scores of a judge that is right about all but each thirtieth session."""
    create_topic(settings, "v2")
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers})
    for number, is_good in enumerate(good):
        passed = is_good != (number % 30 == 0)
        score = Score(
            result_id=f"result-{number}",
            revision=0,
            session_id=f"s-{number}",
            segment=0,
            level="session",
            metric="safety_v1",
            value=float(passed),
            threshold=0.5,
            status="PASSED" if passed else "FAILED",
            judge="model-b",
            source="model",
            scorer_version="1",
            metric_digest=digest,
            config_digest="d",
            occurred_at=SCORED_AT,
            evaluated_at=SCORED_AT,
        )
        producer.produce(settings.topics.shadow_results("v2"), score.wire(), score.session_id.encode())
    producer.flush()


def test_the_commands_of_the_guide_put_a_certified_judge_into_effect(
    embedded_broker: EmbeddedBroker, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = embedded_broker.bootstrap_servers
    settings = Settings(kafka_bootstrap_servers=servers)
    create_topics(settings)
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    monkeypatch.chdir(tmp_path)
    Path("eval.json").write_text(json.dumps(config("model-a")))
    Path("v2.json").write_text(json.dumps(config("model-b")))
    assert run("config", "push", "eval.json").code == 0
    good = [bool(each) for each in np.random.default_rng(3).random(SESSIONS) < 0.6]
    (metric,) = read_plan(config("model-b")).metrics
    write_scores(settings, good, metric.digest)
    at = (SCORED_AT + timedelta(days=1)).isoformat()
    rows = [
        f"s-{number},0,0,safety_v1,{'pass' if each else 'fail'},ana,random,0.1,{at}" for number, each in enumerate(good)
    ]
    columns = "session_id,segment,revision,criterion,verdict,annotator,drawn,inclusion_probability,occurred_at"
    Path("labels.csv").write_text("\n".join([columns, *rows]) + "\n")

    outputs = {}
    for command in shown_in(PAGE):
        if command.arguments[0] in ELSEWHERE:
            continue
        ended = run(*command.arguments)
        assert ended.code == 0, f"{command}: {ended.err}"
        outputs[" ".join(command.arguments[:2])] = ended.out
        if command.output is not None:
            Path(command.output).write_text(ended.out)

    assert "safety_v1" in outputs["trust agreement"]
    assert "in force" in outputs["trust certificates"]
    (pushed,) = [json.loads(line) for line in run("config", "show", "--json").out.splitlines()]
    assert pushed["version"] == 2
    assert read_plan(json.loads(Path("v2.json").read_text())).gate.certificates[0].metric_digest == metric.digest
