"""`traceweir export`: sends scores and decisions to other systems."""

from __future__ import annotations

from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp

export_app = CommandApp(
    help="Send scores, decisions and alerts to other systems: an OpenTelemetry backend, or a webhook.",
    no_args_is_help=True,
)

Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="NAME",
        help="Consumer group, which keeps what was sent. [default: PREFIX, then export- and the command's name; of alerts "
        "export-webhook-alerts]",
        show_default=False,
    ),
]
OnlyNew = Annotated[
    bool, typer.Option("--only-new", help="At the first start of a group, leave out what is on the topic already.")
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65_535,
        help="Serve /healthz, /readyz and /metrics on this port.",
        show_default="nothing is served",
    ),
]


@export_app.callback()
def export() -> None:
    """Reads no option of its own."""


@export_app.command()
def otlp(
    signal: Annotated[
        str,
        typer.Option(metavar="<logs|traces>", help="`logs`: an event for each score. `traces`: a span for each score."),
    ] = "logs",
    group: Group = None,
    only_new: OnlyNew = False,
    port: Port = None,
) -> None:
    """Send every score to an OpenTelemetry backend, beside the agent's span, until SIGTERM or Ctrl-C.

    The variables `OTEL_EXPORTER_OTLP_*` name the backend, as for every OpenTelemetry exporter. An event is
    `gen_ai.evaluation.result`; take spans for a backend without logs, such as Jaeger, Tempo, Langfuse or Phoenix. Each score
    arrives at least once, with the same ids. `TRACEWEIR_EXPORT_CONTENT` decides about texts. Exit code 1: Kafka or the topic
    cannot be read, or the backend refuses everything. 2: options or environment cannot be used.

    Example: `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 traceweir export otlp --signal traces`
    """
    if signal not in {"logs", "traces"}:
        raise typer.BadParameter(f"{signal!r:.80} is no signal; choose from logs, traces", param_hint="--signal")
    from traceweir.streams.cli.export.targets import export_otlp

    export_otlp("logs" if signal == "logs" else "traces", group=checked_group(group), only_new=only_new, port=port)


@export_app.command()
def webhook(
    events: Annotated[
        list[str],
        typer.Option(
            "--event",
            metavar="<decision|failed|passed|informational|not_evaluated|alert_raised|alert_resolved>",
            help="What is sent: decisions of the gate, and scores by their status; or alerts, by a command of their own. "
            "Several are allowed.",
        ),
    ] = ["decision", "failed"],  # noqa: B006  # typer copies it
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAME", help="Send this metric only. Several are allowed.")
    ] = None,
    group: Group = None,
    only_new: OnlyNew = False,
    port: Port = None,
) -> None:
    """Post decisions of the gate and failed scores, or alerts, to a webhook, until SIGTERM or Ctrl-C.

    `TRACEWEIR_WEBHOOK_URL` names the receiver, and `TRACEWEIR_WEBHOOK_SECRET` signs each event, as Standard Webhooks has
    it. Each event arrives at least once, with the same id, and in the order of its session or alert. One that the receiver does not
    take is sent again for three days (`TRACEWEIR_EXPORT_GIVE_UP_AFTER_S`), and is then a dead letter, which `traceweir dlq
    replay --stage export` sends again. `TRACEWEIR_EXPORT_CONTENT` decides about texts. Exit code 1: Kafka or a topic cannot
    be used, or the receiver refuses everything, or this command (401, 403, 404, 410). 2: options or environment cannot be
    used.

    Example: `traceweir export webhook --event failed --metric hallucinations_v1`
    """
    from traceweir.streams.cli.export.targets import export_webhook, read_event_types

    try:
        chosen = read_event_types(events)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--event") from None
    export_webhook(chosen, metrics or [], group=checked_group(group), only_new=only_new, port=port)


def checked_group(group: str | None) -> str | None:
    """Returns the name of a consumer group.

    Raises:
        typer.BadParameter: Kafka, or a line of the log, could not take the name.
    """
    if group is not None and not (0 < len(group) <= 249 and group.isascii() and group.isprintable()):
        raise typer.BadParameter("a name of a group has from 1 to 249 printable ASCII characters", param_hint="--group")
    return group
