"""Writes labels for `traceweir label`."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, get_args

import typer
from pydantic import JsonValue

from traceweir.schemas.figures import counted
from traceweir.schemas.labels import LabelKind
from traceweir.schemas.text import listed, printable
from traceweir.scorers.spelling import did_you_mean
from traceweir.streams.base.clock import utc_now
from traceweir.streams.cli.errors import FAILED, NO_DOCUMENT
from traceweir.streams.cli.score.commands import read_config_file
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.intake.formats.documents import InputError, name_of
from traceweir.streams.intake.formats.files import open_input
from traceweir.streams.tools.labels.reading import LabelDefaults, label_of, read_label_file, unread_columns
from traceweir.streams.tools.labels.topic import LabelsError, labels_writer, read_labels, write_labels

_AGAIN = "Run the command again"


def add_label(columns: Mapping[str, JsonValue]) -> None:
    """Writes one label, and prints its id.

    Raises:
        InputError: this is no label.
        KafkaUnreachableError: no broker answers.
        NotReadyError: the topic is missing or wrong, or Kafka did not accept the label.
    """
    settings = kafka_settings()
    annotator = columns.get("annotator") or _user()
    now = utc_now()
    label = label_of({**columns, "annotator": annotator}, LabelDefaults(now=now), now)
    write_labels(labels_writer(settings, _AGAIN), [label])
    sys.stdout.write(f"{label.label_id}\n")


def push_label_files(
    files: Sequence[str], annotator: str | None, criterion: str | None, kind: str, config: Path | None = None
) -> int:
    """Writes the labels of files, says on stderr what was done, and returns the exit code.

    Raises:
        typer.BadParameter: there is no such kind.
        ConfigError: the config cannot be used.
        InputError: a file cannot be read to its end.
        KafkaUnreachableError: no broker answers.
        NotReadyError: the topic is missing or wrong, or Kafka did not accept a label.
    """
    if kind not in get_args(LabelKind):
        raise typer.BadParameter(
            f"{kind!r:.80} is no kind of label: choose from {', '.join(get_args(LabelKind))}", param_hint="--kind"
        )
    plan = None if config is None else read_config_file(config)[0]
    known_names = [] if plan is None else [metric.name for metric in plan.metrics]
    settings = kafka_settings()
    writer = labels_writer(settings, "Push the file again")
    known = asyncio.run(read_labels(settings)).by_id
    failed = False
    for path in files:
        with open_input(path) as stream:
            found = read_label_file(
                stream, LabelDefaults(cast("LabelKind", kind), annotator, criterion, utc_now(), plan)
            )
            name = name_of(stream)
        if not found.rows:
            raise InputError(NO_DOCUMENT.format(name))
        for problem in found.problems:
            complain(problem)
        if (unread := unread_columns(found)) is not None:
            complain(f"{name}: {unread}")
        for each, number in found.unknown.items():
            complain(
                f"{name}: {counted(number, 'label')} of {printable(each, 100)!r}, which the config does not measure; "
                f"{did_you_mean(each, known_names)}"
            )
        if found.without_people:
            complain(f"{name}: {counted(found.without_people, 'MLflow trace')} without an assessment of a person")
        newest = {each.label_id: each for each in sorted(found.labels, key=lambda each: each.occurred_at)}
        repeated = len(found.labels) - len(newest)
        # The topic keeps the last record of an id, also where an earlier label arrives later.
        labels = [
            each
            for each in newest.values()
            if each.label_id not in known or each.occurred_at > known[each.label_id].occurred_at
        ]
        if labels:
            write_labels(writer, labels)
        known |= {each.label_id: each for each in labels}
        earlier = len(newest) - len(labels)
        complain(
            f"{name}: {counted(len(labels), 'label')} written to {settings.topics.labels}"
            + (f"; {repeated} replaced by another row of the same annotator and subject" if repeated else "")
            + (f"; {earlier} not later than what the topic has" if earlier else "")
            + (f"; {counted(len(found.problems), 'row')} not used" if found.problems else "")
        )
        failed = failed or bool(found.problems)
    return FAILED if failed else 0


def change_labels(ids: Sequence[str], *, withdrawn: bool) -> None:
    """Withdraws labels, or leaves them as they are; erases their notes.

    Raises:
        KafkaUnreachableError: no broker answers.
        LabelsError: the labels cannot be read, or there is no label with one of the ids.
        NotReadyError: the topic is missing or wrong, or Kafka did not accept a label.
    """
    settings = kafka_settings()
    known = asyncio.run(read_labels(settings)).by_id
    if missing := [each for each in ids if each not in known]:
        raise LabelsError(
            f"no label of {settings.topics.labels} has the id {listed(missing, 80, separator=', ')}: nothing was written. "
            "`traceweir label list` lists the ids"
        )
    at = utc_now()
    changed = [
        known[each].model_copy(update={"note": None, **({"withdrawn": True, "occurred_at": at} if withdrawn else {})})
        for each in dict.fromkeys(ids)
    ]
    write_labels(labels_writer(settings, _AGAIN), changed)
    complain(f"{counted(len(changed), 'label')} {'withdrawn' if withdrawn else 'without a note now'}")


def _user() -> str:
    """Returns the name of the user of this machine.

    Raises:
        InputError: the user has no name.
    """
    try:
        return printable(getpass.getuser(), 200)
    except (OSError, KeyError):
        raise InputError("the user of this machine has no name: name who judges with --annotator") from None
