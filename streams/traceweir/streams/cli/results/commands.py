"""`traceweir results`: shows and exports the scores on the topic `results`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.config.options import name_option
from traceweir.streams.cli.record_options import SHOWN, Metrics, Where, latest, since, where_option
from traceweir.streams.cli.times import time_option

if TYPE_CHECKING:
    from traceweir.streams.tools.results.reader import ScoreFilter

results_app = CommandApp(invoke_without_command=True)

SessionId = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="Only scores of this session; reads one partition."),
]
Failed = Annotated[
    bool,
    typer.Option(
        "--failed",
        help="Only scores that missed their threshold; with `--metric gate`, rejected traces.",
    ),
]
NotEvaluated = Annotated[bool, typer.Option("--not-evaluated", help="Only scores without a value.")]
Since = Annotated[str | None, since("scores")]
AllRevisions = Annotated[
    bool,
    typer.Option("--all-revisions", help="Also scores that a later revision or attempt has replaced."),
]


@results_app.callback()
def results(
    ctx: typer.Context,
    session: SessionId = None,
    metric: Metrics = None,
    where: Where = None,
    failed: Failed = False,
    not_evaluated: NotEvaluated = False,
    since: Since = None,
    all_revisions: AllRevisions = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Then print new scores as they are written, until Ctrl-C.")
    ] = False,
    limit: Annotated[int | None, latest(0)] = None,
    shadow: Annotated[
        str | None,
        typer.Option("--shadow", metavar="NAME", help="The scores of this shadow or challenger.", show_default=False),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one Score per line, as JSON on the topic, for programs.")
    ] = False,
) -> None:
    """Show the latest scores, the newest last; `traceweir results export` writes them to a file.

    Of each result only the latest revision and attempt is shown. Times are in UTC; a time without an offset is read as
    UTC. Exit code 1: Kafka or the topic cannot be read. 130: Ctrl-C ended `--follow`.

    Example: `traceweir results --metric response_match_score --failed --since 2h --follow`
    """
    given = (
        any((session, metric, where, failed, not_evaluated, since, all_revisions, follow, shadow, as_json))
        or limit is not None
    )
    if ctx.invoked_subcommand is not None:
        if given:
            raise typer.BadParameter(f"write the options after `{ctx.invoked_subcommand}`: they belong to this command")
        return
    wanted = _wanted(
        session, metric, where, since, failed=failed, not_evaluated=not_evaluated, all_revisions=all_revisions
    )
    from traceweir.streams.cli.results.output import show_results
    from traceweir.streams.cli.up_broker import kafka_settings

    limit = SHOWN if limit is None and not as_json else limit
    settings = kafka_settings()
    topic = None if shadow is None else settings.topics.shadow_results(name_option(shadow, "--shadow"))
    show_results(settings, wanted, topic=topic, limit=limit, follow=follow, as_json=as_json)


@results_app.command()
def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="`FILE.csv`, or `FILE.parquet` (needs pyarrow).", show_default=False)
    ],
    session: SessionId = None,
    metric: Metrics = None,
    where: Where = None,
    failed: Failed = False,
    not_evaluated: NotEvaluated = False,
    since: Since = None,
    all_revisions: AllRevisions = False,
) -> None:
    """Write scores to a CSV or Parquet file, one row per score, in the order of their partitions.

    The file appears when it is complete, and replaces a former file. In CSV, a text that a spreadsheet would run as a
    formula starts with an apostrophe. Exit code 1: Kafka or the topic cannot be read. 2: the file cannot be written.

    Example: `traceweir results export scores.parquet --since 7d`
    """
    from traceweir.streams.tools.results.table import SUFFIXES

    if file.suffix not in SUFFIXES:
        raise typer.BadParameter(f"{str(file)!r}: the name must end in {' or '.join(SUFFIXES)}", param_hint="FILE")
    wanted = _wanted(
        session, metric, where, since, failed=failed, not_evaluated=not_evaluated, all_revisions=all_revisions
    )
    from traceweir.streams.cli.results.output import export_results
    from traceweir.streams.cli.up_broker import kafka_settings

    export_results(kafka_settings(), wanted, file)


def _wanted(
    session: str | None,
    metrics: list[str] | None,
    where: list[str] | None,
    since: str | None,
    *,
    failed: bool,
    not_evaluated: bool,
    all_revisions: bool,
) -> ScoreFilter:
    since_ms = time_option(since, "--since")
    from traceweir.scorers.databricks_names import full_name
    from traceweir.streams.tools.results.reader import ScoreFilter

    statuses = {"FAILED": failed, "NOT_EVALUATED": not_evaluated}
    return ScoreFilter(
        session_id=session,
        metrics=frozenset(map(full_name, metrics or ())),
        dimensions=where_option(where),
        statuses=frozenset(name for name, chosen in statuses.items() if chosen),
        since_ms=since_ms,
        all_revisions=all_revisions,
    )
