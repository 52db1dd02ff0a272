"""Opens the targets of `traceweir export`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from traceweir.streams.clock import utc_now
from traceweir.streams.export.http_post import HttpPost
from traceweir.streams.export.otlp_environment import Signal, read_otlp_environment
from traceweir.streams.export.otlp_target import OtlpTarget
from traceweir.streams.export.problems import Problems
from traceweir.streams.export.run import default_group, run_export
from traceweir.streams.settings import load_settings


def export_otlp(signal: Signal, *, group: str | None, only_new: bool) -> None:
    """Sends scores to an OpenTelemetry backend until SIGTERM or Ctrl-C.

    Raises:
        InvalidSettingsError: the environment cannot be used.
        KafkaUnreachableError: no broker answers.
        ExportError: the topic is missing or wrong, or the backend does not fit.
    """
    settings, environment = load_settings(), read_otlp_environment(os.environ, signal)

    @asynccontextmanager
    async def target(problems: Problems) -> AsyncIterator[OtlpTarget]:
        async with HttpPost(environment.url, timeout_s=environment.timeout_s, tls=environment.tls) as post:
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
    run_export(settings, target, group=group or name, only_new=only_new)
