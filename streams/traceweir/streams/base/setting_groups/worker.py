"""Defines the settings of topics, the consumer group, delivery, state, log and health."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from traceweir.streams.base.process_log import LogFormat, LogLevel, LogOptions
from traceweir.streams.base.setting_groups.group import Seconds, SettingGroup
from traceweir.streams.base.topics import DEFAULT_PREFIX

Delivery = Literal["auto", "exactly_once", "at_least_once"]

TRANSACTION_TIMEOUT_S = 60.0
"""Seconds after which Kafka aborts an open transaction, where the environment does not say."""


class WorkerSettings(SettingGroup):
    """Holds where a worker reads and writes, how it shares partitions with others, and how it says what it does."""

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

    @property
    def log_options(self) -> LogOptions:
        """What the process logs, and how."""
        return LogOptions(self.log_level, self.log_format)
