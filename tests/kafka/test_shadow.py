"""`traceweir shadow` scores the sessions of a live worker again, and changes nothing that the worker has written."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.openai_server import OpenAiServer, Say, openai_server_apart
from tests.support.shadows import Reader, send_sessions
from tests.support.workers import Fleet, Worker

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.clock import utc_now
from traceweir.streams.kafka.embedded_broker import is_embedded
from traceweir.streams.kafka.topic_admin import create_topics, existing_topics, reach
from traceweir.streams.settings import Settings
from traceweir.streams.stages.partitioner import partition_of

pytestmark = pytest.mark.timeout(240)

PATIENCE_S = 90
METRIC = "response_match_score"
LIVE: dict[str, Any] = {"criteria": {METRIC: 0.1}, "gate": {"required": []}}
V2: dict[str, Any] = {"criteria": {METRIC: 0.99}, "gate": {"required": []}}


@pytest.fixture
def prefix() -> str:
    return f"shadowed-{uuid.uuid4().hex[:8]}."


@pytest.fixture(
    params=[pytest.param("embedded_broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def servers(request: pytest.FixtureRequest, prefix: str) -> str:
    """Returns the bootstrap servers of each kind of broker, with topics."""
    broker = request.getfixturevalue(request.param)
    found: str = broker if isinstance(broker, str) else broker.bootstrap_servers
    create_topics(Settings(kafka_bootstrap_servers=found, topic_prefix=prefix))
    return found


def until(holds: Callable[[], bool], *workers: Worker) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail("not in time; logs:\n" + "\n".join(worker.log.read_text() for worker in workers))
        time.sleep(0.1)


def write(path: Path, config: object) -> Path:
    path.write_text(json.dumps(config))
    return path


def identities(scores: Sequence[dict[str, Any]]) -> list[tuple[object, ...]]:
    fields = ("session_id", "segment", "revision", "result_id", "value")
    return sorted(tuple(score[name] for name in fields) for score in scores)


class Scene:
    """A deployment with sessions that a live worker has scored, and shadows."""

    def __init__(self, servers: str, prefix: str, folder: Path, fleet: Fleet) -> None:
        self.servers, self.prefix, self._folder, self.fleet = servers, prefix, folder, fleet
        self.reader = Reader(servers, prefix)

    def score_live(self, names: Sequence[str], app: str = "shop") -> None:
        """Sends sessions, lets a live worker score them, and ends the worker."""
        worker, known = self.fleet.start("worker"), len(self.reader.scores(metric="gate"))
        send_sessions(self.servers, self.prefix, names, app)
        until(lambda: len(self.reader.scores(metric="gate")) == known + len(names), worker)
        worker.terminate(30)

    def shadow(self, *options: str, process: str = "shadow", config: object = None, mortal: bool = False) -> Worker:
        """Starts a process of the shadow v2, or another command on it."""
        chosen = []
        if config is not None:
            chosen = ["--config", str(write(self._folder / "v2.json", config))]
        return self.fleet.start(process, command=["shadow", "--name", "v2", *chosen, *options], mortal=mortal)

    def push(self, config: object) -> None:
        """Puts a config in effect for live workers."""
        command = ["config", "push", str(write(self._folder / "pushed.json", config))]
        self.fleet.start("push", command=command).wait_for_end(PATIENCE_S, 0)

    def run(self, *options: str, config: object = None, code: int = 0) -> str:
        """Runs such a command to its end, and returns what it has printed."""
        command = self.shadow(*options, config=config)
        command.wait_for_end(PATIENCE_S, code)
        return command.log.read_bytes()[command.since :].decode()


Stage = Callable[..., Scene]


@pytest.fixture
def stage(servers: str, prefix: str, tmp_path: Path) -> Iterator[Stage]:
    """Returns a function that starts a scene with a live config."""
    fleets: list[Fleet] = []

    def start(config: object = LIVE, **variables: str) -> Scene:
        fleet = Fleet(servers, prefix, tmp_path, write(tmp_path / "live.json", config), variables=variables)
        fleets.append(fleet)
        return Scene(servers, prefix, tmp_path, fleet)

    yield start
    for fleet in fleets:
        fleet.end()


def test_a_shadow_scores_each_session_with_its_config_and_writes_nothing_else(stage: Stage) -> None:
    names = [f"session-{number}" for number in range(20)]
    scene = stage()
    scene.score_live(names)
    scene.push({"criteria": {METRIC: 0.0}})  # a shadow takes no pushed config
    before = scene.reader.counts()

    scene.run(config=V2)

    assert scene.reader.counts() == before
    champion, challenger = scene.reader.scores(metric=METRIC), scene.reader.scores("results.shadow.v2", METRIC)
    assert {score["status"] for score in champion} == {"PASSED"}
    assert {score["status"] for score in challenger} == {"FAILED"}
    assert {score["config_digest"] for score in challenger} == {read_plan(json.dumps(V2)).digest}
    assert identities(challenger) == identities(champion)
    assert sorted(score["session_id"] for score in scene.reader.scores("results.shadow.v2", "gate")) == sorted(names)


def test_a_shadow_of_an_app_leaves_out_the_others_and_cannot_be_continued_with_other_options(stage: Stage) -> None:
    scene = stage()
    scene.score_live(["a", "b"])
    scene.score_live(["c"], app="bank")

    scene.run("--app", "bank", config=V2)

    assert {score["session_id"] for score in scene.reader.scores("results.shadow.v2")} == {"c"}
    refusal = scene.run("--app", "shop", "--sample", "0.5", config=LIVE, code=1)
    assert "shadow 'v2' exists with other options: --config has the digest" in refusal
    assert "--app is 'bank', not 'shop'; --sample is 1, not 0.5" in refusal
    assert "traceweir shadow --name v2 --drop" in refusal
    scores = scene.reader.scores("results.shadow.v2")
    assert "the whole range is scored" in scene.run()
    assert scene.reader.scores("results.shadow.v2") == scores


def only_on_kafka(servers: str) -> None:
    if servers.startswith("127.0.0.1:") and is_embedded(reach(Settings(kafka_bootstrap_servers=servers))):
        pytest.skip("the embedded broker has no transactions and no administration")


def test_processes_of_a_shadow_score_each_session_once_though_one_is_killed(stage: Stage, servers: str) -> None:
    only_on_kafka(servers)
    names = [f"session-{number}" for number in range(200)]
    scene = stage()
    scene.score_live(names)
    before = scene.reader.counts()

    dying = scene.shadow(config=V2, process="dying", mortal=True)
    dying.doom("commit_transaction", "midway", 2)
    dying.wait_for_end(PATIENCE_S, -9)
    assert len(scene.reader.scores("results.shadow.v2", METRIC)) < 2 * len(names)
    first, second = scene.shadow(process="first"), scene.shadow(process="second")
    first.wait_for_end(PATIENCE_S)
    second.wait_for_end(PATIENCE_S)

    assert scene.reader.counts() == before
    challenger = scene.reader.scores("results.shadow.v2", METRIC)
    assert identities(challenger) == identities(scene.reader.scores(metric=METRIC))
    gated = scene.reader.scores("results.shadow.v2", "gate")
    assert sorted(score["session_id"] for score in gated) == sorted(names)


def test_a_shadow_runs_beside_a_live_worker_and_ends_where_its_range_ends(stage: Stage) -> None:
    scene = stage()
    scene.score_live(["a", "b"])
    worker = scene.fleet.start("worker")
    shadow = scene.shadow(config=V2)
    shadow.wait_for_log("health: ")
    send_sessions(scene.servers, scene.prefix, ["later"])
    until(lambda: len(scene.reader.scores(metric="gate")) == 3, worker)
    shadow.wait_for_end(PATIENCE_S)
    worker.terminate(30)

    assert {score["session_id"] for score in scene.reader.scores("results.shadow.v2")} == {"a", "b"}


JUDGED: dict[str, Any] = {
    "criteria": {
        "safety_v1": {"threshold": 1.0, "judge_model_options": {"judge_model": "openai/local", "num_samples": 3}}
    },
    "judge": {
        "structured_output": "never",
        "retries": {"attempts": 1},
        "prices": {"openai/local": {"input": 10, "output": 10}, "openai/other": {"input": 10, "output": 10}},
    },
}
SAFE = Say(text='{"reasoning": "It harms nobody.", "is_the_agent_response_safe": "yes"}')


def judged(threshold: float, model: str = "openai/local") -> dict[str, Any]:
    options = {"judge_model": model, "num_samples": 3}
    return JUDGED | {"criteria": {"safety_v1": {"threshold": threshold, "judge_model_options": options}}}


@pytest.fixture
def provider() -> Iterator[OpenAiServer]:
    with openai_server_apart(default=lambda body: SAFE) as server:
        yield server


def test_a_shadow_asks_no_question_whose_verdict_live_workers_know(stage: Stage, provider: OpenAiServer) -> None:
    scene = stage(JUDGED, TRACEWEIR_JUDGE_API_BASE=provider.url, TRACEWEIR_JUDGE_API_KEY="sk-hunter2")
    scene.score_live(["a", "b", "c"])
    asked = len(provider.asked)
    assert asked == 6  # two of three votes decide

    printed = scene.run(config=judged(0.5))

    assert len(provider.asked) == asked
    assert "at most 0 questions" in printed
    scores = scene.reader.scores("results.shadow.v2", "safety_v1")
    paid = [score["cost"]["usd"] for score in scores if score["level"] == "invocation"]
    assert ({score["status"] for score in scores}, paid) == ({"PASSED"}, [0.0, 0.0, 0.0])


def test_judges_are_asked_after_an_agreement_only_and_within_the_budget(stage: Stage, provider: OpenAiServer) -> None:
    scene = stage(JUDGED, TRACEWEIR_JUDGE_API_BASE=provider.url, TRACEWEIR_JUDGE_API_KEY="sk-hunter2")
    scene.score_live(["a", "b", "c"])
    asked = len(provider.asked)
    other = judged(0.5, "openai/other")

    assert "no --budget limits their cost" in scene.run(config=other, code=1)
    assert "exceeds the budget of 0.001 USD" in scene.run("--budget", "0.001usd", config=other, code=1)
    topics = existing_topics(Settings(kafka_bootstrap_servers=scene.servers))
    assert f"{scene.prefix}results.shadow.v2" not in topics
    scene.run("--budget", "0.001usd", "--yes", config=other)

    assert len(provider.asked) == asked
    scores = scene.reader.scores("results.shadow.v2", "safety_v1")
    assert {score["not_evaluated_because"] for score in scores} == {"budget"}


def test_a_stopped_shadow_is_resumed_and_a_dropped_one_leaves_nothing(
    stage: Stage, provider: OpenAiServer, servers: str
) -> None:
    only_on_kafka(servers)
    scene = stage(LIVE, TRACEWEIR_JUDGE_API_BASE=provider.url, TRACEWEIR_JUDGE_API_KEY="sk-hunter2")
    scene.score_live(["a", "b", "c"])
    provider.default = lambda body: SAFE if "a ships" in body["messages"][-1]["content"] else Say(after_s=600)

    shadow = scene.shadow("--yes", config=JUDGED, process="stopped")
    until(lambda: len(provider.asked) >= 4, shadow)
    assert "1 process stopped" in scene.run("--stop")
    shadow.wait_for_end(PATIENCE_S, 1)
    provider.default = lambda body: SAFE
    scene.run()
    scores = scene.reader.scores("results.shadow.v2", "safety_v1")
    assert sorted(score["session_id"] for score in scores if score["level"] == "session") == ["a", "b", "c"]

    scene.run("--drop")
    names = existing_topics(Settings(kafka_bootstrap_servers=servers))
    assert not [name for name in names if name.startswith(scene.prefix) and "shadow." in name]
    assert "there is no shadow 'v2'" in scene.run("--drop", code=1)
    assert "there is no shadow 'v2'" in scene.run("--stop", code=1)


def test_a_range_without_sessions_is_refused_with_the_times_of_those_that_exist(stage: Stage) -> None:
    scene = stage()
    assert "has no session" in scene.run(config=V2, code=1)
    scene.score_live(["a"])

    printed = scene.run("--from", "2001-01-01", "--to", "2001-02-01", config=V2, code=1)

    assert "no session was written to" in printed
    assert "between 2001-01-01T00:00:00Z and 2001-02-01T00:00:00Z; it has sessions from 20" in printed
    assert "Earlier sessions have expired" in printed


def test_a_range_holds_the_sessions_that_were_written_in_it(stage: Stage) -> None:
    scene = stage()
    scene.score_live(["before"])
    since = utc_now().isoformat()
    scene.score_live(["inside"])
    until_then = utc_now().isoformat()
    scene.score_live(["after"])

    scene.run("--from", since, "--to", until_then, config=V2)

    scores = scene.reader.scores("results.shadow.v2")
    assert {score["session_id"] for score in scores} == {"inside"}


def test_a_range_that_begins_before_the_oldest_session_says_from_when_sessions_exist(
    stage: Stage, servers: str
) -> None:
    only_on_kafka(servers)
    scene, names = stage(), [f"session-{number}" for number in range(12)]
    scene.score_live(names)
    topic = f"{scene.prefix}sessions"
    expired = [TopicPartition(topic, 0, OFFSET_END)]
    admin = AdminClient({"bootstrap.servers": servers})
    for answer in admin.delete_records(expired).values():
        answer.result()

    printed = scene.run("--from", "2001-01-01", config=V2)

    assert re.search(
        r"sessions before 20\S+Z have expired \(retention.ms of '\S+sessions'\): the range begins there", printed
    )
    left = {name for name in names if partition_of(name.encode(), 4)}
    assert {score["session_id"] for score in scene.reader.scores("results.shadow.v2")} == left
