"""`traceweir references`: compares live sessions with the cases of eval sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp

if TYPE_CHECKING:
    from traceweir.streams.base.settings import Settings

references_app = CommandApp(help="Compare live sessions with the cases of eval sets.", no_args_is_help=True)


@references_app.command()
def push(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Eval sets; `FILE:case1,case2` selects cases.", show_default=False),
    ],
    app: Annotated[
        str | None,
        typer.Option(
            metavar="APP",
            help="The app in which questions are looked up. [default: the app of each case]",
            show_default=False,
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the references of these cases.")] = False,
) -> None:
    """Write the expectations of eval sets to the topic `references`, so that workers compare live sessions with them.

    A session is compared with the case that its label `case_id` names, else with the case whose eval id is its session id,
    else, invocation by invocation, with the case of one turn that asks the same question in the same app. Sessions that are
    scored from then on count; pushing a file again replaces its cases. stderr says what is ambiguous. Exit code 1: the topic
    is missing, or Kafka did not accept a reference. 2: a file cannot be used.

    Example: `traceweir references push trips.evalset.json --app travel-desk`
    """
    from traceweir.streams.cli.up_broker import kafka_settings

    push_files(kafka_settings(), files, app, remove=remove)


def push_files(settings: Settings, files: Sequence[str], app: str | None = None, *, remove: bool = False) -> None:
    """Writes the references of eval sets, or removes them, and says on stderr what was done.

    Raises:
        InputError: a file cannot be used.
        KafkaUnreachableError: no broker answers.
        NotReadyError: the topic is missing or wrong, or Kafka did not accept a record.
    """
    from traceweir.schemas.figures import counted
    from traceweir.streams.cli.terminal import complain
    from traceweir.streams.lab.evals.files import chosen_files, read_eval_file
    from traceweir.streams.lab.evals.reference_topic import write_references
    from traceweir.streams.lab.evals.references import references_of

    read = [read_eval_file(each) for each in chosen_files(files)]
    found = references_of(read, app)
    for line in (line for file in read for line in file.unread):
        complain(line)
    records = dict.fromkeys(found.records) if remove else found.records
    write_references(settings, records)
    if not remove:
        for note in found.notes:
            complain(note)
    done = "are no longer expected" if remove else "are expected"
    turns = sum(each is not None for each in found.records.values())
    complain(
        f"{counted(found.cases, 'case')} with {counted(turns, 'turn')} {done} by sessions that are scored from now on "
        f"({settings.topics.references})"
    )
