"""A worker with the rights of its Strimzi user, and no others, reads, scores and decides."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.audit.committed import Committed
from tests.kafka.test_security import SESSIONS, by_password, sample, traceweir, until
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_security import USERS, Certificates
from tests.support.paths import ROOT
from tests.support.workers import Fleet

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactionalId": ResourceType.TRANSACTIONAL_ID,
}
PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefix": ResourcePatternType.PREFIXED}
OPERATIONS = {
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
}


def rights(user: str, prefix: str) -> list[AclBinding]:
    """Returns the rights of the worker's KafkaUser, for another user and another topic prefix."""
    documents = yaml.safe_load_all((ROOT / "k8s" / "overlays" / "strimzi" / "worker.yaml").read_text("utf-8"))
    (found,) = [each for each in documents if each["kind"] == "KafkaUser"]
    return [
        AclBinding(
            RESOURCES[acl["resource"]["type"]],
            acl["resource"]["name"].replace("traceweir.", prefix, 1),
            PATTERNS[acl["resource"]["patternType"]],
            f"User:{user}",
            "*",
            OPERATIONS[operation],
            AclPermissionType.ALLOW,
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
    # From the first rule on, a resource is closed to all operations that no rule allows.
    admin = AdminClient({"bootstrap.servers": secured_kafka.bootstrap_servers})
    for done in admin.create_acls(rights(user, prefix)).values():
        done.result()
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
        worker.terminate(30)
    assert worker.process.returncode == 0
