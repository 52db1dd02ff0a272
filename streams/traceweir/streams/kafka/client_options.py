"""Derives the connection options of Kafka's clients from the settings."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from types import MappingProxyType

from traceweir.streams.settings import Settings

IDEMPOTENT: Mapping[str, object] = MappingProxyType(
    {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1}
)
"""Options of a confluent-kafka producer that neither loses nor duplicates a record.

The producer sends one request at a time. With several requests to a topic that was just created, a broker can refuse
the first request, because it does not know the topic yet, and accept the second as the producer's first; librdkafka
then reports both as delivered (KAFKA-15591). aiokafka never has two requests in flight to one broker.
"""


def confluent_options(settings: Settings) -> dict[str, object]:
    """Returns the connection options of a confluent-kafka client, by librdkafka's names."""
    options: dict[str, object] = {
        "bootstrap.servers": settings.kafka_bootstrap_servers,
        "security.protocol": settings.kafka_security_protocol,
    }
    if settings.kafka_sasl_username is not None and settings.kafka_sasl_password is not None:
        options |= {
            "sasl.mechanism": settings.kafka_sasl_mechanism,
            "sasl.username": settings.kafka_sasl_username,
            "sasl.password": settings.kafka_sasl_password.get_secret_value(),
        }
    if settings.kafka_ssl_cafile is not None:
        options["ssl.ca.location"] = str(settings.kafka_ssl_cafile)
    if settings.kafka_ssl_certfile is not None and settings.kafka_ssl_keyfile is not None:
        options["ssl.certificate.location"] = str(settings.kafka_ssl_certfile)
        options["ssl.key.location"] = str(settings.kafka_ssl_keyfile)
    return options


def aiokafka_options(settings: Settings) -> dict[str, object]:
    """Returns the connection options of an aiokafka client, as keyword arguments.

    Raises:
        OSError: A TLS file cannot be read or is not a PEM file (`ssl.SSLError`).
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
    return options
