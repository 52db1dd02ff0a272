"""Opens the targets of `traceweir export`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from traceweir.schemas.text import printable
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.export.http_post import HttpPost
from traceweir.streams.tools.export.otlp_environment import Signal, read_otlp_environment
from traceweir.streams.tools.export.otlp_target import OtlpTarget
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.run import default_group, run_export
from traceweir.streams.tools.export.source import ExportSource, Found, alerts_of, scores_of
from traceweir.streams.tools.export.webhook_event import (
    EVENT_TYPES,
    OF_ALERTS,
    EventType,
    WebhookEvent,
    alert_events,
    score_events,
)
from traceweir.streams.tools.export.webhook_target import WebhookTarget


def export_otlp(signal: Signal, *, group: str | None, only_new: bool, port: int | None) -> None:
    """Sends scores to an OpenTelemetry backend until SIGTERM or Ctrl-C.

    Raises:
        InvalidSettingsError: the environment cannot be used.
        PortTakenError: the port cannot be bound.
        KafkaUnreachableError: no broker answers.
        ExportError: the topic is missing or wrong, or the backend does not fit.
    """
    settings = kafka_settings()
    environment = read_otlp_environment(os.environ, signal)

    @asynccontextmanager
    async def target(problems: ProblemLog) -> AsyncIterator[OtlpTarget]:
        async with HttpPost(
            environment.url,
            timeout_s=environment.timeout_s,
            secrets=environment.headers.values(),
            tls=environment.tls,
        ) as post:
            yield OtlpTarget(
                environment,
                signal,
                post,
                content=settings.export_content,
                version=version("traceweir"),
                problems=problems,
                now=utc_now,
            )

    name = default_group(settings.topic_prefix, "otlp" if signal == "logs" else "otlp-traces")
    run_export(settings, scores_of(settings.topics), target, group=group or name, only_new=only_new, port=port)


def read_event_types(names: Sequence[str]) -> frozenset[EventType]:
    """Returns the kinds of events that a webhook gets.

    Raises:
        ValueError: there is no such kind, or the kinds are of two topics.

    >>> sorted(read_event_types(["failed", "decision"]))
    ['decision', 'failed']
    """
    for name in names:
        if name not in EVENT_TYPES:
            raise ValueError(f"{printable(name, 80)!r} is no kind of event; choose from {', '.join(EVENT_TYPES)}")
    if OF_ALERTS.intersection(names) and not OF_ALERTS.issuperset(names):
        raise ValueError("scores and alerts are two topics; run one command for each of them")
    return frozenset(kind for kind in EVENT_TYPES if kind in names)


def export_webhook(
    events: Collection[EventType], metrics: Collection[str], *, group: str | None, only_new: bool, port: int | None
) -> None:
    """Posts decisions and scores, or alerts, to a webhook until SIGTERM or Ctrl-C.

    Raises:
        InvalidSettingsError: the environment cannot be used.
        PortTakenError: the port cannot be bound.
        KafkaUnreachableError: no broker answers.
        ExportError: the topic is missing or wrong, or the receiver refuses everything.
    """
    settings = kafka_settings()
    url = settings.webhook_url
    secrets = settings.webhook_secret
    if url is None or secrets is None:
        missing = "TRACEWEIR_WEBHOOK_URL" if url is None else "TRACEWEIR_WEBHOOK_SECRET"
        raise InvalidSettingsError(
            f"{missing} is not set: a webhook needs the receiver's address, and a secret that signs the events, which "
            "`openssl rand -base64 32` makes"
        )

    content = settings.export_content

    def run(source: ExportSource[Found], event: Callable[[Found], WebhookEvent | None], name: str) -> None:
        @asynccontextmanager
        async def target(problems: ProblemLog) -> AsyncIterator[WebhookTarget[Found]]:
            async with HttpPost(
                url.get_secret_value(), timeout_s=settings.webhook_timeout_s, connections=settings.webhook_connections
            ) as post:
                yield WebhookTarget(
                    post,
                    secrets.get_secret_value().split(" "),
                    event=event,
                    version=version("traceweir"),
                    problems=problems,
                    now=utc_now,
                    connections=settings.webhook_connections,
                )

        group_or_default = group or default_group(settings.topic_prefix, name)
        run_export(settings, source, target, group=group_or_default, only_new=only_new, port=port)

    if OF_ALERTS.issuperset(events):
        run(alerts_of(settings.topics), alert_events(events, metrics, content), "webhook-alerts")
    else:
        run(scores_of(settings.topics), score_events(events, metrics, content), "webhook")
