"""`traceweir trust`: says how far a judge's rates can be believed, with labels of people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.common_options import AsJson
from traceweir.streams.cli.config.commands import App, By, DryRun, Environment
from traceweir.streams.cli.config.options import selector_option

trust_app = CommandApp(help="See what a judged pass rate is worth, with labels of people.", no_args_is_help=True)

Labels = Annotated[Path, typer.Option("--labels", metavar="FILE", help="Labels, in JSON Lines.")]
Results = Annotated[
    Path, typer.Option("--results", metavar="FILE", help="Scores, as `traceweir results --json` prints them.")
]
Criterion = Annotated[
    str | None, typer.Option("--criterion", metavar="NAME", help="Only this criterion.", show_default=False)
]
HalfWidth = Annotated[
    float, typer.Option("--half-width", min=0.001, max=0.5, help="Half the width of the interval that is wanted.")
]


@trust_app.command()
def agreement(labels: Labels, results: Results, criterion: Criterion = None, as_json: AsJson = False) -> None:
    """Print how often a judge is right about what people passed, and about what they failed.

    Exit code 1: no label can be used, or a line of a file cannot. Exit code 2: a file cannot be read.

    Example: `traceweir trust agreement --labels labels.jsonl --results results.jsonl`
    """
    from traceweir.streams.cli.trust_output import run_agreement

    raise typer.Exit(run_agreement(labels, results, criterion, as_json=as_json))


@trust_app.command()
def rate(
    labels: Labels,
    results: Results,
    criterion: Criterion = None,
    half_width: HalfWidth = 0.1,
    calibration: Annotated[
        Path | None,
        typer.Option(
            "--calibration",
            metavar="FILE",
            help="Scores of another time that the labels are about, if --results has none with a label.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the pass rate as the judge gives it, the rate that people would give, and what is not known yet.

    Exit code 1: there is no judged score, or a line of a file cannot be used. Exit code 2: a file cannot be read.

    Example: `traceweir trust rate --labels labels.jsonl --results results.jsonl`
    """
    from traceweir.streams.cli.trust_output import run_rate

    raise typer.Exit(run_rate(labels, results, criterion, half_width, calibration, as_json=as_json))


@trust_app.command()
def plan(
    criterion: Annotated[str, typer.Option("--criterion", metavar="NAME", help="The criterion, for the output.")],
    tpr: Annotated[float, typer.Option(min=0.001, max=0.999, help="Share of the good answers that the judge passes.")],
    tnr: Annotated[float, typer.Option(min=0.001, max=0.999, help="Share of the bad answers that the judge fails.")],
    rate: Annotated[float, typer.Option(min=0.001, max=0.999, help="Share of the answers that are good.")],
    half_width: HalfWidth = 0.05,
    as_json: AsJson = False,
) -> None:
    """Print how many labels a wanted exactness needs, and a proof that the judge is good enough.

    Example: `traceweir trust plan --criterion correctness --tpr 0.95 --tnr 0.9 --rate 0.8`
    """
    from traceweir.streams.cli.trust_output import run_plan

    raise typer.Exit(run_plan(criterion, tpr, tnr, rate, half_width, as_json=as_json))


@trust_app.command()
def certify(
    criterion: Annotated[str, typer.Option("--criterion", metavar="NAME", help="The criterion.")],
    labels: Labels,
    results: Results,
    bar: Annotated[
        float, typer.Option(min=0.5, max=0.99, help="What the lower bounds of TPR and TNR must reach.")
    ] = 0.8,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FILE", help="Write the certificate into this config file.", show_default=False),
    ] = None,
    push: Annotated[
        bool, typer.Option("--push", help="Push the config in effect again, with the certificate in it.")
    ] = False,
    app: App = None,
    environment: Environment = None,
    by: By = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Prove with labels of people that a judge is good enough for the gate, and push the proof into the config.

    Exit code 1: no judge is certified, a line of a file cannot be used, or no config is in effect. Exit code 2: a file
    cannot be read.

    Example: `traceweir trust certify --criterion helpful --labels labels.jsonl --results results.jsonl --push`
    """
    from traceweir.streams.cli.certificates import PushTarget, run_certify

    pushes = push or (dry_run and into is None)
    target = PushTarget(selector_option(app, environment), by, dry_run=dry_run) if pushes else None
    raise typer.Exit(run_certify(criterion, labels, results, bar, into, target, dry_run=dry_run, as_json=as_json))


@trust_app.command()
def certificates(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Those of this config. [default: of the topic]", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the certificates of judges, and say which are in force.

    Exit code 2: the config cannot be used.

    Example: `traceweir trust certificates`
    """
    from traceweir.streams.cli.certificates import run_certificates

    raise typer.Exit(run_certificates(config, as_json=as_json))


@trust_app.command()
def withdraw(
    criteria: Annotated[list[str], typer.Argument(metavar="CRITERION...", help="Criteria whose certificates end.")],
    app: App = None,
    environment: Environment = None,
    by: By = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Push the config in effect again, without the certificates of these criteria.

    Exit code 1: there is no such certificate, or no config is in effect.

    Example: `traceweir trust withdraw helpful`
    """
    from traceweir.streams.cli.certificates import PushTarget, run_withdraw

    target = PushTarget(selector_option(app, environment), by, dry_run=dry_run)
    raise typer.Exit(run_withdraw(criteria, target, as_json=as_json))
