"""Kafka over TLS, with a password or a client certificate: every client connects, or reports why it cannot."""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_rights import Right, allow, deny
from tests.support.kafka_security import PASSWORD, USERS, Certificates
from tests.support.secured_commands import SESSIONS, sample, traceweir, until
from tests.support.workers import Fleet

from traceweir.streams.worker.faust_worker import EXIT_HARD

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

Variables = dict[str, str]
WRONG_PASSWORD = "wrong-horse-7d20"


def by_password(kafka: KafkaCluster, certificates: Certificates, mechanism: str) -> Variables:
    return {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": kafka.password_servers,
        "TRACEWEIR_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "TRACEWEIR_KAFKA_SASL_MECHANISM": mechanism,
        "TRACEWEIR_KAFKA_SASL_USERNAME": USERS[mechanism],
        "TRACEWEIR_KAFKA_SASL_PASSWORD": PASSWORD,
        "TRACEWEIR_KAFKA_SSL_CAFILE": str(certificates.authority),
    }


def by_certificate(kafka: KafkaCluster, certificates: Certificates) -> Variables:
    return {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": kafka.tls_servers,
        "TRACEWEIR_KAFKA_SECURITY_PROTOCOL": "SSL",
        "TRACEWEIR_KAFKA_SSL_CAFILE": str(certificates.authority),
        "TRACEWEIR_KAFKA_SSL_CERTFILE": str(certificates.client),
        "TRACEWEIR_KAFKA_SSL_KEYFILE": str(certificates.client_key),
    }


@pytest.fixture(params=[*USERS, "certificate"])
def login(request: pytest.FixtureRequest, secured_kafka: KafkaCluster, certificates: Certificates) -> Variables:
    """Returns the variables of each kind of login."""
    if request.param == "certificate":
        return by_certificate(secured_kafka, certificates)
    return by_password(secured_kafka, certificates, request.param)


def test_a_worker_without_permission_for_its_group_reports_it_and_ends(
    secured_kafka: KafkaCluster, certificates: Certificates, tmp_path: Path
) -> None:
    prefix = f"forbidden-{uuid.uuid4().hex[:8]}."
    mechanism, user = next(iter(USERS.items()))
    variables = by_password(secured_kafka, certificates, mechanism)
    assert traceweir("topics", "create", prefix=prefix, variables=variables).returncode == 0
    group = f"{prefix}assemble-score-gate"
    deny(secured_kafka.bootstrap_servers, user, [Right("group", group, "Read")])

    ended = traceweir("worker", prefix=prefix, variables=variables | {"TRACEWEIR_STATE_DIR": str(tmp_path)})

    assert ended.returncode not in (0, EXIT_HARD)
    assert f"does not allow this worker to join the consumer group '{group}': grant its user Read" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_doctor_names_the_right_that_a_worker_lacks_for_its_transactions(
    secured_kafka: KafkaCluster, certificates: Certificates, tmp_path: Path
) -> None:
    prefix = f"forbidden-{uuid.uuid4().hex[:8]}."
    mechanism, user = next(iter(USERS.items()))
    variables = by_password(secured_kafka, certificates, mechanism) | {
        "TRACEWEIR_STATE_DIR": str(tmp_path),
        "TRACEWEIR_EMBEDDER": "none",
    }
    assert traceweir("topics", "create", prefix=prefix, variables=variables).returncode == 0
    assert traceweir("doctor", prefix=prefix, variables=variables).returncode == 0
    forbidden = Right("transactionalId", f"{prefix}assemble-score-gate-", "Write", "prefix")
    deny(secured_kafka.bootstrap_servers, user, [forbidden])

    ended = traceweir("doctor", prefix=prefix, variables=variables)

    assert ended.returncode == 1
    assert "failure  transactions  no transaction can be started as" in ended.stdout
    assert "Write and Describe on the transactional ids" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_without_the_right_to_read_the_changelog_the_stored_offsets_are_not_compared(
    secured_kafka: KafkaCluster, certificates: Certificates, tmp_path: Path
) -> None:
    prefix = f"forbidden-{uuid.uuid4().hex[:8]}."
    mechanism, user = next(iter(USERS.items()))
    variables = by_password(secured_kafka, certificates, mechanism) | {
        "TRACEWEIR_STATE_DIR": str(tmp_path),
        "TRACEWEIR_EMBEDDER": "none",
    }
    assert traceweir("topics", "create", prefix=prefix, variables=variables).returncode == 0
    log = f"{prefix}assemble-score-gate-state-changelog"
    producer = Producer({"bootstrap.servers": secured_kafka.bootstrap_servers, "log_level": 0})
    producer.produce(log, b'{"traces": 0}', b"checkpoint/offsets")
    assert producer.flush(30) == 0
    allowed = [Right("topic", log, operation) for operation in ("Describe", "DescribeConfigs")]
    allow(secured_kafka.bootstrap_servers, user, allowed)

    checked = traceweir("topics", "check", prefix=prefix, variables=variables)
    found = traceweir("doctor", prefix=prefix, variables=variables)

    sentence = "the stored offsets cannot be compared with the topics"
    assert checked.returncode == 0
    assert f"warning: {sentence}: {log} cannot be read" in checked.stderr
    assert f"not checked  positions  {sentence}" in found.stdout
    assert "Traceback" not in checked.stderr + found.stderr


def test_every_client_works_over_a_secured_listener(
    secured_kafka: KafkaCluster, login: Variables, tmp_path: Path
) -> None:
    prefix = f"secured-{uuid.uuid4().hex[:8]}."
    config = tmp_path / "config.json"
    config.write_text("{}")
    commands = [traceweir("topics", "create", prefix=prefix, variables=login)]
    assert commands[0].returncode == 0, commands[0].stderr
    with (
        # The reader uses the listener without authentication.
        Committed(secured_kafka.bootstrap_servers, prefix, f"{prefix}assemble-score-gate") as committed,
        Fleet(login["TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"], prefix, tmp_path, config, variables=login) as fleet,
    ):
        for run_number in range(2):
            worker = fleet.start("worker")
            commands.append(
                traceweir("emit", str(sample(tmp_path, run_number * SESSIONS)), prefix=prefix, variables=login)
            )
            assert commands[-1].returncode == 0, commands[-1].stderr
            results = 2 * (run_number + 1) * SESSIONS
            until(lambda count=results: len(committed.rows["results"]) == count, committed, worker)  # type: ignore[misc]
            read = sum(map(int, re.findall(r"(\d+) rows,", worker.wait_for_log("took over partitions"))))
            assert read > 0 or run_number == 0
            worker.terminate(30)
            shutil.rmtree(worker.state_dir)  # The second worker must restore all state from Kafka.
        log = worker.log.read_text()

    assert PASSWORD not in log + "".join(each.stdout + each.stderr for each in commands)


@pytest.fixture(params=["wrong password", "unknown user", "authority not trusted", "no certificate of the client"])
def refused_login(
    request: pytest.FixtureRequest, secured_kafka: KafkaCluster, certificates: Certificates
) -> tuple[Variables, str]:
    """Returns variables of a refused login, and the text that the message must contain."""
    password = by_password(secured_kafka, certificates, "SCRAM-SHA-512")
    user = password["TRACEWEIR_KAFKA_SASL_USERNAME"]
    match request.param:
        case "wrong password":
            return password | {"TRACEWEIR_KAFKA_SASL_PASSWORD": WRONG_PASSWORD}, f"refuses the login of user '{user}'"
        case "unknown user":
            return password | {"TRACEWEIR_KAFKA_SASL_USERNAME": "nobody"}, "refuses the login of user 'nobody'"
        case "authority not trusted":
            del password["TRACEWEIR_KAFKA_SSL_CAFILE"]
            return password, "check TRACEWEIR_KAFKA_SSL_CAFILE"
        case _:
            certificate = by_certificate(secured_kafka, certificates)
            del certificate["TRACEWEIR_KAFKA_SSL_CERTFILE"], certificate["TRACEWEIR_KAFKA_SSL_KEYFILE"]
            return certificate, "TRACEWEIR_KAFKA_SSL_CERTFILE and TRACEWEIR_KAFKA_SSL_KEYFILE"


@pytest.mark.parametrize("command", [("worker",), ("emit", "FILE"), ("topics", "create"), ("topics", "check")])
def test_a_refused_login_is_reported_in_one_line_without_the_password(
    refused_login: tuple[Variables, str], command: tuple[str, ...], tmp_path: Path
) -> None:
    variables, names = refused_login
    arguments = [str(sample(tmp_path, 0)) if word == "FILE" else word for word in command]
    state = {"TRACEWEIR_STATE_DIR": str(tmp_path / "state")}

    ended = traceweir(*arguments, prefix="locked-out.", variables=variables | state)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert names in ended.stderr
    assert variables["TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"] in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    for secret in (PASSWORD, WRONG_PASSWORD, "Traceback"):
        assert secret not in ended.stderr
