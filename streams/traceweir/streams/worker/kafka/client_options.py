"""Derives the connection options of Kafka's clients from the settings.

With `TRACEWEIR_KAFKA_SASL_MECHANISM=OAUTHBEARER`, all clients of a process have the same source of tokens.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.client_credentials import ClientCredentials
from traceweir.streams.worker.kafka.errors import TokenError
from traceweir.streams.worker.kafka.token_providers import token_provider
from traceweir.streams.worker.kafka.tokens import AccessToken, TokenSource

TOKEN_TIMEOUT_S = 10.0
"""Time limit of aiokafka's clients for a token; aiokafka has none. confluent-kafka's clients have the same."""

IDEMPOTENT: Mapping[str, object] = MappingProxyType(
    {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1}
)
"""Options of a confluent-kafka producer that neither loses nor duplicates a record.

The producer sends one request at a time. With several requests to a topic that was just created, a broker can refuse
the first request, because it does not know the topic yet, and accept the second as the producer's first; librdkafka
then reports both as delivered (KAFKA-15591). aiokafka never has two requests in flight to one broker.
"""


def confluent_options(settings: Settings) -> dict[str, object]:
    """Returns the connection options of a confluent-kafka client, by librdkafka's names. It creates no topics by asking.

    Raises:
        TokenError: there is no token to log in with. The client itself would say after 10 s that it has none, and not why.
    """
    options: dict[str, object] = {
        "bootstrap.servers": settings.kafka_bootstrap_servers,
        "security.protocol": settings.kafka_security_protocol,
        # True for producers and admin clients by default, although librdkafka lists the option as one of consumers.
        "allow.auto.create.topics": False,
    }
    if settings.kafka_sasl_username is not None and settings.kafka_sasl_password is not None:
        options |= {
            "sasl.mechanism": settings.kafka_sasl_mechanism,
            "sasl.username": settings.kafka_sasl_username,
            "sasl.password": settings.kafka_sasl_password.get_secret_value(),
        }
    if settings.kafka_uses_tokens:
        tokens = token_source(settings)
        tokens.token()
        # Called in a thread of librdkafka, also for clients that are never polled (confluent-kafka 2.13).
        options |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: tuple(tokens.token())}
    if settings.kafka_ssl_cafile is not None:
        options["ssl.ca.location"] = str(settings.kafka_ssl_cafile)
    if settings.kafka_ssl_certfile is not None and settings.kafka_ssl_keyfile is not None:
        options["ssl.certificate.location"] = str(settings.kafka_ssl_certfile)
        options["ssl.key.location"] = str(settings.kafka_ssl_keyfile)
    return options


def aiokafka_options(settings: Settings) -> dict[str, object]:
    """Returns the connection options of an aiokafka client, as keyword arguments.

    Raises:
        OSError: a TLS file cannot be read or is not a PEM file (`ssl.SSLError`).
        TokenError: the provider of tokens cannot be used. A token is first needed when a client connects.
    """
    options: dict[str, object] = {
        "bootstrap_servers": [server.strip() for server in settings.kafka_bootstrap_servers.split(",")],
        "security_protocol": settings.kafka_security_protocol,
    }
    if settings.kafka_security_protocol.endswith("SSL"):
        context = ssl.create_default_context(cafile=settings.kafka_ssl_cafile)
        if settings.kafka_ssl_certfile is not None:
            context.load_cert_chain(settings.kafka_ssl_certfile, settings.kafka_ssl_keyfile)
        options["ssl_context"] = context
    if settings.kafka_sasl_username is not None and settings.kafka_sasl_password is not None:
        options |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_sasl_username,
            "sasl_plain_password": settings.kafka_sasl_password.get_secret_value(),
        }
    if settings.kafka_uses_tokens:
        options |= {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": AiokafkaTokens(token_source(settings)),
        }
    return options


def consumer_options(settings: Settings) -> dict[str, object]:
    """Returns the options of an aiokafka consumer: those of its connection, and the rack.

    Raises:
        OSError: As `aiokafka_options`.
    """
    return aiokafka_options(settings) | {"client_rack": settings.kafka_client_rack}


def producer_options(settings: Settings) -> dict[str, object]:
    """Returns the options of an aiokafka producer: those of its connection, and the compression.

    Raises:
        OSError: As `aiokafka_options`.
    """
    codec = settings.kafka_compression
    return aiokafka_options(settings) | {"compression_type": None if codec == "none" else codec}


class AiokafkaTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Gives the tokens of a source to aiokafka's clients, in any event loop."""

    def __init__(self, tokens: TokenSource) -> None:
        self._tokens = tokens

    async def token(self) -> str:
        """Returns a token.

        Raises:
            KafkaConnectionError: there is none. The client then tries to connect again, as if the broker were away.
        """
        try:
            async with asyncio.timeout(TOKEN_TIMEOUT_S):
                found: AccessToken = await asyncio.to_thread(self._tokens.token)
        except TokenError as error:
            raise KafkaConnectionError(str(error)) from error
        except TimeoutError:
            raise KafkaConnectionError(f"no token for Kafka within {TOKEN_TIMEOUT_S:g} s") from None
        return found.value


def token_source(settings: Settings) -> TokenSource:
    """Returns the source of tokens of this process; equal settings have the same source.

    Raises:
        TokenError: the provider of tokens cannot be used.
    """
    endpoint = settings.kafka_oauth_token_endpoint
    client_id = settings.kafka_oauth_client_id
    secret = settings.kafka_oauth_client_secret or settings.kafka_oauth_client_secret_file
    if endpoint is not None and client_id is not None and secret is not None:
        return _source(ClientCredentials(endpoint, client_id, secret, settings.kafka_oauth_scope))
    return _source(settings.kafka_oauth_provider)


# Each token would otherwise be asked for once per client, and a worker has dozens.
@lru_cache
def _source(login: ClientCredentials | str) -> TokenSource:
    if isinstance(login, str):
        return TokenSource(f"token provider {login!r}", token_provider(login))
    return TokenSource(f"the token endpoint {login.endpoint}", login.token)
