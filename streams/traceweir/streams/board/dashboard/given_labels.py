"""Remembers the labels that this dashboard has written, until the store has read them back from Kafka."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from traceweir.schemas.labels import Label, LabelSubject
from traceweir.streams.board.store.labels import JudgedLabel

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

    def with_stored(self, stored: Sequence[JudgedLabel], criterion: str, since: datetime) -> list[ReviewLabel]:
        """Returns the reviews of a criterion that count, the latest first: those of the store, and those not read back yet.

        Args:
            stored: The labels that the store has, from `since` on.
            criterion: The criterion.
            since: Labels of an earlier time are left out.
        """
        with self._lock:
            written = [each for each in self._labels.values() if each.criterion == criterion and each.kind == "review"]
        found = {each.label.label_id: each for each in _of_store(stored)}
        for label in written:
            known = found.get(label.label_id)
            if label.occurred_at < since or (known is not None and known.label.occurred_at > label.occurred_at):
                continue
            if label.withdrawn:
                found.pop(label.label_id, None)
            elif known is None or known.label != label:
                found[label.label_id] = ReviewLabel(label, is_stored=False)
        return sorted(found.values(), key=lambda each: (each.label.occurred_at, each.label.label_id), reverse=True)


def _of_store(stored: Iterable[JudgedLabel]) -> Iterator[ReviewLabel]:
    for each in stored:
        if each.standing == "replaced":
            continue
        about = LabelSubject(**{name: getattr(each, name) for name in LabelSubject.model_fields})
        cells = {name: getattr(each, name) for name in Label.model_fields if name in JudgedLabel.model_fields}
        yield ReviewLabel(Label(subject=about, **cells), is_stored=True)
