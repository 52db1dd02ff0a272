"""The source of tokens: when it renews, what it does while it cannot, and what it refuses."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from traceweir.streams.worker.kafka.errors import TokenError
from traceweir.streams.worker.kafka.tokens import ASK_AGAIN_AFTER_S, RENEWED_AFTER, TokenSource

LIFETIME_S = 100.0


class Issuer:
    """Issues numbered tokens, or fails; its clock stands until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.asked = 0
        self.failure: Exception | None = None
        self.source = TokenSource("the issuer", self.issue, lambda: self.now)

    def issue(self) -> object:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return f"token-{self.asked}", self.now + LIFETIME_S

    def token(self) -> str:
        return self.source.token().value


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


def test_a_token_serves_all_clients_until_its_share_of_the_lifetime_is_over(issuer: Issuer) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: issuer.token(), range(50))) == {"token-1"}

    issuer.now += LIFETIME_S * RENEWED_AFTER - 0.1
    assert issuer.token() == "token-1"
    issuer.now += 0.2
    assert issuer.token() == "token-2"


def test_tokens_are_renewed_for_days(issuer: Issuer) -> None:
    for _ in range(3 * 86_400 // 10):
        issuer.now += 10
        assert issuer.source.token().expires_at > issuer.now

    assert issuer.asked == 3 * 86_400 // 80  # asked every ten seconds, a token is renewed at the age of 80 s


def test_a_token_that_cannot_be_renewed_serves_until_it_ends(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.token()
    issuer.failure = TokenError("the endpoint is down")
    issuer.now += LIFETIME_S - 10
    with caplog.at_level(logging.WARNING):
        assert issuer.token() == "token-1"
    assert caplog.messages == ["the token for Kafka is not renewed, and ends in 10 s: the endpoint is down"]

    issuer.now += 10
    with pytest.raises(TokenError, match="the endpoint is down"):
        issuer.token()

    issuer.failure = None
    issuer.now += ASK_AGAIN_AFTER_S
    assert issuer.token() == "token-4"


def test_after_a_failure_nobody_is_asked_for_a_moment(issuer: Issuer) -> None:
    issuer.failure = TokenError("the endpoint is down")
    for _ in range(5):
        with pytest.raises(TokenError, match="the endpoint is down"):
            issuer.token()
    assert issuer.asked == 1

    issuer.failure = None
    issuer.now += ASK_AGAIN_AFTER_S
    assert issuer.token() == "token-2"


def test_an_error_of_another_package_is_told_in_words(issuer: Issuer) -> None:
    issuer.failure = RuntimeError("no identity\nassigned")

    with pytest.raises(TokenError) as raised:
        issuer.token()

    assert str(raised.value).startswith("the issuer failed to return a token for Kafka (RuntimeError: no identity")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "issued",
    [None, "secret-token", ("secret-token",), ("secret-token", "soon"), ("secret-token\x01auth=x", 2_000.0), ("", 2_000.0),
     (b"secret-token", 2_000.0), ("secret-token", float("nan"))],
)  # fmt: skip
def test_what_is_no_token_is_refused_and_not_shown(issued: object) -> None:
    with pytest.raises(TokenError, match="the issuer returned no token for Kafka") as raised:
        TokenSource("the issuer", lambda: issued, lambda: 1_000.0).token()

    assert "secret-token" not in str(raised.value)


def test_a_token_that_has_ended_is_refused(issuer: Issuer) -> None:
    with pytest.raises(TokenError, match="ended 100 s ago: check the clock"):
        TokenSource("the issuer", lambda: ("token", 900.0), lambda: 1_000.0).token()
