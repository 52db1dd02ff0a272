"""`traceweir alerts`: watches scores by rules, and tries rules on stored scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.common_options import AsJson
from traceweir.streams.cli.times import time_option

alerts_app = CommandApp(
    help="Be told when scores become worse: since when, how much, and what came at that time.", no_args_is_help=True
)


@alerts_app.callback()
def group() -> None:
    """Reads no option of its own."""


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


@alerts_app.command()
def run(
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            help="Serve /healthz, /readyz and /metrics on this port.",
            show_default="nothing is served",
        ),
    ] = None,
) -> None:
    """Watch the topic of results by the pushed rules, and write alerts to the topic `alerts`, until SIGTERM or Ctrl-C.

    Without a pushed rule: any pass rate drops by 0.02, with one false alarm in 60 days. Begins with the oldest scores, so
    that a week of them is learnt at once. Of several processes one watches, and another takes over; each alert is raised and
    resolved once. Exit code 1: Kafka or a topic cannot be used. 2: options or environment cannot be used.

    Example: `traceweir alerts run --port 6071`
    """
    from traceweir.streams.cli.up_broker import kafka_settings
    from traceweir.streams.tools.alerts.run import run_alerts

    run_alerts(kafka_settings(), port=port)


@alerts_app.command()
def push(
    rules: Annotated[list[Path], typer.Argument(metavar="RULE...", help="Files with a rule each.", show_default=False)],
) -> None:
    """Write rules to the topic `configs`: those who watch use them at once, and a rule that changes begins to learn anew.

    With the first pushed rule the default rule ends. Exit code 1: Kafka or the topic cannot be used. 2: a file or a rule
    cannot be used.

    Example: `traceweir alerts push rule.json`
    """
    from traceweir.streams.cli.alerts_rules import push_rules

    raise typer.Exit(push_rules(rules))


@alerts_app.command()
def withdraw(
    rule: Annotated[str, typer.Argument(metavar="ID", help="The id of a pushed rule.", show_default=False)],
) -> None:
    """End a pushed rule; its raised alerts are resolved.

    Exit code 1: there is no such rule, or Kafka or the topic cannot be used.

    Example: `traceweir alerts withdraw shop-helpful`
    """
    from traceweir.streams.cli.alerts_rules import withdraw_rule

    raise typer.Exit(withdraw_rule(rule))


@alerts_app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """Print the rules with their streams, what each could find in a day, and the alerts that are raised.

    Exit code 1: Kafka or a topic cannot be used.

    Example: `traceweir alerts list`
    """
    from traceweir.streams.cli.alerts_rules import list_rules

    raise typer.Exit(list_rules(as_json=as_json))


@alerts_app.command()
def accept(
    alerts: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="Ids of raised alerts.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Accept all raised alerts.")] = False,
) -> None:
    """Take the changed level of alerts as the new normal: it is learnt from now on, and the alerts are resolved.

    Exit code 1: no such alert is raised, or Kafka or a topic cannot be used. 2: neither an id nor --all is given.

    Example: `traceweir alerts accept --all`
    """
    if every == bool(alerts):
        raise typer.BadParameter("give ids of alerts, or --all", param_hint="ID...")
    from traceweir.streams.cli.alerts_rules import accept_alerts

    raise typer.Exit(accept_alerts(alerts or [], every=every))
