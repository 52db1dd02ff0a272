"""Settings of a Traceweir process, from the environment (`TRACEWEIR_*`), and the client options they stand for."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, FilePath, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from traceweir.streams.topics import DEFAULT_PREFIX

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Delivery = Literal["auto", "exactly_once", "at_least_once"]

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]

ENV_PREFIX = "TRACEWEIR_"


class Settings(BaseSettings):
    """Everything a process needs to know besides its eval config; immutable once read.

    Each field is the variable of its name in capitals after `TRACEWEIR_`: `partitions` is `TRACEWEIR_PARTITIONS`.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        # A check across fields would otherwise print every input, the password among them.
        hide_input_in_errors=True,
    )

    # --- Kafka: where it is and how to get in

    kafka_bootstrap_servers: str = "127.0.0.1:9092"
    """Brokers to ask first: `host:port`, several separated by commas."""
    kafka_security_protocol: SecurityProtocol = "PLAINTEXT"
    """`PLAINTEXT`, `SSL` (TLS), `SASL_PLAINTEXT` or `SASL_SSL` (user and password, without and with TLS)."""
    kafka_sasl_mechanism: SaslMechanism = "PLAIN"
    """`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`; used with a SASL protocol."""
    kafka_sasl_username: str | None = None
    """User; needed with a SASL protocol, refused without."""
    kafka_sasl_password: SecretStr | None = None
    """Password; needed with a SASL protocol, refused without. Never shown."""
    kafka_ssl_cafile: FilePath | None = None
    """PEM file with the certificates that may sign the brokers'; without it, the system's."""
    kafka_ssl_certfile: FilePath | None = None
    """PEM file with this client's certificate, for mutual TLS; needs the key file."""
    kafka_ssl_keyfile: FilePath | None = None
    """PEM file with the unencrypted private key of the client's certificate."""

    # --- Kafka: topics and group

    topic_prefix: Annotated[str, Field(max_length=200, pattern=r"^([A-Za-z0-9._-]*[._-])?$")] = DEFAULT_PREFIX
    """Put before every topic's name: letters, digits, `.`, `_`, `-`, the last of them no letter or digit; may be
    empty. One prefix per tenant."""
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Partitions of every topic, 1 to 10,000; the most workers a stage can have. Fixed for the life of the topics: it decides
    every session's home. An embedded broker has always 4."""
    replication_factor: Annotated[int, Field(ge=1, le=100)] = 1
    """Copies of each partition, for topics created here, at most the number of brokers. 3 in production; 1 loses records
    with a disk."""
    session_timeout_s: Annotated[float, Field(gt=0, le=1800)] = 10.0
    """Seconds without a heartbeat after which the group gives a worker's partitions away. Kafka's brokers take 6 to
    1,800 unless configured otherwise."""
    heartbeat_interval_s: Seconds = 1.0
    """Seconds between heartbeats; at most half of the session timeout. With its next one a worker hears that another one has
    joined or left: until then nobody reads the partitions of one that left."""
    group_instance_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")] | None = None
    """Name of this worker across restarts (static membership), for example the pod of a StatefulSet: a restart within the
    session timeout then moves no partition. Two live workers must not share one."""

    # --- Delivery and state

    delivery: Delivery = "auto"
    """`exactly_once`: a checkpoint is a Kafka transaction. `at_least_once`: plain commits. `auto`: plain commits on an
    embedded broker, which has no transactions, exactly once on any other."""
    state_dir: Path = Path("var/state")
    """Folder of the state's local copy, made if missing, relative to the working directory. One worker process each; may be
    lost, as it is rebuilt from the changelog."""
    checkpoint_interval_s: Annotated[float, Field(gt=0, le=10)] = 0.05
    """Least seconds between the starts of two checkpoints of a partition, up to 10. Shorter: sooner visible, more
    transactions."""

    # --- Health

    web_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address on which a worker answers `/healthz` and `/readyz`. Who can reach it learns how the worker is, and nothing else; in
    a container `0.0.0.0`."""
    web_port: Annotated[int, Field(ge=0, le=65_535)] = 6066
    """Its port; several workers on one machine need one each. 0: any free one, which the log names."""
    stuck_after_s: Annotated[float, Field(ge=10, allow_inf_nan=False)] = 120.0
    """Seconds, 10 or more, for which a checkpoint, a fetch, joining the group or catching up may stand still while Kafka answers
    before the worker ends, to be started again. What moves is never stuck, however long it takes."""

    # --- Sessions

    idle_gap_s: Seconds = 300.0
    """Seconds without an event, in record time, after which a session closes."""
    close_linger_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0
    """Seconds from `session.ended` to the close, 0 or more: the trace often comes last."""
    grace_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 600.0
    """Seconds after the moment at which a closed session was due within which an event opens it again, as its next revision, 0 or more;
    later ones begin its next segment. Until then its content stays in the state."""
    guard_s: Seconds = 3600.0
    """Seconds for which a closed session is remembered, and by which an event may lag behind the watermark before it is a
    dead letter `late`. At least the grace."""
    max_future_s: Seconds = 300.0
    """Seconds by which a record's timestamp may lie ahead of the clock; beyond, a dead letter `future_timestamp`."""
    segment_max_events: Count = 1_000
    """Events at which a segment closes with `size_limit`, 1 or more."""
    segment_max_bytes: Annotated[int, Field(ge=1_000, le=900_000)] = 800_000
    """Bytes of events at which a segment closes with `size_limit`, 1,000 to 900,000: a session must fit a record, whose
    limit is 1 MB by Kafka's default."""

    # --- Scoring

    score_concurrency: Count = 64
    """Sessions scored at the same time by one worker, 1 or more."""
    score_window: Count = 2_000
    """Sessions of one partition read but not finished, 1 or more; the partition is not read further while it is full."""
    score_timeout_s: Seconds = 60.0
    """Seconds after which what is unfinished of a session's scores becomes NOT_EVALUATED `timeout`."""
    judge_timeout_s: Seconds = 600.0
    """Seconds after which a score that asks a judge becomes NOT_EVALUATED `timeout`, in place of the former: a question may wait for its
    turn, and be asked again several times."""
    judge_api_base: Annotated[str, Field(pattern=r"^https?://[^\s/@]+(/\S*)?$")] | None = None
    """Address of a server that speaks OpenAI's API, or that of the model's provider: `http://127.0.0.1:8000/v1`; without user and
    password. Unset: each provider's own."""
    judge_api_key: SecretStr | None = None
    """Key for the models that judge. Unset: the provider's own variable, as litellm reads it (`GEMINI_API_KEY`). Never shown."""
    judge_cache: Path = Path("var/judge/verdicts.sqlite3")
    """File in which `traceweir score` and `eval`, `evaluate_files` and pytest keep the verdicts of judges, and what was paid today. A
    worker keeps both in its state."""
    embedder: Annotated[str, Field(min_length=1)] = "auto"
    """`auto` (the default model if it is installed, else none), `none`, `hashing` (lexical, no model), or a
    sentence-transformers model's name or path."""

    @field_validator("kafka_bootstrap_servers")
    @classmethod
    def _name_hosts_and_ports(cls, servers: str) -> str:
        for server in servers.split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
                raise ValueError(f"{server.strip()!r} is not host:port; for example 127.0.0.1:9092")
        return servers

    @model_validator(mode="after")
    def _agree_with_each_other(self) -> Settings:
        protocol = f"{_env('kafka_security_protocol')}={self.kafka_security_protocol}"
        user, password = _env("kafka_sasl_username"), _env("kafka_sasl_password")
        credentials = (self.kafka_sasl_username, self.kafka_sasl_password)
        tls_files = (self.kafka_ssl_cafile, self.kafka_ssl_certfile, self.kafka_ssl_keyfile)
        sasl = self.kafka_security_protocol.startswith("SASL_")
        tls = self.kafka_security_protocol.endswith("SSL")
        problems = []
        if sasl and None in credentials:
            problems.append(f"{protocol} needs both {user} and {password}")
        if not sasl and credentials != (None, None):
            problems.append(
                f"{user} and {password} are not used with {protocol}; set it to SASL_SSL, or leave them out"
            )
        if not tls and tls_files != (None, None, None):
            problems.append(f"TLS files are not used with {protocol}; set it to SSL or SASL_SSL, or leave them out")
        if (self.kafka_ssl_certfile is None) != (self.kafka_ssl_keyfile is None):
            problems.append(f"{_env('kafka_ssl_certfile')} and {_env('kafka_ssl_keyfile')} go together; one is missing")
        if self.heartbeat_interval_s * 2 > self.session_timeout_s:
            problems.append(
                f"{_env('heartbeat_interval_s')}={self.heartbeat_interval_s:g} is more than half of "
                f"{_env('session_timeout_s')}={self.session_timeout_s:g}: one lost heartbeat would cost the partitions"
            )
        if self.checkpoint_interval_s * 8 > self.stuck_after_s:
            problems.append(
                f"{_env('stuck_after_s')}={self.stuck_after_s:g} is less than eight times {_env('checkpoint_interval_s')}="
                f"{self.checkpoint_interval_s:g}: far behind, checkpoints are four times as far apart, and would be taken for stuck"
            )
        if self.grace_s > self.guard_s:
            problems.append(
                f"{_env('grace_s')}={self.grace_s:g} is more than {_env('guard_s')}={self.guard_s:g}: a session can only be opened again "
                "while it is remembered"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self


class InvalidSettingsError(ValueError):
    """The environment holds settings that cannot be used; the message lists all of them, by variable."""


def load_settings() -> Settings:
    """Read the environment.

    Raises:
        InvalidSettingsError: Some variable is out of its range or contradicts another.
    """
    try:
        return Settings()
    except ValidationError as error:
        problems = []
        for each in error.errors(include_url=False, include_input=False):
            message = each["msg"].removeprefix("Value error, ")
            problems.append(f"{_env(str(each['loc'][0]))}: {message}" if each["loc"] else message)
        raise InvalidSettingsError("\n".join(problems)) from None  # the cause may quote a secret


IDEMPOTENT: Mapping[str, object] = MappingProxyType(
    {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1}
)
"""Options of a confluent-kafka producer that neither loses nor doubles a record.

One request at a time: of several to a topic that was just created, a broker may refuse the first, because it has not yet heard of the
topic, and take the second, as first of its producer; librdkafka then reports both as delivered (KAFKA-15591). aiokafka never has two
requests under way to one broker.
"""


def confluent_options(settings: Settings) -> dict[str, object]:
    """Give the connection's options for a confluent-kafka client (librdkafka's names)."""
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
    """Give the connection's options for an aiokafka client, as keyword arguments.

    Raises:
        OSError: A TLS file cannot be read, or is no PEM file (`ssl.SSLError`).
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


def _env(field: str) -> str:
    return ENV_PREFIX + field.upper()
