"""`traceweir shadow` scores the sessions of a live worker again, and changes nothing that the worker has written."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.kafka import EACH_BROKER
from tests.support.openai_server import OpenAiServer, Say, openai_server_apart
from tests.support.shadows import Reader, send_sessions, write_closed_sessions
from tests.support.workers import Fleet, Worker

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.lab.shadow.creation import found_or_created
from traceweir.streams.lab.shadow.definition import ShadowOptions
from traceweir.streams.lab.shadow.log import end_of_requests, forget, send, stop_requests
from traceweir.streams.lab.shadow.removal import stop
from traceweir.streams.worker.kafka.topic_admin import create_named, existing_topics

pytestmark = pytest.mark.timeout(240)

PATIENCE_S = 90
METRIC = "response_match_score"
LIVE: dict[str, Any] = {"criteria": {METRIC: 0.1}, "gate": {"required": []}}
V2: dict[str, Any] = {"criteria": {METRIC: 0.99}, "gate": {"required": []}}


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

    def write_sessions(self, *names: str, app: str = "shop", at_ms: int = 0) -> None:
        """Writes closed sessions, which no live worker has scored: enough where only a shadow is looked at."""
        write_closed_sessions(self.servers, self.prefix, names, app, at_ms)

    @property
    def settings(self) -> Settings:
        """The settings of the deployment."""
        return Settings(kafka_bootstrap_servers=self.servers, topic_prefix=self.prefix)

    def shadow(
        self, *options: str, process: str = "shadow", config: object = None, mortal: bool = False, name: str = "v2"
    ) -> Worker:
        """Starts a process of a shadow, or another command on it."""
        chosen = []
        if config is not None:
            chosen = ["--config", str(write(self._folder / "v2.json", config))]
        return self.fleet.start(process, command=["shadow", "--name", name, *chosen, *options], mortal=mortal)

    def push(self, config: object) -> None:
        """Puts a config in effect for live workers."""
        command = ["config", "push", str(write(self._folder / "pushed.json", config))]
        self.fleet.start("push", command=command).wait_for_end(PATIENCE_S, 0)

    def run(self, *options: str, config: object = None, code: int = 0, name: str = "v2") -> str:
        """Runs such a command to its end, and returns what it has printed."""
        command = self.shadow(*options, config=config, name=name)
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


@EACH_BROKER
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
    scene.write_sessions("a", "b")
    scene.write_sessions("c", app="bank")

    scene.run("--app", "bank", config=V2)

    assert {score["session_id"] for score in scene.reader.scores("results.shadow.v2")} == {"c"}
    refusal = scene.run("--app", "shop", "--sample", "0.5", config=LIVE, code=1)
    assert "shadow 'v2' exists with other options: --config has the digest" in refusal
    assert "--app is 'bank', not 'shop'; --sample is 1, not 0.5" in refusal
    assert "traceweir shadow --name v2 --drop" in refusal
    scores = scene.reader.scores("results.shadow.v2")
    assert "the whole range is scored" in scene.run()
    assert scene.reader.scores("results.shadow.v2") == scores


def test_processes_of_a_shadow_score_each_session_once_though_one_is_killed(stage: Stage) -> None:
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
    assert "about 0 questions" in printed
    scores = scene.reader.scores("results.shadow.v2", "safety_v1")
    paid = [score["cost"]["usd"] for score in scores if score["level"] == "invocation"]
    assert ({score["status"] for score in scores}, paid) == ({"PASSED"}, [0.0, 0.0, 0.0])


def test_a_shadow_asks_no_question_whose_verdict_another_shadow_knows(stage: Stage, provider: OpenAiServer) -> None:
    scene = stage(LIVE, TRACEWEIR_JUDGE_API_BASE=provider.url, TRACEWEIR_JUDGE_API_KEY="sk-hunter2")
    scene.write_sessions("a", "b", "c")
    scene.run("--yes", config=judged(1.0))
    asked = len(provider.asked)
    assert asked == 6

    printed = scene.run(config=judged(0.5), name="v3")

    assert len(provider.asked) == asked
    assert "about 0 questions" in printed
    scores = scene.reader.scores("results.shadow.v3", "safety_v1")
    assert {score["status"] for score in scores} == {"PASSED"}


def test_a_budget_of_the_config_below_the_estimate_is_not_spent_unasked(stage: Stage, provider: OpenAiServer) -> None:
    scene = stage(JUDGED, TRACEWEIR_JUDGE_API_BASE=provider.url, TRACEWEIR_JUDGE_API_KEY="sk-hunter2")
    scene.write_sessions("a", "b", "c")
    config = judged(0.5)
    config["judge"] = config["judge"] | {"budget": {"usd": 0.001}}

    printed = scene.run("--budget", "5usd", config=config, code=1)

    assert "exceeds the budget of 0.001 USD (judge.budget.usd of the config)" in printed
    assert f"{scene.prefix}results.shadow.v2" not in existing_topics(scene.settings)


def test_judges_are_asked_after_an_agreement_only_and_within_the_budget(stage: Stage, provider: OpenAiServer) -> None:
    scene = stage(JUDGED, TRACEWEIR_JUDGE_API_BASE=provider.url, TRACEWEIR_JUDGE_API_KEY="sk-hunter2")
    scene.score_live(["a", "b", "c"])
    asked = len(provider.asked)
    other = judged(0.5, "openai/other")

    assert "neither --budget nor judge.budget.usd limits their cost" in scene.run(config=other, code=1)
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
    scene = stage(LIVE, TRACEWEIR_JUDGE_API_BASE=provider.url, TRACEWEIR_JUDGE_API_KEY="sk-hunter2")
    scene.write_sessions("a", "b", "c")
    provider.default = lambda body: SAFE if "a ships" in body["messages"][-1]["content"] else Say(after_s=600)

    shadow = scene.shadow("--yes", config=JUDGED, process="stopped")
    until(lambda: len(provider.asked) >= 4, shadow)
    assert "1 process stopped" in scene.run("--stop")
    shadow.wait_for_end(PATIENCE_S, 1)
    provider.default = lambda body: SAFE
    assert "shadow v2 is resumed as it was created: config " in scene.run()
    scores = scene.reader.scores("results.shadow.v2", "safety_v1")
    assert sorted(score["session_id"] for score in scores if score["level"] == "session") == ["a", "b", "c"]

    scene.run("--drop")
    names = existing_topics(Settings(kafka_bootstrap_servers=servers))
    assert not [name for name in names if name.startswith(scene.prefix) and "shadow." in name]
    assert "there is no shadow 'v2'" in scene.run("--drop", code=1)
    assert "there is no shadow 'v2'" in scene.run("--stop", code=1)


def test_a_process_heeds_the_requests_to_stop_since_its_start_also_before_it_listens(
    stage: Stage, servers: str
) -> None:
    scene = stage()
    scene.write_sessions("a")
    scene.run(config=V2)
    settings = Settings(kafka_bootstrap_servers=servers, topic_prefix=scene.prefix)

    async def heeded(begin: int) -> str:
        async with aclosing(stop_requests(settings, "v2", begin)) as requests:
            return await anext(requests)

    begin = asyncio.run(end_of_requests(settings, "v2"))
    stop(settings, "v2")
    begin_of_later = asyncio.run(end_of_requests(settings, "v2"))
    assert asyncio.run(heeded(begin)) == "`traceweir shadow --stop` asked for it"
    forget(settings, "v2")

    assert asyncio.run(heeded(begin_of_later)) == "the shadow was dropped"


def test_a_range_without_sessions_is_refused_with_the_times_of_those_that_exist(stage: Stage) -> None:
    scene = stage()
    assert "has no session" in scene.run(config=V2, code=1)
    scene.write_sessions("a")

    printed = scene.run("--from", "2001-01-01", "--to", "2001-02-01", config=V2, code=1)

    assert "no session was written to" in printed
    assert "between 2001-01-01T00:00:00Z and 2001-02-01T00:00:00Z; it has sessions from 20" in printed
    assert "choose another --from or --to" in printed
    assert "expired" not in printed


def test_a_range_before_the_oldest_session_is_refused_because_sessions_have_expired(stage: Stage) -> None:
    scene = stage()
    scene.write_sessions(*NAMES)
    expire(scene, {0: OFFSET_END})

    printed = scene.run("--to", "2001-02-01", config=V2, code=1)

    assert "Earlier sessions have expired" in printed
    expire(scene, dict.fromkeys(range(4), OFFSET_END))
    assert "has no session any more: all have expired" in scene.run(config=V2, code=1)


def test_a_range_holds_the_sessions_that_were_written_in_it(stage: Stage) -> None:
    scene = stage()
    scene.write_sessions("before")
    since = utc_now().isoformat()
    scene.write_sessions("inside")
    until_then = utc_now().isoformat()
    scene.write_sessions("after")

    scene.run("--from", since, "--to", until_then, config=V2)

    scores = scene.reader.scores("results.shadow.v2")
    assert {score["session_id"] for score in scores} == {"inside"}


NAMES = [f"session-{number}" for number in range(12)]


def expire(scene: Scene, before: Mapping[int, int]) -> None:
    """Deletes the sessions before an offset of each partition, as their retention would."""
    places = [TopicPartition(f"{scene.prefix}sessions", number, offset) for number, offset in before.items()]
    admin = AdminClient({"bootstrap.servers": scene.servers, "log_level": 0})
    for answer in admin.delete_records(places).values():
        answer.result()


def scored(scene: Scene) -> set[str]:
    return {score["session_id"] for score in scene.reader.scores("results.shadow.v2")}


def homes(names: Sequence[str]) -> dict[str, int]:
    return {name: partition_of(name.encode(), 4) for name in names}


def test_each_partition_whose_sessions_of_the_range_have_expired_is_named(stage: Stage) -> None:
    scene, home = stage(), homes(NAMES)
    scene.write_sessions(*NAMES)
    since = utc_now()
    later = [f"later-{number}" for number in range(12)]
    scene.write_sessions(*later, at_ms=int(since.timestamp() * 1000))
    count = list(home.values()).count
    assert count(3) > 1
    expire(scene, {0: count(0) + 1, 2: OFFSET_END, 3: 1})  # of partition 3, only a session before the range

    printed = scene.run("--from", since.isoformat(), config=V2)

    found = re.search(r"sessions after --from can have expired \(retention.ms of \S+sessions\): (.*)", printed)
    assert found is not None
    assert re.fullmatch(r"partition 0 begins at 20\S+Z, 2 is empty", found[1])
    first = next(name for name, number in homes(later).items() if number == 0)
    assert scored(scene) == {name for name, number in homes(later).items() if number != 2} - {first}


def test_sessions_that_expire_before_they_are_scored_are_named_at_each_start_and_at_the_end(stage: Stage) -> None:
    scene, home = stage(), homes(NAMES)
    scene.write_sessions(*NAMES)
    wanted = ShadowOptions("v2", config=json.dumps(V2), config_digest=read_plan(json.dumps(V2)).digest)
    found_or_created(scene.settings, wanted, (None, None), lambda *agreed: None, lambda sentence: None)
    count = list(home.values()).count
    expire(scene, {0: OFFSET_END, 1: 1})

    printed = scene.run()

    lost = f"{count(0)} offsets of partition 0, 1 offset of partition 1"
    assert f"sessions expired before they were scored, and are left out: {lost}" in printed
    assert f"the range is scored, except sessions that expired before they were scored ({lost})" in printed
    first = next(name for name, number in home.items() if number == 1)
    assert scored(scene) == {name for name, number in home.items() if number} - {first}
    expire(scene, {1: OFFSET_END})  # these are scored
    again = scene.run()
    assert f"the range is scored, except sessions that expired before they were scored ({lost})" in again


def test_a_shadow_that_selects_no_session_is_refused_and_nothing_is_created(stage: Stage) -> None:
    scene = stage()
    scene.write_sessions("a", "b")

    typo = scene.run("--app", "shpo", config=V2, code=1)
    assert "none of the 2 sessions in the range is of app 'shpo'; they are of 'shop': nothing was created" in typo
    tiny = scene.run("--sample", "0.0000001", config=V2, code=1)
    assert "none of the 2 sessions in the range is in a sample of 1e-07: nothing was created" in tiny
    assert f"{scene.prefix}shadows" not in existing_topics(scene.settings)


def test_a_new_shadow_needs_a_config_and_the_shadows_that_exist_are_named(stage: Stage) -> None:
    scene = stage()
    scene.write_sessions("a")
    assert "there is no shadow 'v2' to resume (no shadow exists), and a new shadow needs --config" in scene.run(code=1)
    scene.run(config=V2)
    stop(scene.settings, "v2")  # a request to stop is no shadow

    typo = scene.run(name="v22", code=1)

    assert "there is no shadow 'v22' to resume (the shadows are v2), and a new shadow needs --config" in typo
    assert f"{scene.prefix}results.shadow.v22" not in existing_topics(scene.settings)


def test_a_shadow_does_not_write_into_the_scores_of_a_challenger_that_has_ended(stage: Stage) -> None:
    scene = stage()
    scene.write_sessions("a")
    topic = scene.settings.topics.shadow_results("v2")
    create_named(scene.settings, {topic: "delete"}, {})
    send(scene.settings, topic, [(0, b"s", b"{}")])

    refusal = scene.run(config=V2, code=1)

    assert f"topic {topic!r} has scores that are not of a shadow 'v2'" in refusal
    assert "take another --name, or remove these scores with `traceweir shadow --name v2 --drop`" in refusal
    assert scene.reader.records("results.shadow.v2") == [{}]
    assert f"{scene.prefix}shadows" not in existing_topics(scene.settings)
