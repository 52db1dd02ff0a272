"""Reads labels from a file: CSV, JSON lines or a JSON array, and the traces of MLflow with what people wrote to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import BinaryIO

from pydantic import JsonValue, ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.labels import Label, LabelKind, label_id
from traceweir.schemas.text import listed, printable
from traceweir.schemas.times import UNKNOWN_TIME
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.json_values import write_json
from traceweir.streams.base.wrong_clock import MOST_AHEAD
from traceweir.streams.intake.formats.csv_rows import csv_columns, read_csv
from traceweir.streams.intake.formats.documents import InputError, name_of, read_documents
from traceweir.streams.intake.formats.files import base_time_of
from traceweir.streams.intake.formats.tables import ReadCell, Row, number, row_of, text
from traceweir.streams.tools.labels.mlflow import human_feedback, mlflow_trace_of
from traceweir.streams.tools.labels.scale import metric_of_label, off_scale

_SUBJECT = ("session_id", "segment", "revision", "level", "invocation_id", "trace_id")
_NUMBERS = ("segment", "revision", "value", "inclusion_probability")
_WORDS: Mapping[str, str] = {
    "yes": "pass",
    "true": "pass",
    "passed": "pass",
    "no": "fail",
    "false": "fail",
    "failed": "fail",
}
"""Other words for a verdict, in small letters."""


def _flag(cell: str) -> JsonValue:
    return {"true": True, "false": False}.get(cell.strip().lower(), cell)


COLUMNS: Mapping[str, ReadCell] = {
    **dict.fromkeys((*_SUBJECT, *(name for name in Label.model_fields if name != "subject")), text),
    **dict.fromkeys(_NUMBERS, number),
    **dict.fromkeys(("withdrawn", "self_declared"), _flag),
}
"""The columns of a CSV file of labels, each with the parser of its cells."""


@dataclass(frozen=True, slots=True)
class LabelDefaults:
    """What labels have whose row does not say it."""

    kind: LabelKind = "review"
    annotator: str | None = None
    """Who judged; None: each row has to say it."""
    criterion: str | None = None
    """The criterion; None: each row has to say it."""
    now: datetime | None = None
    """The present time, which no label is later than by more than `MOST_AHEAD`; None: this is not checked."""
    plan: Plan | None = None
    """The config that measures the criteria, whose scales labels must be on; None: scales are not checked."""


@dataclass(slots=True)
class FoundLabels:
    """The labels of a file, and what cannot be used of it."""

    labels: list[Label] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """A sentence for each row that is no label, with its place."""
    rows: int = 0
    """Number of rows and documents."""
    without_people: int = 0
    """Number of MLflow traces to which no person wrote an assessment."""
    unread: Counter[str] = field(default_factory=Counter)
    """How often each column was present that is not read."""
    unknown: Counter[str] = field(default_factory=Counter)
    """How many reviews are of each criterion that the config does not measure."""


def read_label_file(stream: BinaryIO, defaults: LabelDefaults) -> FoundLabels:
    """Returns the labels of a file. A row that cannot be used becomes a problem and costs no other row.

    A row names its subject by `session_id` and by `invocation_id` or `trace_id`, which then is the level. A label without
    a time has that of the file's last change, so that a file which is read twice has the same labels.

    Raises:
        InputError: the file cannot be read to its end.
    """
    found = FoundLabels()
    place = "line"
    if PurePath(name_of(stream)).suffix.lower() == ".csv":
        place = "row"
        unread = [name for name in csv_columns(stream) if name and name not in COLUMNS]
        found.unread.update(unread)
        rows: Iterator[Row] = read_csv(stream, COLUMNS)
    else:
        rows = map(row_of, read_documents(stream))
    at = base_time_of(stream)
    changed_at = at if at.year > 1970 else None
    for row in rows:
        found.rows += 1
        where = f"{name_of(stream)}: {place} {row.number}"
        if row.problem is not None:
            found.problems.append(f"{where}: {row.problem}")
            continue
        trace = mlflow_trace_of(row.columns)
        if trace is None:
            _take(found, where, row.columns, defaults, changed_at)
            continue
        feedback = list(human_feedback(trace, row.columns.get("request_id")))
        found.without_people += not feedback
        for each in feedback:
            # An assessment without a time is no older than its trace, and nothing says how much younger.
            _take(found, f"{where}, assessment {printable(str(each['criterion']), 80)!r}", each, defaults, None)
    return found


def label_of(given: Mapping[str, JsonValue], defaults: LabelDefaults, at: datetime | None) -> Label:
    """Returns a label from its columns, or from a document with a `subject`. A value that is null or empty is absent.

    Args:
        given: The columns; those that are not read are ignored.
        defaults: What the label has where the columns do not say it.
        at: When the label was given, where the columns do not say it; None: they have to.

    Raises:
        InputError: this is no label; the message names the column and the rule.
    """
    columns = {name: value for name, value in given.items() if value is not None and value != ""}
    subject = columns.pop("subject", None)
    if isinstance(subject, dict):
        columns |= {name: value for name, value in subject.items() if value is not None}
    cells = {name: value for name, value in columns.items() if name in COLUMNS}
    if "annotator" not in cells:
        if defaults.annotator is None:
            raise InputError("annotator is missing: name who judged in this column, or with --annotator")
        cells["annotator"] = defaults.annotator
    if "criterion" not in cells and defaults.criterion is not None:
        cells["criterion"] = defaults.criterion
    if "occurred_at" not in cells:
        if at is None:
            raise InputError("occurred_at is missing: say when the label was given, as in 2026-01-31T12:00:00Z")
        cells["occurred_at"] = at.isoformat()
    cells.setdefault("kind", defaults.kind)
    # A file proves no name.
    cells["self_declared"] = True
    if isinstance(word := cells.get("verdict"), str | bool):
        small = str(word).strip().lower()
        cells["verdict"] = _WORDS.get(small, small)
    about: JsonObject = {name: cells.pop(name) for name in _SUBJECT if name in cells}
    about.setdefault("level", _level(about))
    label = _validated({**cells, "subject": about})
    _check_time(label.occurred_at, defaults.now)
    return label


def _check_time(given_at: datetime, now: datetime | None) -> None:
    """Checks the time of a label: one of the far future would be the latest of its annotator for good.

    Raises:
        InputError: the time is before 1970, or ahead of now.
    """
    if given_at < UNKNOWN_TIME:
        raise InputError(
            f"occurred_at: {given_at.isoformat()} is before 1970: say when the label was given, or leave it out"
        )
    if now is not None and given_at > now + MOST_AHEAD:
        raise InputError(
            f"occurred_at: {given_at.isoformat()} is more than 5 minutes ahead of now, {now.isoformat(timespec='seconds')}, and "
            "the latest label of an annotator counts: correct the time, or the clock that it is from"
        )


def _take(found: FoundLabels, where: str, columns: JsonObject, defaults: LabelDefaults, at: datetime | None) -> None:
    try:
        label = label_of(columns, defaults, at)
    except InputError as error:
        found.problems.append(f"{where}: {error}")
        return
    plan = defaults.plan
    if plan is not None and (problem := off_scale(label, plan)) is not None:
        found.problems.append(f"{where}: {problem}")
        return
    found.labels.append(label)
    # The name of an outcome or of feedback is free.
    if plan is not None and label.kind == "review" and metric_of_label(label, plan) is None:
        found.unknown[label.criterion] += 1
    found.unread.update(name for name in columns if name not in COLUMNS and name != "subject")


def _level(subject: Mapping[str, JsonValue]) -> str:
    if "invocation_id" in subject:
        return "invocation"
    return "trace" if "trace_id" in subject else "session"


def _validated(document: JsonObject) -> Label:
    named = document.get("label_id")
    try:
        label = Label.model_validate_json(write_json({**document, "label_id": named or "unnamed"}))
    except ValidationError as error:
        raise InputError(explain(error).replace("subject.", "")) from None
    except ValueError as error:
        raise InputError(f"is no JSON ({error})") from None
    if named:
        return label
    return label.model_copy(update={"label_id": label_id(label.subject, label.criterion, label.annotator, label.kind)})


def unread_columns(found: FoundLabels) -> str | None:
    """Returns a sentence on the columns that are not read; None if all are."""
    if not found.unread:
        return None
    names = listed(list(found.unread), 80, separator=", ")
    return f"not read: {names}; the columns of a label are {', '.join(COLUMNS)}"
