"""Prints labels for `traceweir label list`."""

from __future__ import annotations

import asyncio
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceweir.schemas.figures import counted
from traceweir.schemas.labels import Label
from traceweir.schemas.text import listed, printable
from traceweir.streams.cli.results.output import json_line
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.labels.topic import read_labels

_NOTE_CHARACTERS = 80


def print_labels(session: str | None, criterion: str | None, *, as_json: bool) -> None:
    """Prints the labels of a session and a criterion, the latest last; None: of all.

    Raises:
        KafkaUnreachableError: no broker answers.
        LabelsError: the labels cannot be read.
    """
    settings = kafka_settings()
    known = asyncio.run(read_labels(settings))
    labels = sorted(
        (
            each
            for each in known.by_id.values()
            if session in (None, each.subject.session_id) and criterion in (None, each.criterion)
        ),
        key=lambda each: each.occurred_at,
    )
    if known.unreadable:
        places = listed(known.unreadable, separator=", ")
        complain(f"{counted(len(known.unreadable), 'record')} of {settings.topics.labels} not a label: {places}")
    if as_json:
        sys.stdout.writelines(f"{json_line(label.wire()).decode()}\n" for label in labels)
    elif labels:
        _print_table(labels)
    else:
        complain(f"{settings.topics.labels} has no such label")


def _print_table(labels: list[Label]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("id", "given", "session", "criterion", "label", "annotator", "kind", "note"):
        table.add_column(name, no_wrap=name == "id", overflow="fold")
    for label in labels:
        cells = (
            label.label_id,
            f"{label.occurred_at:%Y-%m-%d %H:%M}",
            label.subject.session_id,
            label.criterion,
            _answer(label),
            f"{label.annotator} (self-declared)" if label.self_declared else label.annotator,
            label.kind if label.drawn == "none" else f"{label.kind}, {label.drawn}",
            label.note or "",
        )
        table.add_row(*(Text(printable(cell, _NOTE_CHARACTERS)) for cell in cells))
    Console(highlight=False, soft_wrap=True).print(table)


def _answer(label: Label) -> str:
    answer = label.verdict or label.category or ("" if label.value is None else f"{label.value:g}")
    return f"{answer} (withdrawn)" if label.withdrawn else answer
