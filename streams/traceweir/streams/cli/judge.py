"""`traceweir judge`: shows how well a judge judges, and what it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.input_options import DEFAULT_FORMAT, FormatName, InputCommand, Inputs, TaskDomain

judge_app = CommandApp(help="See what a judge is asked, and whether it can judge.", no_args_is_help=True)

Criteria = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CRITERION", help="Criteria to check; without any, all that ask a judge.", show_default=False
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Evaluation config, with the models and the `judge` section."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="NAME", help="The model to ask, as litellm names it; without a config.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON object for each criterion.")]

_EXCLUSIVE = "--model and --config exclude each other: the config names the models"


@judge_app.command()
def check(criteria: Criteria = None, config: Config = None, model: Model = None, as_json: AsJson = False) -> None:
    """Ask a judge about cases whose verdict nobody doubts, and print how many it gets right.

    Each criterion has four cases: two that must pass and two that must fail. A model that passes a case that must fail
    lets such answers through. Four cases find a judge that is unfit; they do not measure how good a fit one is.
    Verdicts are stored, as those of `traceweir score`, so that the same check costs nothing the second time.

    Exit code 1: the judge got a case wrong, or answered without a verdict. Exit code 2: it could not be asked.

    Example: `traceweir judge check --model openai/gpt-4o-mini`
    """
    from traceweir.streams.cli.judge_output import run_check

    if config is not None and model is not None:
        raise typer.BadParameter(_EXCLUSIVE)
    raise typer.Exit(run_check(criteria or [], config, model, as_json=as_json))


@judge_app.command()
def agree(
    criteria: Criteria = None,
    config: Config = None,
    model: Model = None,
    language: Annotated[
        str | None,
        typer.Option("--language", metavar="CODE", help="Ask only the cases in this language.", show_default=False),
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option(
            "--cases", metavar="FILE", help="Your own cases of one criterion, in JSON Lines.", show_default=False
        ),
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print what it will cost, and ask nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a judge about labelled cases, and print how far it agrees with the labels.

    Each criterion has 48 cases in six languages, half of which must pass. For each criterion and each language the
    tables show the agreement, Cohen's kappa, the bias to yes, and the rates of false passes and false fails, with 95 %
    intervals. An answer without a verdict counts in none of them. Verdicts are stored, as those of `traceweir score`.

    Exit code 1: a criterion has no verdict at all, or no cases. Exit code 2: the judge could not be asked.

    Example: `traceweir judge agree correctness --model openai/gpt-4o-mini --language ko`
    """
    from traceweir.streams.cli.judge_agree import run_agree

    if config is not None and model is not None:
        raise typer.BadParameter(_EXCLUSIVE)
    if cases is not None and len(criteria or []) != 1:
        raise typer.BadParameter("--cases takes the cases of one criterion: name it, as in `judge agree correctness`")
    raise typer.Exit(run_agree(criteria or [], config, model, language, cases, only_estimate=estimate, as_json=as_json))


@judge_app.command("try", cls=InputCommand)
def try_judge(
    criterion: Annotated[str, typer.Argument(metavar="CRITERION", help="A criterion that asks a judge.")],
    files: Inputs,
    config: Config = None,
    model: Model = None,
    format: FormatName = DEFAULT_FORMAT,  # noqa: A002
    task_domain: TaskDomain = "general",
    invocation: Annotated[
        str | None,
        typer.Option(
            "--invocation",
            metavar="ID",
            help="The invocation, or one of the session; without it, the first that can be judged.",
        ),
    ] = None,
) -> None:
    """Ask a judge about one invocation of a file, or its session, and print the question, the answer and its reading.

    Each question is asked once, whatever the config says about samples. Exit code 1: there is no verdict, or a document
    of the file cannot be used. Exit code 2: the judge could not be asked.

    Example: `traceweir judge try safety_v1 sessions.jsonl --model openai/gpt-4o-mini`
    """
    from traceweir.streams.cli.judge_output import run_try

    if config is not None and model is not None:
        raise typer.BadParameter(_EXCLUSIVE)
    raise typer.Exit(run_try(criterion, files, format, task_domain, invocation, config, model))
