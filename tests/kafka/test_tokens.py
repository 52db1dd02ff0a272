"""Logins by token (SASL OAUTHBEARER) on Kafka's listener for unsecured tokens, longer than the tokens live."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.audit.committed import Committed
from tests.support.kafka_cluster import KafkaCluster
from tests.support.secured_commands import SESSIONS, sample, traceweir, until
from tests.support.token_endpoint import (
    CLIENT_ID,
    CLIENT_SECRET,
    Answer,
    Request,
    TokenEndpoint,
    issues,
    token_endpoint,
)
from tests.support.workers import Fleet

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

LIFETIME_S = 5.0
TOKENS = 4
"""Tokens of one process that live longer, together, than two tokens alone: each is renewed at three quarters."""


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint(issues(LIFETIME_S)) as endpoint:
        yield endpoint


@pytest.fixture
def by_token(secured_kafka: KafkaCluster, endpoint: TokenEndpoint) -> dict[str, str]:
    return {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": secured_kafka.token_servers,
        "TRACEWEIR_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "TRACEWEIR_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
        "TRACEWEIR_KAFKA_OAUTH_TOKEN_ENDPOINT": endpoint.url,
        "TRACEWEIR_KAFKA_OAUTH_CLIENT_ID": CLIENT_ID,
        "TRACEWEIR_KAFKA_OAUTH_CLIENT_SECRET": CLIENT_SECRET,
        "TRACEWEIR_EMBEDDER": "hashing",
    }


def test_a_worker_goes_on_after_its_tokens_have_ended(
    secured_kafka: KafkaCluster, endpoint: TokenEndpoint, by_token: dict[str, str], tmp_path: Path
) -> None:
    prefix = f"tokens-{uuid.uuid4().hex[:8]}."
    config = tmp_path / "config.json"
    config.write_text("{}")
    commands = [traceweir("topics", "create", prefix=prefix, variables=by_token)]
    assert commands[0].returncode == 0, commands[0].stderr
    of_worker = by_token | {"TRACEWEIR_KAFKA_OAUTH_SCOPE": "worker"}
    with (
        # The reader uses the listener without authentication.
        Committed(secured_kafka.bootstrap_servers, prefix, f"{prefix}assemble-score-gate") as committed,
        Fleet(secured_kafka.token_servers, prefix, tmp_path, config, variables=of_worker) as fleet,
    ):
        worker, rounds = fleet.start("worker"), 0
        worker.until_ready()
        while sum(request.fields.get("scope") == "worker" for request in endpoint.requests) < TOKENS:
            commands.append(
                traceweir("emit", str(sample(tmp_path, rounds * SESSIONS)), prefix=prefix, variables=by_token)
            )
            assert commands[-1].returncode == 0, commands[-1].stderr
            rounds += 1
            until(lambda count=2 * rounds * SESSIONS: len(committed.rows["results"]) == count, committed, worker)  # type: ignore[misc]
        for command in (("topics", "check"), ("doctor",), ("results", "--json")):
            commands.append(traceweir(*command, prefix=prefix, variables=by_token))
            assert commands[-1].returncode == 0, commands[-1].stdout + commands[-1].stderr
        assert len(commands[-1].stdout.splitlines()) == len(committed.rows["results"])
        worker.terminate(30)
        log = worker.log.read_text()

    assert log.count("took over partitions") == 1
    assert "the worker has ended in order" in log
    assert CLIENT_SECRET not in log + "".join(each.stdout + each.stderr for each in commands)


def not_a_token(_: Request) -> Answer:
    return Answer(b'{"access_token": "no-token-of-kafka", "expires_in": 3600}')


@pytest.mark.parametrize("command", [("worker",), ("emit", "FILE"), ("topics", "check"), ("results",)])
@pytest.mark.parametrize(
    ("answer", "secret", "says"),
    [
        (
            issues(3600),
            "wrong-horse-7d20",
            "issues no token for Kafka to client 'traceweir' (HTTP 401, invalid_client)",
        ),
        (not_a_token, CLIENT_SECRET, "refuses the token of client_credentials"),
    ],
    ids=["wrong secret", "refused token"],
)
def test_a_refusal_is_reported_in_one_line_without_secret_and_token(
    endpoint: TokenEndpoint,
    by_token: dict[str, str],
    answer: Callable[[Request], Answer],
    secret: str,
    says: str,
    command: tuple[str, ...],
    tmp_path: Path,
) -> None:
    endpoint.answer = answer
    arguments = [str(sample(tmp_path, 0)) if word == "FILE" else word for word in command]
    own = {"TRACEWEIR_KAFKA_OAUTH_CLIENT_SECRET": secret, "TRACEWEIR_STATE_DIR": str(tmp_path / "state")}

    ended = traceweir(*arguments, prefix="locked-out.", variables=by_token | own)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert says in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    for hidden in (secret, "no-token-of-kafka", "Traceback"):
        assert hidden not in ended.stderr


def test_the_doctor_reports_a_token_endpoint_that_is_down(by_token: dict[str, str], tmp_path: Path) -> None:
    own = {"TRACEWEIR_KAFKA_OAUTH_TOKEN_ENDPOINT": "http://127.0.0.1:1/token", "TRACEWEIR_STATE_DIR": str(tmp_path)}

    ended = traceweir("doctor", prefix="locked-out.", variables=by_token | own)

    assert ended.returncode == 1
    assert "failure  broker  the token endpoint http://127.0.0.1:1/token cannot be reached" in ended.stdout
    assert "Traceback" not in ended.stderr
