"""Reads a label from its record on the topic `labels`, which other programs may write too."""

from __future__ import annotations

from datetime import datetime

from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.labels import Label
from traceweir.streams.base.wrong_clock import ahead


def label_of_record(key: bytes | None, value: bytes, written_ms: int, now: datetime) -> Label:
    """Returns the label of a record.

    Args:
        key: The record's key.
        value: The record's value.
        written_ms: The record's timestamp, in milliseconds since 1970; below 0: it has none.
        now: The present time.

    Raises:
        ValueError: the record is no label, is not under its id, or its label is of a time that had not come: it would be the
            latest of its annotator for good.
    """
    try:
        label = Label.model_validate_json(value)
    except ValidationError as error:
        raise ValueError(explain(error)) from None
    if key != label.label_id.encode():
        raise ValueError("the key is not the label_id, by which the topic is compacted")
    if (wrong := ahead(label.occurred_at, written_ms, now)) is not None:
        raise ValueError(f"occurred_at {wrong}")
    return label
