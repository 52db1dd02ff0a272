"""Declares the commands of `traceweir label`."""

from __future__ import annotations

from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.common_options import Config

label_app = CommandApp(help="Say what people think of sessions, to compare judges with it.", no_args_is_help=True)

Annotator = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Who judges. [default: the name of the user of this machine]", show_default=False
    ),
]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of labels.", show_default=False)]
Kind = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="`review`: somebody was asked to judge; `user`: a user's feedback; `outcome`: what happened afterwards.",
    ),
]
OfSession = Annotated[str | None, typer.Option("--session", metavar="ID", help="Only labels of this session.")]
OfCriterion = Annotated[str | None, typer.Option("--criterion", metavar="NAME", help="Only labels of this criterion.")]


@label_app.command()
def add(
    session: Annotated[str, typer.Option(metavar="ID", help="The session.", show_default=False)],
    criterion: Annotated[
        str, typer.Option(metavar="NAME", help="The metric, or the name of an outcome.", show_default=False)
    ],
    verdict: Annotated[
        str | None, typer.Option(metavar="VERDICT", help="`pass`, `fail` or `unsure`.", show_default=False)
    ] = None,
    value: Annotated[float | None, typer.Option(help="A number in place of a verdict.", show_default=False)] = None,
    category: Annotated[
        str | None, typer.Option(metavar="NAME", help="A category in place of a verdict.", show_default=False)
    ] = None,
    invocation: Annotated[
        str | None, typer.Option(metavar="ID", help="The judged invocation.", show_default=False)
    ] = None,
    trace: Annotated[str | None, typer.Option(metavar="ID", help="The judged trace.", show_default=False)] = None,
    segment: Annotated[int | None, typer.Option(help="The segment that was seen, from 0.", show_default=False)] = None,
    revision: Annotated[
        int | None, typer.Option(help="The revision that was seen, from 0.", show_default=False)
    ] = None,
    annotator: Annotator = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Why.", show_default=False)] = None,
    kind: Kind = "review",
    drawn: Annotated[
        str, typer.Option(metavar="HOW", help="How the subject was chosen: `random`, `flagged` or `none`.")
    ] = "none",
    inclusion_probability: Annotated[
        float | None,
        typer.Option(help="The probability with which it was drawn at `random`, above 0 to 1.", show_default=False),
    ] = None,
) -> None:
    """Write one label to the topic `labels`, and print its id.

    A label replaces the former one of the same annotator, subject and criterion. Exit code 1: the topic is missing, or Kafka
    did not accept the label. 2: this is no label.

    Example: `traceweir label add --session s-1 --criterion helpful --verdict fail --note "Wrong airport."`
    """
    from traceweir.streams.cli.label.writing import add_label

    add_label(
        {
            "session_id": session,
            "segment": segment,
            "revision": revision,
            "invocation_id": invocation,
            "trace_id": trace,
            "criterion": criterion,
            "verdict": verdict,
            "value": value,
            "category": category,
            "annotator": annotator,
            "note": note,
            "kind": kind,
            "drawn": drawn,
            "inclusion_probability": inclusion_probability,
        }
    )


@label_app.command()
def push(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Labels as `.csv`, JSON Lines or a JSON array, or traces of MLflow; `-` reads standard input.",
            show_default=False,
        ),
    ],
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who judged, where a row does not say it.", show_default=False)
    ] = None,
    criterion: Annotated[
        str | None, typer.Option(metavar="NAME", help="The criterion, where a row does not say it.", show_default=False)
    ] = None,
    kind: Kind = "review",
    config: Config = None,
) -> None:
    """Write the labels of files to the topic `labels`; a file that is pushed again counts once.

    A row that cannot be used is named on stderr and costs no other row. Of a trace of MLflow, the assessments of people
    (`source_type` HUMAN) are labels. With --config, a label that is off the scale of its criterion cannot be used, and a
    criterion that the config does not measure is named. Exit code 1: a row cannot be used, the topic is missing, or Kafka did
    not accept a label.
    2: a file cannot be read.

    Example: `traceweir label push labels.csv --annotator ana`
    """
    from traceweir.streams.cli.label.writing import push_label_files

    raise typer.Exit(push_label_files(files, annotator, criterion, kind, config))


@label_app.command("list")
def list_labels(
    session: OfSession = None,
    criterion: OfCriterion = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines, which `push` reads.")] = False,
) -> None:
    """List the labels of the topic, the latest last.

    Example: `traceweir label list --session s-1`
    """
    from traceweir.streams.cli.label.reading import print_labels

    print_labels(session, criterion, as_json=as_json)


@label_app.command()
def withdraw(ids: Ids) -> None:
    """Withdraw labels, and erase their notes: they count nowhere any more.

    Exit code 1: there is no label with an id, or Kafka did not accept a label.

    Example: `traceweir label withdraw 7d0c1a52-91f4-5c7e-9b1e-0a4c7f2f6f11`
    """
    from traceweir.streams.cli.label.writing import change_labels

    change_labels(ids, withdrawn=True)


@label_app.command("erase-note")
def erase_note(ids: Ids) -> None:
    """Erase the notes of labels; their verdicts go on to count.

    The topic keeps an erased note until Kafka compacts it, within a day by the options of `traceweir topics create`.

    Example: `traceweir label erase-note 7d0c1a52-91f4-5c7e-9b1e-0a4c7f2f6f11`
    """
    from traceweir.streams.cli.label.writing import change_labels

    change_labels(ids, withdrawn=False)
