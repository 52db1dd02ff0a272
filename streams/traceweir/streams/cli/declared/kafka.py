"""Declares the commands that run on Kafka: `traceweir worker`, `otlp`, `dashboard`, `broker`, `emit`, `size` and `topics`."""

from __future__ import annotations

from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.common_options import DEFAULT_STAGES, AsJson, Config, Stages, chosen_stages
from traceweir.streams.cli.input_options import DEFAULT_FORMAT, FormatName, Inputs, TaskDomain

topics_app = CommandApp(help="Create and check the topics on a cluster.", no_args_is_help=True)


def worker(stages: Stages = DEFAULT_STAGES, config: Config = None) -> None:
    """Assemble, score and gate incoming records until SIGTERM or Ctrl-C.

    The worker logs its criteria at start; without `--config`, the default criteria are on. The environment
    (`TRACEWEIR_*`) sets the address of Kafka and every limit. Exit code 1: Kafka or a topic is unsuitable, or the
    worker failed. 2: options, config or environment cannot be used.

    Example: `TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS=kafka:9092 traceweir worker --stages assemble,score --config eval.json`
    """
    from traceweir.streams.cli.worker import run

    raise typer.Exit(run(chosen_stages(stages), config))


def otlp(as_json: AsJson = False) -> None:
    """Receive OpenTelemetry spans and log records over OTLP, and write them to Kafka, until SIGTERM or Ctrl-C.

    For agents without an OpenTelemetry Collector. A request is acknowledged when Kafka has acknowledged it. The
    environment (`TRACEWEIR_OTLP_*`) sets addresses, token and limits. Exit code 1: Kafka, a topic or a port is unsuitable.
    2: the environment cannot be used.

    Example: `traceweir otlp`; then start agents with `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318`
    """
    from traceweir.streams.cli.otlp import run_otlp

    run_otlp(as_json=as_json)


def dashboard(as_json: AsJson = False) -> None:
    """Store scores, sessions and dead letters in a database, and serve them as web pages and JSON, until Ctrl-C.

    The database is a DuckDB file, or ClickHouse (`TRACEWEIR_STORE`). Each record is stored exactly once, through any restart. The
    environment (`TRACEWEIR_DASHBOARD_*`) sets address and token. Exit code 1: the store or the port cannot be used. 2: the
    environment cannot be used.

    Example: `traceweir dashboard`; then open http://127.0.0.1:4180
    """
    from traceweir.streams.cli.dashboard import run

    run(as_json=as_json)


def broker(as_json: AsJson = False) -> None:
    """Run the embedded broker with all topics until Ctrl-C; for trials only, because it stores nothing on disk.

    The broker keeps its records in memory, about 5 MB per partition, then drops the oldest; it has no transactions.

    Example: `traceweir broker`; in a second terminal run the `export` line that it prints, then `traceweir worker`
    """
    from traceweir.streams.cli.broker import run_broker

    run_broker(as_json=as_json)


def emit(files: Inputs, format: FormatName = DEFAULT_FORMAT, task_domain: TaskDomain = "general") -> None:  # noqa: A002
    """Send recorded traces, events, evaluation rows, MLflow traces or chat transcripts to Kafka, as agents would have sent them.

    A file can be sent twice: workers drop duplicates. Exit code 1: a document was not sent (stderr names the document
    and the reason), or Kafka did not accept it. 2: the file, options or environment cannot be used.

    Example: `traceweir emit chats.json --format openai-chat --task-domain travel`
    """
    from traceweir.streams.cli.emit import emit_files

    raise typer.Exit(emit_files(files, format, task_domain))


@topics_app.command()
def create(stages: Stages = DEFAULT_STAGES, as_json: AsJson = False) -> None:
    """Create missing topics with the right partition count and options; existing topics stay unchanged.

    Exit code 1: an existing topic is misconfigured, or a topic could not be created.

    Example: `TRACEWEIR_PARTITIONS=12 TRACEWEIR_REPLICATION_FACTOR=3 traceweir topics create`
    """
    from traceweir.streams.cli.topics import create_and_report

    raise typer.Exit(create_and_report(chosen_stages(stages), as_json=as_json))


@topics_app.command()
def check(stages: Stages = DEFAULT_STAGES, as_json: AsJson = False) -> None:
    """Report topics that are missing or misconfigured, or do not fit the stored offsets, and what to do.

    Exit code 1: no worker can start. These are warnings: weak replication, short retention, and an input that a worker
    will not continue at its stored offset.

    Example: `traceweir topics check --stages score`
    """
    from traceweir.streams.cli.topics import check_and_report

    raise typer.Exit(check_and_report(chosen_stages(stages), as_json=as_json))


def size(
    sessions_per_day: Annotated[
        float, typer.Option(min=1, max=1e10, metavar="NUMBER", help="Sessions in a day, for example 1e6.")
    ],
    config: Config = None,
    records: Annotated[int, typer.Option(min=1, max=1_000, help="Events and traces of a session.")] = 11,
    record_bytes: Annotated[int, typer.Option(min=1, max=800_000, help="Bytes of a record's value.")] = 355,
    turns: Annotated[int, typer.Option(min=1, max=500, help="Invocations of a session.")] = 1,
    traces: Annotated[int, typer.Option(min=0, max=500, help="Reasoning traces of a session.")] = 1,
    spans: Annotated[int, typer.Option(min=0, max=10_000, help="Spans of a session, if agents send them.")] = 0,
    open_seconds: Annotated[
        float, typer.Option(min=0, max=1e6, help="Seconds from the first record of a session to its close.")
    ] = 60,
    peak: Annotated[float, typer.Option(min=1, max=1_000, help="The busiest time beside the mean of a day.")] = 3,
    replication: Annotated[int, typer.Option(min=1, max=10, help="Copies of each partition in Kafka.")] = 3,
    dimensions: Annotated[int, typer.Option(min=0, max=4_096, help="Dimensions of a vector; 0: no embedder.")] = 384,
    embedding_ms: Annotated[
        float, typer.Option(min=0, max=10_000, help="CPU of the embedder for a trace, in milliseconds.")
    ] = 0,
    scopes: Annotated[int, typer.Option(min=0, max=1_000_000, help="Novelty scopes that are full.")] = 10,
    passes_on: Annotated[
        float, typer.Option(min=0, max=1, help="Share of sessions in which the condition of a `when` holds.")
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Compute what a load needs: workers, cores, memory, disks, bytes in Kafka, and what judges are asked and cost.

    Uses figures that were measured on one machine, and prints what it assumes. Asks no model and no broker. The environment
    (`TRACEWEIR_*`) sets the times and limits that count. Exit code 2: options, config or environment cannot be used.

    Example: `traceweir size --sessions-per-day 1e6 --config eval.json`
    """
    from traceweir.streams.cli.size import run
    from traceweir.streams.lab.sizing.load import SessionLoad

    run(
        SessionLoad(
            sessions_per_day,
            records=records,
            record_bytes=record_bytes,
            turns=turns,
            traces=traces,
            spans=spans,
            open_s=open_seconds,
            peak=peak,
            replication=replication,
            dimensions=dimensions,
            embedding_ms=embedding_ms,
            scopes=scopes,
            passes_on=passes_on,
        ),
        config,
        as_json=as_json,
    )
