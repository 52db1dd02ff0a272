"""`traceweir alerts`: tries rules of alerts on stored scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.common_options import AsJson
from traceweir.streams.cli.times import time_option

alerts_app = CommandApp(help="See which drops of scores a rule finds, before it wakes anybody.", no_args_is_help=True)


@alerts_app.callback()
def group() -> None:
    """See which drops of scores a rule finds, before it wakes anybody."""


@alerts_app.command("test")
def try_rule(
    rule: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RULE]",
            help="A file with a rule. Without one: any pass rate drops by 0.02, with one false alarm in 60 days.",
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FILE",
            help="Scores, as `traceweir results --all-revisions --json` prints them.",
            show_default="the topic of results",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Only scores since then, such as 30d.", show_default="all"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a rule over stored scores, and print what it would have said: since when, how much, and who is suspected.

    Sends nothing. Each stream learns what is usual from its first 7 days, so give it a month. Exit code 1: no score can be
    used, or a line of the file cannot. Exit code 2: a file or the rule cannot be used.

    Example: `traceweir alerts test --from 30d`
    """
    from traceweir.streams.cli.alerts_output import run_test

    raise typer.Exit(run_test(results, rule, time_option(since, "--from"), as_json=as_json))
