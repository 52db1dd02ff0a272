"""Reads a label from its record on the topic `labels`, which other programs may write too."""

from __future__ import annotations

from datetime import timedelta

from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.labels import Label

MOST_AHEAD = timedelta(minutes=5)
"""How far the time of a label can lie ahead of the clock that it is compared with."""


def label_of_record(key: bytes | None, value: bytes, written_ms: int) -> Label:
    """Returns the label of a record.

    Args:
        key: The record's key.
        value: The record's value.
        written_ms: The record's timestamp, in milliseconds since 1970.

    Raises:
        ValueError: the record is no label, is not under its id, or its label is of a later time than the record: it would be
            the latest of its annotator for good.
    """
    try:
        label = Label.model_validate_json(value)
    except ValidationError as error:
        raise ValueError(explain(error)) from None
    if key != label.label_id.encode():
        raise ValueError("the key is not the label_id, by which the topic is compacted")
    if label.occurred_at.timestamp() > written_ms / 1000 + MOST_AHEAD.total_seconds():
        raise ValueError(
            f"occurred_at {label.occurred_at.isoformat()} is more than 5 minutes after the record was written: correct the clock "
            "of the writer"
        )
    return label
