"""Remembers the labels that this dashboard has written, until the store has read them back from Kafka."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from traceweir.schemas.labels import Label

MAX_REMEMBERED = 10_000
"""The most labels that are remembered; the oldest is forgotten first, which the store has read long ago."""


@dataclass(frozen=True, slots=True)
class ReviewLabel:
    """The label of a reviewer that counts, whether the store has it yet or not."""

    label: Label
    is_stored: bool

    @property
    def identity(self) -> tuple[str, int, str, str | None, str | None]:
        """What the label is about, as subjects for review are told apart."""
        about = self.label.subject
        return about.session_id, about.segment or 0, about.level, about.invocation_id, about.trace_id

    def is_about(self, revision: int) -> bool:
        """Returns whether the label needs no confirmation after this revision was scored."""
        seen = self.label.subject.revision
        return revision == 0 if seen is None else seen >= revision


class GivenLabels:
    """The labels that were written, by their id. Any number of threads may use it."""

    def __init__(self) -> None:
        self._labels: dict[str, Label] = {}
        self._lock = threading.Lock()

    def note(self, label: Label) -> None:
        """Remembers a label that Kafka has; it replaces an earlier one with the same id."""
        with self._lock:
            self._labels.pop(label.label_id, None)
            self._labels[label.label_id] = label
            if len(self._labels) > MAX_REMEMBERED:
                del self._labels[next(iter(self._labels))]

    def with_stored(self, stored: Sequence[Label], criterion: str, since: datetime) -> list[ReviewLabel]:
        """Returns the reviews of a criterion that count, the latest first: those of the store, and those not read back yet.

        Args:
            stored: The labels of the criterion that the store has, from `since` on, without withdrawn ones.
            criterion: The criterion.
            since: Labels of an earlier time are left out.
        """
        with self._lock:
            written = [each for each in self._labels.values() if each.criterion == criterion and each.kind == "review"]
        found = {each.label_id: ReviewLabel(each, is_stored=True) for each in stored if each.kind == "review"}
        for label in written:
            known = found.get(label.label_id)
            if label.occurred_at < since or (known is not None and known.label.occurred_at > label.occurred_at):
                continue
            if label.withdrawn:
                found.pop(label.label_id, None)
            elif known is None or known.label != label:
                found[label.label_id] = ReviewLabel(label, is_stored=False)
        latest_first = sorted(
            found.values(), key=lambda each: (each.label.occurred_at, each.label.label_id), reverse=True
        )
        counting: dict[object, ReviewLabel] = {}
        for each in latest_first:
            # Of an annotator, the latest label of a subject counts.
            counting.setdefault((each.label.annotator, each.identity), each)
        return [*counting.values()]
