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
    """Prefix of every topic name: letters, digits, `.`, `_`, `-`, at most 200, ending in `.`, `_` or `-`; can be
    empty. Use one per tenant."""
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Partitions of every topic, 1 to 10,000; also the most workers per stage. [Fixed for the life of the
    topics](operations.md#number-of-partitions). An embedded broker always has 4."""
    replication_factor: Annotated[int, Field(ge=1, le=100)] = 1
    """Copies of each partition of created topics, at most the number of brokers. Use 3 in production: with 1, a lost
    disk loses records."""
    session_timeout_s: Annotated[float, Field(gt=0, le=1800)] = 10.0
    """Seconds without a heartbeat after which a worker's partitions go to others. Brokers accept 6 to 1,800 by
    default."""
    heartbeat_interval_s: Seconds = 1.0
    """Seconds between heartbeats, at most half of the session timeout. A worker learns with the next one that another
    has joined or left."""
    group_instance_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")] | None = None
    """Name of this worker across restarts (static membership), such as that of its pod; unique. A restart with the
    same state directory within the session timeout moves no partition. A second worker with the name waits for that
    time, and ends."""

    delivery: Delivery = "auto"
    """`exactly_once`: a checkpoint is a Kafka transaction. `at_least_once`: plain commits. `auto`: exactly once, on an
    embedded broker plain commits."""
    state_dir: Path = Path("var/state")
    """Directory of the local copy of the state, created if missing; one for each worker process. A lost one is rebuilt
    from the changelog."""
    checkpoint_interval_s: Annotated[float, Field(gt=0, le=10)] = 0.02
    """Average seconds between the starts of two checkpoints, up to 10, while results wait. Shorter: fresher results
    under load, more transactions."""

    transaction_timeout_s: Annotated[float, Field(ge=1, le=3600)] = TRANSACTION_TIMEOUT_S
    """Seconds, 1 to 3,600, after which Kafka aborts an open transaction; at most the brokers'
    `transaction.max.timeout.ms`, less than `TRACEWEIR_STUCK_AFTER_S`. Transactions aim at a quarter of it. After a
    worker ends without a successor, readers of committed records wait up to this time."""

    log_level: LogLevel = "info"
    """Lowest level that a worker logs: `debug`, `info`, `warning` or `error` ([the log](telemetry.md#the-log))."""
    log_format: LogFormat = "text"
    """`text` for people, or `json`, an object a line, as in the container image."""

    web_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address of `/healthz`, `/readyz` and `/metrics` of a worker, and of what `--port` of `traceweir export` and
    `canary` serves. Its clients learn health and numbers. Use `0.0.0.0` in a container."""
    web_port: Annotated[int, Field(ge=0, le=65_535)] = 6066
    """Their port for a worker; each worker of a machine needs its own. 0: any free port, which the log names."""
    stuck_after_s: Annotated[float, Field(ge=10, allow_inf_nan=False)] = 120.0
    """Seconds, 10 or more, without progress of a checkpoint, a fetch, joining or catching up, while Kafka answers. The
    worker then exits for its supervisor."""

    @property
    def log_options(self) -> LogOptions:
        """What the process logs, and how."""
        return LogOptions(self.log_level, self.log_format)
