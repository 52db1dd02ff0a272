"""The guide to a change of judges: its commands run as shown, and the new judge is in effect with its certificate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.command_line import Ended, Run
from tests.support.commands import Shown, shown_in
from tests.support.openai_server import Say, openai_server_apart
from tests.support.paths import ROOT
from tests.support.results import put_scores
from tests.support.shadows import Reader, write_closed_sessions
from tests.support.workers import Fleet

from traceweir.schemas.score import Score
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [
    pytest.mark.broker,
    pytest.mark.slow,
    pytest.mark.usefixtures("restored_fetcher"),
    pytest.mark.xdist_group("config"),
]

PAGE = (ROOT / "docs" / "guides" / "change-the-judge.md").read_text("utf-8")
PREFIX = "traceweir."
SHADOW_WITHIN_S = 300
GOOD = [bool(each) for each in np.random.default_rng(3).random(200) < 0.6]
NAMES = [f"s{number:03d}" for number in range(len(GOOD))]
WRONG = {"model-a": 5, "model-b": 40}
"""A judge is wrong about each session whose number this divides."""
COLUMNS = "session_id,segment,revision,criterion,verdict,annotator,drawn,inclusion_probability,occurred_at"


def config(model: str) -> dict[str, Any]:
    options = {"judge_model": f"openai/{model}", "num_samples": 1}
    return {
        "criteria": {"safety_v1": {"threshold": 0.5, "judge_model_options": options}},
        "judge": {"structured_output": "never", "prices": {f"openai/{model}": {"input": 1, "output": 1}}},
        "gate": {"required": ["safety_v1"], "require_certified": True},
    }


def passes(model: str, number: int) -> bool:
    return GOOD[number] != (number % WRONG[model] == 0)


def scripted(body: dict[str, Any]) -> Say:
    """Returns what the judge says about the session whose answer is in the prompt."""
    prompt = body["messages"][-1]["content"]
    (number,) = (number for number, name in enumerate(NAMES) if f"{name} ships" in prompt)
    verdict = "yes" if passes(body["model"], number) else "no"
    return Say(text=json.dumps({"reasoning": "It is so.", "is_the_agent_response_safe": verdict}))


@pytest.fixture
def judge() -> Iterator[str]:
    """Yields the address of a judge that follows the script."""
    with openai_server_apart(default=scripted) as server:
        yield server.url


def live_scores(digest: str) -> list[Score]:
    """Returns the scores of the present judge."""
    now = utc_now()
    return [
        Score(
            result_id=f"live-{name}",
            revision=0,
            session_id=name,
            segment=0,
            level="session",
            metric="safety_v1",
            value=float(passes("model-a", number)),
            threshold=0.5,
            status="PASSED" if passes("model-a", number) else "FAILED",
            judge="openai/model-a",
            source="model",
            scorer_version="1",
            metric_digest=digest,
            config_digest="live",
            occurred_at=now,
            evaluated_at=now,
        )
        for number, name in enumerate(NAMES)
    ]


def label_file() -> str:
    """Returns what a person says about each session after the shadow has scored it."""
    at = (utc_now() + timedelta(seconds=1)).isoformat()
    rows = [
        f"{name},0,0,safety_v1,{'pass' if good else 'fail'},ana,random,0.1,{at}"
        for name, good in zip(NAMES, GOOD, strict=True)
    ]
    return "\n".join([COLUMNS, *rows]) + "\n"


def test_the_commands_of_the_guide_put_a_certified_judge_into_effect(
    embedded_broker: EmbeddedBroker, run: Run, judge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = embedded_broker.bootstrap_servers
    create_topics(Settings(kafka_bootstrap_servers=servers))
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    monkeypatch.chdir(tmp_path)
    Path("eval.json").write_text(json.dumps(config("model-a")))
    Path("v2.json").write_text(json.dumps(config("model-b")))
    assert run("config", "push", "eval.json").code == 0
    write_closed_sessions(servers, PREFIX, NAMES)
    (present,) = read_plan(config("model-a")).metrics
    (metric,) = read_plan(config("model-b")).metrics
    put_scores(servers, live_scores(present.digest), at=utc_now())
    before = Reader(servers, PREFIX).counts()

    def shadow(command: Shown) -> None:
        """Runs a shadow in a process of its own, where it can set up signals."""
        variables = {"TRACEWEIR_JUDGE_API_BASE": judge, "TRACEWEIR_JUDGE_API_KEY": "sk-hunter2"}
        arguments = [str(tmp_path / each) if each == "v2.json" else each for each in command.arguments]
        with Fleet(servers, PREFIX, tmp_path, tmp_path / "eval.json", variables=variables) as fleet:
            fleet.start("shadow", command=arguments).wait_for_end(SHADOW_WITHIN_S)
        assert Reader(servers, PREFIX).counts() == before

    ended: dict[str, Ended] = {}
    commands = list(shown_in(PAGE))
    assert [command.arguments[0] for command in commands[:3]] == ["shadow", "diff", "label"]
    for command in commands:
        if command.arguments[0] == "shadow":
            shadow(command)
            continue
        if command.arguments[:2] == ("label", "push"):
            Path("labels.csv").write_text(label_file())
        found = run(*command.arguments)
        assert found.code == 0, f"{command}: {found.err}"
        ended[" ".join(command.arguments[:2])] = found
        if command.output is not None:
            Path(command.output).write_text(found.out)

    flips = [
        passes("model-b", number)
        for number in range(len(NAMES))
        if passes("model-a", number) != passes("model-b", number)
    ]
    row = next(line for line in ended["diff results"].out.splitlines() if "% to" in line and "safety_v1" in line)
    assert row.split()[-5:-3] == [str(flips.count(False)), str(flips.count(True))]
    assert "safety_v1" in ended["trust agreement"].out
    assert "in force" in ended["trust certificates"].out
    (pushed,) = [json.loads(line) for line in run("config", "show", "--json").out.splitlines()]
    assert pushed["version"] == 2
    (certificate,) = read_plan(json.loads(Path("v2.json").read_text())).gate.certificates
    assert (certificate.metric_digest, certificate.judge) == (metric.digest, "openai/model-b")
