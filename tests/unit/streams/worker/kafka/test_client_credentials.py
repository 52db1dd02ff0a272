"""Asking a token endpoint: what is sent, what is read, and what each failure says, without the secret."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.support.token_endpoint import CLIENT_ID, CLIENT_SECRET, Answer, Request, issues, token_endpoint

from traceweir.streams.worker.kafka.client_credentials import ClientCredentials
from traceweir.streams.worker.kafka.errors import TokenError

SECRET = SecretStr(CLIENT_SECRET)


def test_the_endpoint_gets_the_grant_and_the_scope_and_the_token_lives_as_long_as_it_says() -> None:
    with token_endpoint(issues(3600)) as endpoint:
        first = ClientCredentials(endpoint.url, CLIENT_ID, SECRET).token()
        second = ClientCredentials(endpoint.url, CLIENT_ID, SECRET, "kafka other").token()

    assert [request.fields for request in endpoint.requests] == [
        {"grant_type": "client_credentials"},
        {"grant_type": "client_credentials", "scope": "kafka other"},
    ]
    assert second.expires_at >= first.expires_at > 3600


def test_id_and_secret_are_encoded_as_the_specification_says() -> None:
    with token_endpoint(issues(3600)) as endpoint, pytest.raises(TokenError):
        ClientCredentials(endpoint.url, "a:b", SecretStr("c d%")).token()

    assert endpoint.requests[0].login == "a%3Ab:c+d%25"


def test_the_file_of_the_secret_is_read_for_each_token(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("an earlier secret")
    with token_endpoint(issues(3600)) as endpoint:
        credentials = ClientCredentials(endpoint.url, CLIENT_ID, file)
        with pytest.raises(TokenError, match="HTTP 401, invalid_client"):
            credentials.token()
        file.write_text(f"{CLIENT_SECRET}\n")
        assert credentials.token().value


@pytest.mark.parametrize(
    ("content", "says"), [(None, "No such file"), (b"", "is empty"), (b"\n", "is empty"), (b"\xff", "not UTF-8")]
)
def test_an_unusable_file_of_the_secret_is_named(content: bytes | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(TokenError, match=says) as raised:
        ClientCredentials("http://127.0.0.1:1/token", CLIENT_ID, file).token()

    assert str(file) in str(raised.value)
    assert "TRACEWEIR_KAFKA_OAUTH_CLIENT_SECRET_FILE" in str(raised.value)


def always(body: bytes, status: int = 200, **headers: str) -> Callable[[Request], Answer]:
    return lambda request: Answer(body, status, headers)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (issues(3600), "(HTTP 401, invalid_client)"),
        (always(CLIENT_SECRET.encode(), 500), "(HTTP 500)"),
        (always(json.dumps({"error": f"the secret is {CLIENT_SECRET}"}).encode(), 400), "(HTTP 400)"),
        (always(b"[]", 400), "(HTTP 400)"),
        (always(b"", 307, Location="http://127.0.0.1:1/"), "(HTTP 307)"),
        (always(b"<html>"), "returned no token"),
        (always(json.dumps({"access_token": CLIENT_SECRET}).encode()), "returned no token"),
        (always(json.dumps({"access_token": CLIENT_SECRET, "expires_in": "soon"}).encode()), "returned no token"),
        (always(b'{"access_token": "' + 70_000 * b"x" + b'", "expires_in": 60}'), "returned no token"),
    ],
)
def test_a_failure_is_told_without_the_secret(answer: Callable[[Request], Answer], says: str) -> None:
    with token_endpoint(answer) as endpoint, pytest.raises(TokenError) as raised:
        ClientCredentials(endpoint.url, "somebody", SECRET).token()

    assert says in str(raised.value)
    assert endpoint.url in str(raised.value)
    assert CLIENT_SECRET not in str(raised.value)


def test_an_endpoint_that_cannot_be_reached_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/token"

    with pytest.raises(TokenError, match="cannot be reached") as raised:
        ClientCredentials(url, CLIENT_ID, SECRET).token()

    assert url in str(raised.value)


async def test_a_token_can_be_asked_for_in_an_event_loop() -> None:
    with token_endpoint(issues(3600)) as endpoint:
        assert ClientCredentials(endpoint.url, CLIENT_ID, SECRET).token().value
