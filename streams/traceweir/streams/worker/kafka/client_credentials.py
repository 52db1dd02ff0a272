"""Asks an OAuth 2 token endpoint for a token with the client's own credentials (RFC 6749, section 4.4)."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus

import aiohttp
from pydantic import SecretStr

from traceweir.schemas.text import printable
from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.http_answers import beginning
from traceweir.streams.worker.kafka.errors import TokenError
from traceweir.streams.worker.kafka.tokens import AccessToken

TIMEOUT_S = 8.0
"""Seconds for a request. confluent-kafka's clients wait 10 s for their first token."""
_ERROR = re.compile(r"[a-z_]{1,40}")
"""The codes of errors of RFC 6749. Other words of an answer are not shown: they could repeat the secret."""
_OK = 200


@dataclass(frozen=True)
class ClientCredentials:
    """What a client shows to the token endpoint."""

    endpoint: str
    """Address of the token endpoint."""
    client_id: str
    secret: SecretStr | Path
    """The client's secret, or the file that holds it. The file is read for each token, so that it can be replaced."""
    scope: str | None = None
    """The scopes that are asked for, with spaces between; None: the default of the endpoint."""

    def token(self) -> AccessToken:
        """Returns a new token.

        Raises:
            TokenError: the endpoint cannot be reached, refuses the client, or returns no token.
        """
        secret = self._read_secret()
        # A thread of its own: the caller's thread can run an event loop, which allows no second one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(self._ask(secret))).result()

    async def _ask(self, secret: str) -> AccessToken:
        fields = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        login = f"{quote_plus(self.client_id)}:{quote_plus(secret)}"
        headers = {
            "Authorization": f"Basic {base64.b64encode(login.encode()).decode()}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        asked_at = seconds_now()
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=TIMEOUT_S), auto_decompress=False, trust_env=True
                ) as session,
                # A redirect would send the secret to an address that nobody has configured.
                session.post(self.endpoint, data=fields, headers=headers, allow_redirects=False) as response,
            ):
                return self._read(response.status, await beginning(response.content), asked_at)
        except TimeoutError:
            raise self._unreachable(f"no answer within {TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._unreachable(printable(str(error) or repr(error), 300)) from None

    def _read(self, status: int, body: bytes, asked_at: float) -> AccessToken:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if status != _OK:
            code = answer.get("error") if isinstance(answer, Mapping) else None
            said = f"HTTP {status}" + (f", {code}" if isinstance(code, str) and _ERROR.fullmatch(code) else "")
            raise TokenError(
                f"the token endpoint {self.endpoint} issues no token for Kafka to client {printable(self.client_id, 100)!r} ({said}): "
                "check TRACEWEIR_KAFKA_OAUTH_TOKEN_ENDPOINT, TRACEWEIR_KAFKA_OAUTH_CLIENT_ID, the client's secret and "
                "TRACEWEIR_KAFKA_OAUTH_SCOPE"
            )
        match answer:
            case {"access_token": str(token), "expires_in": int() | float() | str() as lifetime}:
                try:
                    return AccessToken(token, asked_at + float(lifetime))
                except ValueError:
                    pass
        raise TokenError(
            f"the token endpoint {self.endpoint} returned no token for Kafka (the answer is not shown): a JSON object is expected "
            "with access_token, and with expires_in in seconds. Check TRACEWEIR_KAFKA_OAUTH_TOKEN_ENDPOINT"
        )

    def _unreachable(self, reason: str) -> TokenError:
        return TokenError(
            f"the token endpoint {self.endpoint} cannot be reached for a token for Kafka ({reason}): check that it runs, and "
            "TRACEWEIR_KAFKA_OAUTH_TOKEN_ENDPOINT"
        )

    def _read_secret(self) -> str:
        if isinstance(self.secret, SecretStr):
            return self.secret.get_secret_value()
        try:
            secret = self.secret.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise TokenError(
                f"the secret of Kafka's OAuth client cannot be read from {self.secret} ({reason}): check "
                "TRACEWEIR_KAFKA_OAUTH_CLIENT_SECRET_FILE"
            ) from None
        if not secret:
            raise TokenError(
                f"the file {self.secret} is empty, and must contain the secret of Kafka's OAuth client: check "
                "TRACEWEIR_KAFKA_OAUTH_CLIENT_SECRET_FILE"
            )
        return secret
