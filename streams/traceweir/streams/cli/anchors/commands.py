"""Declares the commands of `traceweir anchors`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.common_options import AsJson

anchors_app = CommandApp(
    help="Find changes of judges: freeze labelled sessions, judge them again.", no_args_is_help=True
)

MOST_PER_DAY = 86_400
OfCriterion = Annotated[
    str | None,
    typer.Option("--criterion", metavar="NAME", help="Only anchors of this criterion.", show_default="all"),
]


@anchors_app.command()
def add(
    criterion: Annotated[
        str | None,
        typer.Option("--criterion", metavar="NAME", help="Only labels of this criterion.", show_default="all"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of anchors of a criterion.")] = 200,
    only_random: Annotated[
        bool, typer.Option("--only-random", help="Leave out sessions that were not drawn at random.")
    ] = False,
) -> None:
    """Freeze sessions that people have labelled, with their labels, as anchors.

    Reviews that say `pass` or `fail` become anchors, those of a random draw first. The session is that which was labelled,
    so the topic `sessions` must still have it. The anchors keep it until they are removed. New anchors of a criterion make
    another set of it: what its judge usually says is learnt again. Exit code 1: no label can be used, a topic is missing,
    or Kafka did not accept an anchor.

    Example: `traceweir anchors add --criterion helpful`
    """
    from traceweir.streams.cli.anchors.writing import add_anchors

    raise typer.Exit(add_anchors(criterion, limit, only_random=only_random))


@anchors_app.command("list")
def list_anchors(
    criterion: OfCriterion = None,
    ids: Annotated[bool, typer.Option("--ids", help="Also list each anchor, with its latest verdict.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what anchors say about the judge of each criterion: what it agrees with, and when it has changed.

    Example: `traceweir anchors list`
    """
    from traceweir.streams.cli.anchors.output import print_anchors

    raise typer.Exit(print_anchors(criterion, with_ids=ids, as_json=as_json))


@anchors_app.command()
def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of anchors.", show_default=False)],
) -> None:
    """Remove anchors, with their frozen sessions: Kafka deletes them when it compacts the topic, within a day.

    Exit code 1: there is no anchor with an id, or Kafka did not accept it.

    Example: `traceweir anchors remove 7d0c1a52-91f4-5c7e-9b1e-0a4c7f2f6f11`
    """
    from traceweir.streams.cli.anchors.writing import remove_anchors

    raise typer.Exit(remove_anchors(ids))


@anchors_app.command()
def run(
    config: Annotated[
        Path,
        typer.Option(
            "--config",
            metavar="FILE",
            help="The evaluation config of the sessions, with its budget.",
            show_default=False,
        ),
    ],
    per_day: Annotated[
        int, typer.Option("--per-day", min=1, max=MOST_PER_DAY, help="Anchors that are judged a day, evenly.")
    ] = 240,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="End after so many anchors.", show_default="until Ctrl-C")
    ] = None,
) -> None:
    """Judge anchors again at a steady rate, and say when a judge has changed. Run one process.

    Each time the judge is asked and paid: stored verdicts are not used, and none is stored. The budget is that of the
    config. The verdicts are no scores: they are on a topic of their own, and in no rate, page, export or decision. Exit
    code 1: no anchor can be judged, a topic is missing, or --limit was reached without a verdict. 2: the config cannot be
    used.

    Example: `traceweir anchors run --config eval.json --per-day 240`
    """
    from traceweir.streams.cli.anchors.running import run_anchors

    raise typer.Exit(run_anchors(config, per_day, limit))
