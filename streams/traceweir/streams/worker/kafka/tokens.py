"""Keeps the token with which the Kafka clients of a process log in (SASL OAUTHBEARER), and renews it."""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable
from typing import NamedTuple

from traceweir.schemas.text import printable
from traceweir.streams.base.clock import seconds_now
from traceweir.streams.worker.kafka.errors import TokenError

log = logging.getLogger(__name__)

RENEWED_AFTER = 0.75
"""Share of its lifetime after which a token is renewed.

librdkafka asks for a new token after 80 % of what was left of the last one, so that it never asks in vain.
"""
ASK_AGAIN_AFTER_S = 1.0
"""Seconds after a failure in which nobody is asked: clients try again several times a second, each connection apart."""
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""The characters of a bearer token (RFC 6750). Others could end the message of the login that holds the token."""


class AccessToken(NamedTuple):
    """A token and its end."""

    value: str
    expires_at: float
    """The end of its lifetime, in seconds since 1970."""


class TokenSource:
    """The token of all clients of a process, whatever their thread or event loop.

    Args:
        name: What issues the tokens, for messages.
        issue: Returns a new token. It is called in any thread, never by two threads at once, and can block some seconds.
            Every exception counts as a failure, and its text is logged.
        clock: Returns the seconds since 1970.
    """

    def __init__(self, name: str, issue: Callable[[], object], clock: Callable[[], float] = seconds_now) -> None:
        self._name = name
        self._issue = issue
        self._clock = clock
        self._lock = threading.Lock()
        self._token: AccessToken | None = None
        self._renewed_from = -math.inf
        self._failure: TokenError | None = None
        self._failed_at = -math.inf

    def token(self) -> AccessToken:
        """Returns a token that has not ended. A call can take as long as a new token takes.

        A token that cannot be renewed is returned until it ends.

        Raises:
            TokenError: there is no token; the message says why, and what to do.
        """
        with self._lock:
            now = self._clock()
            if self._token is not None and now < self._renewed_from:
                return self._token
            if self._failure is None or now - self._failed_at >= ASK_AGAIN_AFTER_S:
                self._renew(now)
            if self._token is not None and self._clock() < self._token.expires_at:
                return self._token
            # A new error for each client: a traceback belongs to the thread that raises it.
            raise TokenError(str(self._failure or f"{self._name} returned a token for Kafka that has ended already"))

    def _renew(self, now: float) -> None:
        try:
            token = self._checked(self._issue(), now)
        except TokenError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  # code of other packages can fail in any way
            reason = printable(f"{type(error).__name__}: {error}", 300)
            self._fail(TokenError(f"{self._name} failed to return a token for Kafka ({reason}): remove the cause"))
        else:
            self._token = token
            self._failure = None
            self._renewed_from = now + RENEWED_AFTER * (token.expires_at - now)

    def _fail(self, failure: TokenError) -> None:
        self._failure = failure
        self._failed_at = self._clock()
        if self._token is not None and (left := self._token.expires_at - self._failed_at) > 0:
            log.warning("the token for Kafka is not renewed, and ends in %.0f s: %s", left, failure)

    def _checked(self, issued: object, now: float) -> AccessToken:
        match issued:
            case (str(value), int() | float() as expires_at) if _TOKEN.fullmatch(value) and math.isfinite(expires_at):
                token = AccessToken(value, float(expires_at))
            case _:
                raise TokenError(
                    f"{self._name} returned no token for Kafka (the value is not shown): a pair is expected, of the token as "
                    "a str of letters, digits and -._~+/=, and of its end in seconds since 1970"
                )
        if token.expires_at <= now:
            raise TokenError(
                f"{self._name} returned a token for Kafka that ended {now - token.expires_at:.0f} s ago: check the clock of this "
                "machine, and that the end is given in seconds since 1970"
            )
        return token
