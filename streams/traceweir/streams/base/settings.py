"""Reads the settings of a Traceweir process from the environment (`TRACEWEIR_*`)."""

from __future__ import annotations

import base64
import errno
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, FilePath, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from traceweir.schemas.session import MOST_REVISIONS
from traceweir.schemas.text import printable
from traceweir.schemas.trace import Visibility
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.process_log import LogFormat, LogLevel, LogOptions
from traceweir.streams.base.topics import DEFAULT_OTLP_LOGS, DEFAULT_OTLP_SPANS, DEFAULT_PREFIX, Topics

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
Delivery = Literal["auto", "exactly_once", "at_least_once"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


def _usable_as_path(path: str | Path) -> str | Path:
    try:
        os.stat(path)
    except OSError as error:
        # pydantic's own check of a file raises this error.
        if error.errno == errno.ENAMETOOLONG:
            raise ValueError(f"a path of {len(str(path))} characters is too long; name a PEM file") from None
    return path


TRANSACTION_TIMEOUT_S = 60.0
"""Seconds after which Kafka aborts an open transaction, where the environment does not say."""
MAX_VALUE_CHARACTERS = 3_000
"""Characters of a value: enough for every path and every list of brokers, and few enough for a message to show all."""
MAX_SECRET_CHARACTERS = 8_192
"""Characters of a password or key, which can be a token; messages never show one."""

TopicName = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]
PemFile = Annotated[FilePath, BeforeValidator(_usable_as_path)]

ENV_PREFIX = "TRACEWEIR_"
CLIENT_CREDENTIALS = "client_credentials"
"""The provider of tokens that asks a token endpoint; every other one has a function of its own."""
_TOKEN = re.compile(r"[!-~]{16,}")
_WEBHOOK_SECRET_BYTES = range(24, 65)
"""Sizes that the specification Standard Webhooks allows."""


class Settings(BaseSettings):
    """Holds the immutable settings of a process, which are independent of its eval config.

    The variable of a field is `TRACEWEIR_` and the field's name in capitals: `partitions` is `TRACEWEIR_PARTITIONS`.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        frozen=True,
        extra="forbid",
        # Otherwise the error of a check across fields prints every input, including the password.
        hide_input_in_errors=True,
    )

    # --- Kafka: address and credentials

    kafka_bootstrap_servers: str = "127.0.0.1:9092"
    """Brokers to contact first: `host:port`, separated by commas, without user and password. Where no variable
    `TRACEWEIR_KAFKA_...` is set, commands use the embedded broker of a running `traceweir up` of the same user, and say so."""
    kafka_security_protocol: SecurityProtocol = "PLAINTEXT"
    """`PLAINTEXT`, `SSL` (TLS), `SASL_PLAINTEXT` (login without TLS) or `SASL_SSL` (login with TLS)."""
    kafka_sasl_mechanism: SaslMechanism = "PLAIN"
    """How a client logs in with a SASL protocol: by user and password with `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`,
    by token with `OAUTHBEARER`. Used only with a SASL protocol."""
    kafka_sasl_username: str | None = None
    """User name. Required for a login by user and password, refused otherwise."""
    kafka_sasl_password: SecretStr | None = None
    """Password. Required for a login by user and password, refused otherwise. Never printed."""
    kafka_oauth_provider: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = CLIENT_CREDENTIALS
    """What issues tokens for `OAUTHBEARER`: `client_credentials` (a token endpoint), `msk_iam` (Amazon MSK with IAM, the
    extra `[msk]`), or the name of an installed package's provider ([login by
    token](kafka.md#login-by-token-sasl-oauthbearer)). Used only with `OAUTHBEARER`."""
    kafka_oauth_token_endpoint: Annotated[str, Field(pattern=r"^https?://[^\s/@?#]+(/[^\s?#]*)?$")] | None = None
    """Address of the OAuth 2 token endpoint, without user, password and query. Required for `client_credentials`, refused
    otherwise, as the next two."""
    kafka_oauth_client_id: Annotated[str, Field(min_length=1)] | None = None
    """Id of the OAuth client."""
    kafka_oauth_client_secret: Annotated[SecretStr, Field(min_length=1)] | None = None
    """Secret of the OAuth client; either this or the file. Never printed."""
    kafka_oauth_client_secret_file: Annotated[FilePath, BeforeValidator(_usable_as_path)] | None = None
    """File with the secret of the OAuth client, in place of the variable. It is read for each token, so that a new secret
    needs no restart."""
    kafka_oauth_scope: Annotated[str, Field(min_length=1)] | None = None
    """Scopes that `client_credentials` asks for, separated by spaces. Unset: those that the token endpoint gives by
    default."""
    kafka_ssl_cafile: PemFile | None = None
    """PEM file with the certificate authorities that sign the brokers' certificates. Unset: the authorities of
    the system."""
    kafka_ssl_certfile: PemFile | None = None
    """PEM file with the certificate of this client, for mutual TLS. Requires the key file."""
    kafka_ssl_keyfile: PemFile | None = None
    """PEM file with the unencrypted private key of the client's certificate."""

    kafka_compression: Compression = "none"
    """How records are compressed that this process writes, changelogs included: `none`, `gzip`, `snappy`, `lz4` or `zstd`.
    Records are read in every codec. `zstd` saves most of the bytes on disks and networks, for some CPU of the worker."""
    kafka_client_rack: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Rack or availability zone of this process (`client.rack`). It then reads from a replica in its own zone, if the brokers
    have `broker.rack` and `replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector`. Unset: from
    the leader."""

    # --- Kafka: topics and group

    topic_prefix: Annotated[str, Field(max_length=200, pattern=r"^([A-Za-z0-9._-]*[._-])?$")] = DEFAULT_PREFIX
    """Prefix of every topic name: letters, digits, `.`, `_` and `-`, at most 200, ending in `.`, `_` or `-`; can
    be empty. Use one prefix per tenant."""
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Number of partitions of every topic, 1 to 10,000; also the maximum number of workers per stage. The number
    decides the home of every session, so it is fixed for the life of the topics. Only `traces`, `invocations` and the
    OTLP topics can have more. An embedded broker always has 4."""
    replication_factor: Annotated[int, Field(ge=1, le=100)] = 1
    """Copies of each partition of the topics that Traceweir creates, at most the number of brokers. Use 3 in
    production: with 1, a lost disk loses records."""
    session_timeout_s: Annotated[float, Field(gt=0, le=1800)] = 10.0
    """Seconds without a heartbeat after which the group gives a worker's partitions to other workers. Kafka's
    brokers accept 6 to 1,800 by default."""
    heartbeat_interval_s: Seconds = 1.0
    """Seconds between heartbeats, at most half of the session timeout. A worker learns with its next heartbeat
    that another worker has joined or left; until then no worker reads the partitions of a worker that left."""
    group_instance_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")] | None = None
    """Name of this worker across restarts (static membership), for example the name of a StatefulSet's pod. A
    restart with the same state directory within the session timeout then moves no partition. Each worker needs a name
    of its own: a worker that starts with the name of a running one waits for the session timeout, and ends."""

    # --- Delivery and state

    delivery: Delivery = "auto"
    """`exactly_once`: a checkpoint is a Kafka transaction. `at_least_once`: plain commits. `auto`: plain commits
    on an embedded broker, which has no transactions, and exactly once on any other broker."""
    state_dir: Path = Path("var/state")
    """Directory of the local copy of the state, relative to the working directory; created if missing. Each
    worker process needs a directory of its own. A lost directory is rebuilt from the changelog."""
    checkpoint_interval_s: Annotated[float, Field(gt=0, le=10)] = 0.02
    """Seconds between the starts of two checkpoints of a worker on average, up to 10, while results wait. After a
    pause some come sooner. A shorter interval publishes results sooner under load and needs more transactions."""

    transaction_timeout_s: Annotated[float, Field(ge=1, le=3600)] = TRANSACTION_TIMEOUT_S
    """Seconds, 1 to 3,600, after which Kafka aborts a transaction that is still open; at most the brokers'
    `transaction.max.timeout.ms`, and less than `TRACEWEIR_STUCK_AFTER_S`. A worker makes transactions that take about a
    quarter of this time, as far as it can. After the end of a worker without a successor, readers of committed records
    wait up to this time for what follows its open transaction; a successor ends the transaction at once."""

    # --- Log and health

    log_level: LogLevel = "info"
    """The lowest level that a worker logs: `debug`, `info`, `warning` or `error`. At `info` the worker says once a
    minute what it has done. Lines of libraries begin at `warning`, with `debug` at `info`."""
    log_format: LogFormat = "text"
    """How a line of the log is written: `text` for people, `json` for programs, one object a line with `timestamp` in UTC,
    `level`, `logger`, `message`, `process` and, with an error, `exception`. The container image has `json`."""

    web_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address on which a worker serves `/healthz`, `/readyz` and `/metrics`, and `traceweir export` and `traceweir canary`
    what `--port` names. A client of this address learns the health of the process, and numbers. Use `0.0.0.0` in a
    container."""
    web_port: Annotated[int, Field(ge=0, le=65_535)] = 6066
    """Port of `/healthz`, `/readyz` and `/metrics`. Several workers on one machine need a port each. 0: any free port, which
    the log names."""
    stuck_after_s: Annotated[float, Field(ge=10, allow_inf_nan=False)] = 120.0
    """Seconds, 10 or more, without progress of a checkpoint, of a fetch, of joining the group or of catching up,
    while Kafka answers. The worker then exits, and its supervisor restarts it. Work that makes progress is never
    stuck, however long it takes."""

    # --- Sessions

    idle_gap_s: Seconds = 300.0
    """Seconds without an event, in record time, after which a session closes."""
    close_linger_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0
    """Seconds from the event that ends the session to the close, 0 or more. The trace of a session often arrives
    last."""
    grace_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 600.0
    """Seconds after the moment at which a closed session was due, 0 or more. An event within this time reopens
    the session as its next revision; a later event begins the session's next segment. The state keeps the content
    of the session for this time."""
    guard_s: Seconds = 3600.0
    """Seconds for which the worker remembers a closed session. An event that lags behind the watermark by more becomes
    a dead letter `late` if its session can have been forgotten. At least the grace."""
    max_future_s: Seconds = 300.0
    """Seconds by which the timestamp of a record can lie ahead of the clock. A record beyond this limit becomes a
    dead letter `future_timestamp`."""
    segment_max_events: Count = 1_000
    """Number of events, 1 or more, at which a segment closes with `size_limit`."""
    segment_max_bytes: Annotated[int, Field(ge=1_000, le=900_000)] = 800_000
    """Bytes of events, 1,000 to 900,000, at which a segment closes with `size_limit`. A session must fit into one
    record, which Kafka limits to 1 MB by default."""
    segment_max_revisions: Annotated[int, Field(ge=0, lt=MOST_REVISIONS)] = 20
    """Number of times, 0 or more, that late events reopen a segment. The next late event begins the session's next
    segment. Each revision scores the whole segment again; each reopening waits twice as long for more events as the
    one before, at most until the grace ends."""
    partition_max_open_sessions: Count = 100_000
    """Number of open sessions of one partition, 1 or more. One more session closes the session that was due to close
    first, with `session_limit`. An open session takes 1
    to 4 kB of memory."""
    partition_max_closed_sessions: Count = 1_000_000
    """Number of closed sessions that a partition remembers, 1 or more. One more closed session makes the worker forget
    the session that closed first before its guard time is over. A closed session takes 0.3 to 0.5 kB of memory. The
    partition also remembers the ids of as many forgotten sessions, in about 20 bytes of memory each."""

    # --- OpenTelemetry

    otlp_spans_topic: TopicName = DEFAULT_OTLP_SPANS
    """Topic with OTLP trace requests, which the stage `collect` reads: the name that the OpenTelemetry Collector's
    Kafka exporter writes to. The prefix is not added."""
    otlp_logs_topic: TopicName = DEFAULT_OTLP_LOGS
    """Topic with OTLP log requests, which the stage `collect` reads. The prefix is not added."""
    otlp_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address on which `traceweir otlp` receives OTLP. Any other address than one of this machine alone requires
    `TRACEWEIR_OTLP_TOKEN`. Use `0.0.0.0` in a container."""
    otlp_http_port: Annotated[int, Field(ge=0, le=65_535)] = 4318
    """Port of OTLP/HTTP. 0: any free port, which `traceweir otlp` prints."""
    otlp_grpc: Literal["auto", "on", "off"] = "auto"
    """Whether `traceweir otlp` serves OTLP/gRPC: `auto` if grpcio is installed (the extra `[grpc]`), `on` or `off`."""
    otlp_grpc_port: Annotated[int, Field(ge=0, le=65_535)] = 4317
    """Port of OTLP/gRPC. 0: any free port, which `traceweir otlp` prints with `--json`."""
    otlp_token: SecretStr | None = None
    """Secret that clients of `traceweir otlp` send as `Authorization: Bearer`: 16 characters or more, in ASCII and
    without spaces. Unset: no client needs one. Never printed."""
    otlp_max_request_bytes: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 20_000_000
    """Bytes of a request to `traceweir otlp`, as it arrives and decompressed. A larger one is refused. Requests that are
    larger than a Kafka record are split."""
    otlp_max_in_flight_bytes: Annotated[int, Field(ge=1_000)] = 100_000_000
    """Bytes of all requests that `traceweir otlp` reads or that Kafka has not acknowledged yet, at least those of one
    request. Further requests are refused with 429, and their clients send them again."""
    otlp_concurrency: Count = 200
    """Requests that `traceweir otlp` works on at the same time, 1 or more. Further ones are refused with 429."""
    otlp_read_timeout_s: Seconds = 10.0
    """Seconds in which a client of `traceweir otlp` must have sent a request."""
    otlp_write_timeout_s: Annotated[float, Field(gt=0, le=300)] = 5.0
    """Seconds in which Kafka must have acknowledged a request, up to 300. Then `traceweir otlp` answers 503, and the client
    sends the request again. OpenTelemetry's SDKs wait 10 s for an answer."""
    otlp_visibility: Visibility = "private"
    """Visibility of the traces that are made from spans: `private`, `org` or `network`. Only with `network` can the
    gate publish them."""
    trace_grace_s: Seconds = 5.0
    """Seconds from the root span of a trace, in record time, after which the trace becomes events. Spans of other
    processes can arrive after the root span."""
    trace_idle_s: Seconds = 60.0
    """Seconds without a span, in record time, after which a trace without a root span becomes events."""
    trace_max_spans: Count = 10_000
    """Number of spans and log records of a trace, 1 or more. Further ones are dropped and counted."""
    trace_max_bytes: Annotated[int, Field(ge=1_000)] = 16_000_000
    """Bytes of the spans and log records of a trace, 1,000 or more. Further ones are dropped and counted."""
    partition_max_traces: Count = 100_000
    """Number of traces of one partition that wait for spans, and number of published traces that it remembers for late
    spans, 1 or more. One more trace publishes, or forgets, the trace that is due first."""

    # --- Dashboard

    store: Annotated[str, Field(min_length=1)] = "var/store/results.duckdb"
    """Where `traceweir dashboard` keeps what workers write. A DuckDB file, relative to the working directory and created if
    missing; one process at a time can open it. Or a database of ClickHouse: `clickhouse://user:password@host:8123/database`,
    `clickhouses://` with TLS. The password is never printed. A lost store is filled again from the topics, as far as their
    retention reaches."""
    store_results_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    """Days, 1 or more, for which the store keeps results. Older figures are kept longer."""
    store_figures_days: Annotated[int, Field(ge=1, le=36_500)] = 400
    """Days for which the store keeps figures, at least `TRACEWEIR_STORE_RESULTS_DAYS`. A DuckDB file has figures by the
    minute as long as their results, and older ones by the hour."""
    store_sessions_days: Annotated[int, Field(ge=1, le=36_500)] = 30
    """Days, 1 or more, for which the store keeps sessions and dead letters."""
    dashboard_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address on which `traceweir dashboard` answers. Any other address than one of this machine alone requires
    `TRACEWEIR_DASHBOARD_TOKEN`. Use `0.0.0.0` in a container."""
    dashboard_port: Annotated[int, Field(ge=0, le=65_535)] = 4180
    """Port of `traceweir dashboard`. 0: any free port, which the command prints."""
    dashboard_token: SecretStr | None = None
    """Secret that clients of `traceweir dashboard` send as `Authorization: Bearer`: 16 characters or more, in ASCII and
    without spaces. Unset: every client of this machine is let in. Never printed."""
    dashboard_content: Literal["redacted", "full", "none"] = "redacted"
    """How much text of agents and judges `traceweir dashboard` shows: `redacted` without secrets and identifiers, `full`,
    or `none`. The store has the text whole."""
    dashboard_trace_url: Annotated[str, Field(pattern=r"^https?://[^\s\"'<>]+$")] | None = None
    """Address of an OpenTelemetry trace in another tool, to which the page of a session links. `{trace_id}` and
    `{span_id}` stand for the ids: `http://127.0.0.1:16686/trace/{trace_id}`. Unset: there is no link."""
    dashboard_config: Path | None = None
    """Evaluation config of the workers, whose daily budget of judges `traceweir dashboard` compares with what was spent.
    It is read at the start. Unset: only the spending is shown."""
    dashboard_evalset: Path | None = None
    """Eval set of Google ADK, such as `cases.evalset.json`, to which the page of a session adds the session as a case;
    created if missing. A case has the conversation verbatim. Unset: the page shows the command."""

    # --- Export

    export_content: Literal["redacted", "full", "none"] = "redacted"
    """How much text of agents and judges `traceweir export` sends with scores: rationales, details and labels `redacted`
    without secrets and identifiers, `full`, or `none`."""
    export_give_up_after_s: Seconds = 259_200.0
    """Seconds for which `traceweir export` sends a score again that its target does not take; then it is a dead letter
    `given_up`, which `traceweir dlq replay` sends again. Three days."""
    webhook_url: SecretStr | None = None
    """Address to which `traceweir export webhook` posts events, with http or https. Never printed, as it can contain a
    secret."""
    webhook_secret: SecretStr | None = None
    """Secret that signs the events of `traceweir export webhook`: from 24 to 64 bytes in base64. While a receiver changes
    its secret, the new and the old one with a space between. Never printed."""
    webhook_timeout_s: Seconds = 15.0
    """Seconds that the receiver of a webhook has for one event, from the connection to the answer."""
    webhook_connections: Annotated[int, Field(ge=1, le=256)] = 8
    """Connections to the receiver of a webhook. The events of one session are sent one after another."""

    # --- Privacy

    user_ids: Literal["hashed", "plain"] = "hashed"
    """`hashed`: scores and candidates have a hash of the user's id. `plain`: they have the id as the agent sends it.
    Sessions always keep the events as the agent sends them."""
    user_id_key: Annotated[SecretStr, Field(min_length=16)] | None = None
    """Secret key of the hashes of user ids, 16 characters or more. Unset: a hash without a key, which anyone who
    can list the possible ids can reverse by trying them. All workers need the same key, and with another key a user
    has another hash. Never printed."""

    # --- Scoring

    score_concurrency: Count = 64
    """Sessions that one worker scores at the same time, 1 or more."""
    scoring_processes: Annotated[int, Field(ge=1, le=64)] | None = None
    """Processes in which one worker scores sessions, from 1 to 64. Unset: one for every two cores, at most 4; the quota
    of a container counts. If a criterion asks a judge, or novelty uses an embedding model, one process scores."""
    score_window: Count | None = None
    """Sessions of one partition that are read and not finished, 1 or more. The worker stops reading the partition
    while the window is full. Unset: three times `TRACEWEIR_SCORE_CONCURRENCY`, at least 200."""
    score_timeout_s: Seconds = 60.0
    """Seconds per session, after which unfinished scores become NOT_EVALUATED `timeout`."""
    judge_timeout_s: Seconds = 600.0
    """Seconds after which a score that asks a judge becomes NOT_EVALUATED `timeout`; for these scores it replaces
    `TRACEWEIR_SCORE_TIMEOUT_S`. It is longer because a question can wait for rate limits and be retried several
    times; a retry begins only if it can end within this time."""
    judge_api_base: Annotated[str, Field(pattern=r"^https?://[^\s/@]+(/\S*)?$")] | None = None
    """Address of a server that speaks OpenAI's API, or of the model's provider, without user and password:
    `http://127.0.0.1:8000/v1`. Unset: the address of each provider."""
    judge_api_key: SecretStr | None = None
    """API key for the judge models. Unset: the variable of the provider, as litellm reads it (`GEMINI_API_KEY`).
    Never printed."""
    judge_tag_key: Annotated[SecretStr, Field(min_length=16)] | None = None
    """Secret key of the tag that delimits the text of agents in the prompts of judges, 16 characters or more. Unset: the
    API key if it has 20 characters or more; else a key that each process draws. With the same key in all workers, the
    cache of a provider serves the prompts of all. Never printed."""
    judge_cache: Path = Path("var/judge/verdicts.sqlite3")
    """File in which `traceweir score` and `eval`, `evaluate_files` and pytest keep the verdicts of judges and the
    spending of the day. A worker keeps both in its state."""
    embedder: Annotated[str, Field(min_length=1)] = "auto"
    """`auto` (the default model if it is installed, else none), `none`, `hashing` (lexical, no model), the name or
    path of a sentence-transformers model, or a folder that `traceweir embedder` has made."""

    @property
    def sessions_in_window(self) -> int:
        """Maximum number of sessions of one partition that are read and not finished.

        A partition needs as many as are scored at the same time, and the next ones at hand; sessions that wait for an
        earlier revision of their own id take room too. More would only wait in memory: they leave the caches of the
        processor before they are scored.
        """
        return self.score_window or max(200, 3 * self.score_concurrency)

    @property
    def kafka_uses_tokens(self) -> bool:
        """Whether Kafka's clients log in by token."""
        return self.kafka_security_protocol.startswith("SASL_") and self.kafka_sasl_mechanism == "OAUTHBEARER"

    @property
    def log_options(self) -> LogOptions:
        """What the process logs, and how."""
        return LogOptions(self.log_level, self.log_format)

    @property
    def topics(self) -> Topics:
        """The names of all topics."""
        return Topics.of(self.topic_prefix, self.otlp_spans_topic, self.otlp_logs_topic)

    @field_validator("*")
    @classmethod
    def _is_not_too_long(cls, value: object) -> object:
        """Refuses a long value where it is named: the system calls that get it name neither the variable nor a limit."""
        if isinstance(value, SecretStr):
            text = value.get_secret_value()
            limit = MAX_SECRET_CHARACTERS
        else:
            text = str(value)
            limit = MAX_VALUE_CHARACTERS
        if len(text) > limit:
            raise ValueError(
                f"the value (not shown) has {len(text)} characters, and at most {limit} are allowed; "
                "shorten the value, or unset the variable"
            )
        return value

    @field_validator("otlp_token", "dashboard_token")
    @classmethod
    def _is_safe_in_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not _TOKEN.fullmatch(token.get_secret_value()):
            raise ValueError(
                "the value (not shown) must be 16 characters or more, in ASCII and without spaces; for example the output "
                "of `openssl rand -hex 32`"
            )
        return token

    @field_validator("webhook_url")
    @classmethod
    def _is_an_http_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not _is_http_url(url.get_secret_value()):
            raise ValueError("the value (not shown) is no address; for example https://receiver.example/traceweir")
        return url

    @field_validator("webhook_secret")
    @classmethod
    def _is_one_secret_or_two(cls, secrets: SecretStr | None) -> SecretStr | None:
        if secrets is not None:
            found = secrets.get_secret_value().split(" ")
            if len(found) > 2 or not all(map(_is_webhook_secret, found)):
                raise ValueError(
                    "the value (not shown) must be one secret, or two with a space between: each from 24 to 64 bytes in "
                    "base64; for example the output of `openssl rand -base64 32`"
                )
        return secrets

    @field_validator("kafka_bootstrap_servers")
    @classmethod
    def _name_hosts_and_ports(cls, servers: str) -> str:
        if "@" in servers:
            raise ValueError(
                "the value (not shown) contains @, and cannot contain a user or a password: write host:port only, and set "
                f"{_env('kafka_sasl_username')}, {_env('kafka_sasl_password')} and {_env('kafka_security_protocol')}=SASL_SSL"
            )
        for server in servers.split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
                raise ValueError(f"{printable(server.strip(), 100)!r} is not host:port; for example 127.0.0.1:9092")
        return servers

    @model_validator(mode="after")
    def _agree_with_each_other(self) -> Settings:
        protocol = f"{_env('kafka_security_protocol')}={self.kafka_security_protocol}"
        tls_files = (self.kafka_ssl_cafile, self.kafka_ssl_certfile, self.kafka_ssl_keyfile)
        tls = self.kafka_security_protocol.endswith("SSL")
        problems = self._login_problems(protocol)
        if not tls and tls_files != (None, None, None):
            problems.append(
                f"TLS files are not used with {protocol}; set the protocol to SSL or SASL_SSL, or unset the files"
            )
        if (self.kafka_ssl_certfile is None) != (self.kafka_ssl_keyfile is None):
            problems.append(
                f"{_env('kafka_ssl_certfile')} and {_env('kafka_ssl_keyfile')} go together; one is missing, set both or none"
            )
        if self.user_ids == "plain" and self.user_id_key is not None:
            problems.append(
                f"{_env('user_id_key')} is not used with {_env('user_ids')}=plain; unset the key, or set the ids to hashed"
            )
        if self.heartbeat_interval_s * 2 > self.session_timeout_s:
            problems.append(
                f"{_env('heartbeat_interval_s')}={self.heartbeat_interval_s:g} is more than half of "
                f"{_env('session_timeout_s')}={self.session_timeout_s:g}: one lost heartbeat would lose the partitions"
            )
        if self.checkpoint_interval_s * 16 > self.stuck_after_s:
            problems.append(
                f"{_env('stuck_after_s')}={self.stuck_after_s:g} is less than sixteen times {_env('checkpoint_interval_s')}="
                f"{self.checkpoint_interval_s:g}: a worker that is far behind makes checkpoints up to eight times as far apart, "
                "and would count as stuck"
            )
        if self.transaction_timeout_s >= self.stuck_after_s:
            problems.append(
                f"{_env('transaction_timeout_s')}={self.transaction_timeout_s:g} is not less than {_env('stuck_after_s')}="
                f"{self.stuck_after_s:g}: a worker would count as stuck before Kafka aborts its transaction"
            )
        if self.grace_s > self.guard_s:
            problems.append(
                f"{_env('grace_s')}={self.grace_s:g} is more than {_env('guard_s')}={self.guard_s:g}: a session can be reopened "
                "only while the worker remembers it"
            )
        if self.otlp_max_request_bytes > self.otlp_max_in_flight_bytes:
            problems.append(
                f"{_env('otlp_max_request_bytes')}={self.otlp_max_request_bytes} is more than "
                f"{_env('otlp_max_in_flight_bytes')}={self.otlp_max_in_flight_bytes}: the largest request would never fit"
            )
        if self.store_results_days > self.store_figures_days:
            problems.append(
                f"{_env('store_results_days')}={self.store_results_days} is more than {_env('store_figures_days')}="
                f"{self.store_figures_days}: figures are kept at least as long as the results that they add up; raise the second"
            )
        problems += self._shared_topics()
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _login_problems(self, protocol: str) -> list[str]:
        """Returns a sentence for each setting that the login by SASL lacks or does not use."""
        user = _env("kafka_sasl_username")
        password = _env("kafka_sasl_password")
        credentials = (self.kafka_sasl_username, self.kafka_sasl_password)
        sasl = self.kafka_security_protocol.startswith("SASL_")
        problems = []
        if self.kafka_uses_tokens:
            if credentials != (None, None):
                problems.append(
                    f"{user} and {password} are not used with {_env('kafka_sasl_mechanism')}=OAUTHBEARER; unset both, or set "
                    "another mechanism"
                )
        elif sasl and None in credentials:
            problems.append(f"{protocol} requires both {user} and {password}; set both")
        elif not sasl and credentials != (None, None):
            problems.append(
                f"{user} and {password} are not used with {protocol}; set the protocol to SASL_SSL, or unset both"
            )
        return problems + self._token_problems()

    def _token_problems(self) -> list[str]:
        secrets = ("kafka_oauth_client_secret", "kafka_oauth_client_secret_file")
        required = ("kafka_oauth_token_endpoint", "kafka_oauth_client_id")
        found = [name for name in (*required, *secrets, "kafka_oauth_scope") if getattr(self, name) is not None]
        provider = _env("kafka_oauth_provider")
        if not self.kafka_uses_tokens:
            if self.kafka_oauth_provider != CLIENT_CREDENTIALS:
                found.append("kafka_oauth_provider")
            return [
                f"{_env(name)} is used only with a SASL protocol and {_env('kafka_sasl_mechanism')}=OAUTHBEARER; set both, or "
                "unset it"
                for name in found
            ]
        if self.kafka_oauth_provider != CLIENT_CREDENTIALS:
            return [
                f"{_env(name)} is not used with {provider}={self.kafka_oauth_provider}; unset it, or set the provider to "
                f"{CLIENT_CREDENTIALS}"
                for name in found
            ]
        missing = [
            f"{provider}={CLIENT_CREDENTIALS} requires {_env(name)}; set it, or name another provider"
            for name in required
            if name not in found
        ]
        if len([name for name in secrets if name in found]) != 1:
            missing.append(
                f"{provider}={CLIENT_CREDENTIALS} requires either {_env(secrets[0])} or {_env(secrets[1])}; set one"
            )
        return missing

    def _shared_topics(self) -> list[str]:
        """Returns a sentence for each topic that has two tasks: its records would be read in two ways."""
        named_by = {"otlp_spans": _env("otlp_spans_topic"), "otlp_logs": _env("otlp_logs_topic")}
        tasks: dict[str, list[str]] = {}
        for task, topic in asdict(self.topics).items():
            tasks.setdefault(topic, []).append(named_by.get(task, f"{_env('topic_prefix')} for {task}"))
        return [
            f"topic {topic!r} has two tasks, {' and '.join(f'that of {each}' for each in found)}; give each its own topic"
            for topic, found in tasks.items()
            if len(found) > 1
        ]


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        # A port out of range, or half an IPv6 address.
        return False


def _is_webhook_secret(text: str) -> bool:
    try:
        return len(base64.b64decode(text.removeprefix("whsec_"), validate=True)) in _WEBHOOK_SECRET_BYTES
    except ValueError:
        return False


def load_settings(found: Mapping[str, str] | None = None) -> Settings:
    """Returns the settings that the environment holds.

    Args:
        found: Values of variables, by name, for those that the environment does not have.

    Raises:
        InvalidSettingsError: a variable is out of its range or contradicts another variable.
    """
    given = {name.upper() for name in os.environ}
    missing = {_env(field): field for field in Settings.model_fields if _env(field) not in given}
    try:
        return Settings(**{missing[name]: value for name, value in (found or {}).items() if name in missing})  # type: ignore[arg-type]
    except ValidationError as error:
        problems = []
        for each in error.errors(include_url=False, include_input=False):
            message = each["msg"].removeprefix("Value error, ")
            problems.append(f"{_env(str(each['loc'][0]))}: {message}" if each["loc"] else message)
        # The cause can quote a secret.
        raise InvalidSettingsError("\n".join(problems)) from None


def _env(field: str) -> str:
    return ENV_PREFIX + field.upper()
