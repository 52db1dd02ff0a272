"""A worker with the rights of its Strimzi user, and no others, reads, scores and decides."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from aiokafka.errors import TopicAuthorizationFailedError
from tests.audit.committed import Committed
from tests.kafka.test_security import by_password
from tests.support.dlq import put_letters
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_rights import Right, allow
from tests.support.kafka_security import USERS, Certificates
from tests.support.kustomize import render
from tests.support.paths import ROOT
from tests.support.secured_commands import SESSIONS, sample, traceweir, until
from tests.support.workers import Fleet

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.base.topics import exports_topic
from traceweir.streams.tools.export.kept_offsets import KeptOffsets
from traceweir.streams.worker.kafka.client_options import aiokafka_options
from traceweir.streams.worker.kafka.topic_admin import create_named, write_problems
from traceweir.streams.worker.runtime.single_record import write_record

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


def rights(prefix: str, of: str = "traceweir-worker") -> list[Right]:
    """Returns the rights of a KafkaUser, for another topic prefix."""
    manifests = render(ROOT / "k8s" / "overlays" / "strimzi")
    (found,) = [each for each in manifests if (each["kind"], each["metadata"]["name"]) == ("KafkaUser", of)]
    return [
        Right(
            acl["resource"]["type"],
            acl["resource"]["name"].replace("traceweir.", prefix, 1),
            operation,
            acl["resource"]["patternType"],
        )
        for acl in found["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    ]


def test_a_worker_with_the_rights_of_its_strimzi_user_scores_and_decides(
    secured_kafka: KafkaCluster, certificates: Certificates, tmp_path: Path
) -> None:
    prefix = f"rights-{uuid.uuid4().hex[:8]}."
    mechanism, user = next(iter(USERS.items()))
    login = by_password(secured_kafka, certificates, mechanism)
    anyone = {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": secured_kafka.bootstrap_servers}
    assert traceweir("topics", "create", prefix=prefix, variables=anyone).returncode == 0
    allow(secured_kafka.bootstrap_servers, user, rights(prefix))
    refused = traceweir("emit", str(sample(tmp_path, 0)), prefix=prefix, variables=login)
    assert refused.returncode == 1, "a worker may not write to the inputs"

    config = tmp_path / "config.json"
    config.write_text("{}")
    with (
        Committed(secured_kafka.bootstrap_servers, prefix, f"{prefix}assemble-score-gate") as committed,
        Fleet(login["TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"], prefix, tmp_path, config, variables=login) as fleet,
    ):
        worker = fleet.start("worker")
        sent = traceweir("emit", str(sample(tmp_path, 0)), prefix=prefix, variables=anyone)
        assert sent.returncode == 0, sent.stderr
        until(lambda: len(committed.rows["results"]) == 2 * SESSIONS, committed, worker)
        until(lambda: bool(committed.rows["configs"]), committed, worker)
        worker.terminate(30)
    (row,) = committed.rows["configs"]
    assert row.key == f"digest:{read_plan({}).digest}".encode(), "the config file stays readable"
    assert worker.process.returncode == 0


async def test_an_exporter_with_the_rights_of_its_strimzi_user_keeps_where_it_stands(
    secured_kafka: KafkaCluster,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    prefix = f"rights-{uuid.uuid4().hex[:8]}."
    mechanism, user = next(iter(USERS.items()))
    anyone = Settings(kafka_bootstrap_servers=secured_kafka.bootstrap_servers, topic_prefix=prefix)
    create_named(anyone, {exports_topic(prefix): "compact"}, {})
    # Another rule closes the topic to the user of all tests, which may do everything otherwise.
    allow(secured_kafka.bootstrap_servers, user, [Right("topic", exports_topic(prefix), "Describe")])
    allow(secured_kafka.bootstrap_servers, user, rights(prefix, "traceweir-export"))
    for name, value in by_password(secured_kafka, certificates, mechanism).items():
        monkeypatch.setenv(name, value)

    kept = KeptOffsets(Settings(topic_prefix=prefix), f"{prefix}export-otlp")
    await kept.open()
    kept.note({0: 7})
    await kept.write()
    found = await kept.read([0])
    await kept.close()

    assert {number: each.offset for number, each in found.items()} == {0: 7}
    assert caplog.records == []


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("traceweir-config", ("config", "push", str(ROOT / "examples" / "eval.json"))),
        ("traceweir-replay", ("dlq", "replay", "--all")),
    ],
)
def test_a_command_with_the_rights_of_its_strimzi_user_does_its_work(
    name: str, command: tuple[str, ...], secured_kafka: KafkaCluster, certificates: Certificates
) -> None:
    prefix = f"rights-{uuid.uuid4().hex[:8]}."
    mechanism, user = next(iter(USERS.items()))
    anyone = {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": secured_kafka.bootstrap_servers}
    assert traceweir("topics", "create", prefix=prefix, variables=anyone).returncode == 0
    letter = DeadLetter("invalid", "it is wrong", "assemble", f"{prefix}invocations", 0, 17, b"key", b"{}")
    put_letters(secured_kafka.bootstrap_servers, [letter], prefix)
    allow(secured_kafka.bootstrap_servers, user, rights(prefix, name))

    ended = traceweir(*command, prefix=prefix, variables=by_password(secured_kafka, certificates, mechanism))

    assert ended.returncode == 0, ended.stderr


def test_a_topic_of_a_challenger_without_the_right_to_write_it_is_named_before_anything_is_written(
    secured_kafka: KafkaCluster, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"rights-{uuid.uuid4().hex[:8]}."
    mechanism, user = next(iter(USERS.items()))
    anyone = Settings(kafka_bootstrap_servers=secured_kafka.bootstrap_servers, topic_prefix=prefix)
    topic = anyone.topics.shadow_results("v2")
    create_named(anyone, {topic: "delete"}, {})

    def grant(operation: str) -> None:
        allow(secured_kafka.bootstrap_servers, user, [Right("topic", topic, operation)])

    grant("Describe")
    for name, value in by_password(secured_kafka, certificates, mechanism).items():
        monkeypatch.setenv(name, value)
    of_user = Settings(topic_prefix=prefix)
    assert "this user lacks the right Write" in write_problems(of_user, [topic])[topic]
    grant("Write")
    assert write_problems(of_user, [topic]) == {}
    assert "does not exist" in write_problems(of_user, [f"{topic}-2"])[f"{topic}-2"]


async def test_a_record_without_the_right_to_write_it_is_refused_at_once(
    secured_kafka: KafkaCluster, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"rights-{uuid.uuid4().hex[:8]}."
    mechanism, user = next(iter(USERS.items()))
    anyone = Settings(kafka_bootstrap_servers=secured_kafka.bootstrap_servers, topic_prefix=prefix)
    topic = anyone.topics.configs
    create_named(anyone, {topic: "compact"}, {})
    allow(secured_kafka.bootstrap_servers, user, [Right("topic", topic, "Read")])
    for name, value in by_password(secured_kafka, certificates, mechanism).items():
        monkeypatch.setenv(name, value)

    with pytest.raises(TopicAuthorizationFailedError):
        await write_record(aiokafka_options(Settings(topic_prefix=prefix)), Output(topic, 0, b"k", b"v"))
