"""Reads the settings of a Traceweir process from the environment (`TRACEWEIR_*`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict

from pydantic import ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.setting_groups.dashboard import DashboardSettings
from traceweir.streams.base.setting_groups.export import ExportSettings
from traceweir.streams.base.setting_groups.group import ENV_PREFIX, env
from traceweir.streams.base.setting_groups.kafka import KafkaSettings
from traceweir.streams.base.setting_groups.otlp import OtlpSettings
from traceweir.streams.base.setting_groups.scoring import ScoringSettings
from traceweir.streams.base.setting_groups.sessions import SessionSettings
from traceweir.streams.base.setting_groups.worker import WorkerSettings
from traceweir.streams.base.topics import Topics


class Settings(
    # pydantic takes the fields of the last base first: this is the order of the list in docs/configuration.md, reversed.
    ScoringSettings,
    ExportSettings,
    DashboardSettings,
    OtlpSettings,
    SessionSettings,
    WorkerSettings,
    KafkaSettings,
    BaseSettings,
):
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

    @property
    def topics(self) -> Topics:
        """The names of all topics."""
        return Topics.of(self.topic_prefix, self.otlp_spans_topic, self.otlp_logs_topic)

    @model_validator(mode="after")
    def _agree_with_each_other(self) -> Settings:
        problems = self.kafka_problems()
        if self.user_ids == "plain" and self.user_id_key is not None:
            problems.append(
                f"{env('user_id_key')} is not used with {env('user_ids')}=plain; unset the key, or set the ids to hashed"
            )
        if self.heartbeat_interval_s * 2 > self.session_timeout_s:
            problems.append(
                f"{env('heartbeat_interval_s')}={self.heartbeat_interval_s:g} is more than half of "
                f"{env('session_timeout_s')}={self.session_timeout_s:g}: one lost heartbeat would lose the partitions"
            )
        if self.checkpoint_interval_s * 16 > self.stuck_after_s:
            problems.append(
                f"{env('stuck_after_s')}={self.stuck_after_s:g} is less than sixteen times {env('checkpoint_interval_s')}="
                f"{self.checkpoint_interval_s:g}: a worker that is far behind makes checkpoints up to eight times as far apart, "
                "and would count as stuck"
            )
        if self.transaction_timeout_s >= self.stuck_after_s:
            problems.append(
                f"{env('transaction_timeout_s')}={self.transaction_timeout_s:g} is not less than {env('stuck_after_s')}="
                f"{self.stuck_after_s:g}: a worker would count as stuck before Kafka aborts its transaction"
            )
        if self.grace_s > self.guard_s:
            problems.append(
                f"{env('grace_s')}={self.grace_s:g} is more than {env('guard_s')}={self.guard_s:g}: a session can be reopened "
                "only while the worker remembers it"
            )
        if self.otlp_max_request_bytes > self.otlp_max_in_flight_bytes:
            problems.append(
                f"{env('otlp_max_request_bytes')}={self.otlp_max_request_bytes} is more than "
                f"{env('otlp_max_in_flight_bytes')}={self.otlp_max_in_flight_bytes}: the largest request would never fit"
            )
        if self.store_results_days > self.store_figures_days:
            problems.append(
                f"{env('store_results_days')}={self.store_results_days} is more than {env('store_figures_days')}="
                f"{self.store_figures_days}: figures are kept at least as long as the results that they add up; raise the second"
            )
        problems += self._shared_topics()
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _shared_topics(self) -> list[str]:
        """Returns a sentence for each topic that has two tasks: its records would be read in two ways."""
        named_by = {"otlp_spans": env("otlp_spans_topic"), "otlp_logs": env("otlp_logs_topic")}
        tasks: dict[str, list[str]] = {}
        for task, topic in asdict(self.topics).items():
            tasks.setdefault(topic, []).append(named_by.get(task, f"{env('topic_prefix')} for {task}"))
        return [
            f"topic {topic!r} has two tasks, {' and '.join(f'that of {each}' for each in found)}; give each its own topic"
            for topic, found in tasks.items()
            if len(found) > 1
        ]


def load_settings(found: Mapping[str, str] | None = None) -> Settings:
    """Returns the settings that the environment holds.

    Args:
        found: Values of variables, by name, for those that the environment does not have.

    Raises:
        InvalidSettingsError: a variable is out of its range or contradicts another variable.
    """
    given = {name.upper() for name in os.environ}
    missing = {env(field): field for field in Settings.model_fields if env(field) not in given}
    try:
        return Settings(**{missing[name]: value for name, value in (found or {}).items() if name in missing})  # type: ignore[arg-type]
    except ValidationError as error:
        problems = []
        for each in error.errors(include_url=False, include_input=False):
            message = each["msg"].removeprefix("Value error, ")
            problems.append(f"{env(str(each['loc'][0]))}: {message}" if each["loc"] else message)
        # The cause can quote a secret.
        raise InvalidSettingsError("\n".join(problems)) from None
