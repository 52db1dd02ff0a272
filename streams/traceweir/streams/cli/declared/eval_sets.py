"""Declares `traceweir eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.common_options import Config
from traceweir.streams.cli.input_options import check_format


def evaluate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="EVALSET...",
            help="Eval sets or test files, `FILE:case1,case2` for selected cases, or folders of `*.test.json`.",
            show_default=False,
        ),
    ],
    sessions: Annotated[
        list[str] | None,
        typer.Option(
            "--sessions",
            metavar="FILE",
            help="Recorded sessions, by eval id; each further file is a further run. "
            "[default: `<name>.sessions.json` beside each file]",
            show_default=False,
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            callback=check_format,
            help="Input format of the files of `--sessions`; spans need `otlp`, and then all files are one run. "
            "[default: recognized]",
            show_default=False,
        ),
    ] = None,
    from_kafka: Annotated[
        bool, typer.Option("--from-kafka", help="Read the sessions from the sessions topic, by session id.")
    ] = False,
    match: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CASE=SESSION",
            help="Eval id of a case, and the session id under which it was recorded. Can be repeated.",
        ),
    ] = None,
    config: Config = None,
    num_runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of recorded runs that each case needs; their values are pooled. [default: all]",
            show_default=False,
        ),
    ] = None,
    print_detailed_results: Annotated[
        bool,
        typer.Option("--print-detailed-results", help="Print the expected and the actual invocations."),
    ] = False,
    print_detailed_results_as_adk: Annotated[bool, typer.Option("--print_detailed_results", hidden=True)] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the results as JUnit XML.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one case per line, as JSON.")] = False,
) -> None:
    """Score recorded sessions against eval sets, as `adk eval` does, but without running the agent.

    Without `--config`, the criteria come from `test_config.json`, found as ADK finds it, else from ADK's defaults;
    stderr names the source. Exit code 0: every case is PASSED. 1: a threshold was missed, a case could not be scored, a
    judged criterion has no verdict in any case, or there is no case. 2: a file, config or option cannot be used.

    Example: `traceweir eval trips.evalset.json:rebooking --sessions recorded.jsonl --print-detailed-results`
    """
    from traceweir.streams.cli.eval import eval_files, parsed_matches

    if sessions and from_kafka:
        raise typer.BadParameter(
            "--sessions and --from-kafka exclude each other; remove one of them", param_hint="--from-kafka"
        )
    if format is not None and not sessions:
        raise typer.BadParameter("needs --sessions", param_hint="--format")
    try:
        matches = parsed_matches(match or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--match") from None
    if matches and not (sessions or from_kafka):
        raise typer.BadParameter("needs --sessions or --from-kafka", param_hint="--match")
    result = eval_files(
        files,
        sessions=sessions or (),
        from_kafka=from_kafka,
        format_name=format,
        matches=matches,
        config=config,
        junit=junit,
        num_runs=num_runs,
        # `adk eval` spells it with underscores.
        detailed=print_detailed_results or print_detailed_results_as_adk,
        as_json=as_json,
    )
    raise typer.Exit(result)
