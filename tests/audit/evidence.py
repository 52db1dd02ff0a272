"""A ledger and what was committed, side by side: what every claim looks at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.audit.committed import Committed, Document, Row
from tests.support.ledger import POISON, Ledger

Place = tuple[str, int]
"""A session's id and the number of a segment."""
Version = tuple[str, int, int]
"""And the number of a revision of it."""


class Published(NamedTuple):
    """A record of `sessions`."""

    row: Row
    document: Document

    @property
    def place(self) -> Place:
        """Which segment it is."""
        return self.document["session_id"], self.document["segment"]

    @property
    def version(self) -> Version:
        """Which revision of which segment it is."""
        return *self.place, self.document["revision"]


class Letter(NamedTuple):
    """A dead letter."""

    row: Row
    topic: str
    reason: str
    detail: str
    partition: int
    offset: int


class Evidence:
    """All of it, parsed and sorted."""

    def __init__(self, ledger: Ledger, committed: Committed, config: Document) -> None:
        self.ledger, self.committed, self.rows = ledger, committed, committed.rows
        self.gate = config["gate"]
        self.unsteady = "unsteady" in config["criteria"]
        self.sessions = [Published(row, row.document) for row in _in_order(self.rows["sessions"])]
        self.results = [row.document for row in self.rows["results"]]
        self.candidates = [(row, row.document) for row in _in_order(self.rows["candidates"])]
        self.letters = [_letter(row) for row in self.rows["dead-letters"]]
        self.revisions: dict[Place, list[Published]] = defaultdict(list)
        """By segment, its records in the order of their partition."""
        for each in self.sessions:
            self.revisions[each.place].append(each)
        self.last = {place: published[-1] for place, published in self.revisions.items()}
        self.superseded = set(self._unanswered())
        """What nothing came of, and need not, as the segment's next revision was there before its turn."""
        self.said: dict[tuple[str, int, int, str], Document] = {
            (found["trace_id"], found["segment"], found["revision"], found["metric"]): found
            for found in self.results
            if found["level"] == "trace"
        }
        """By trace, segment, revision and metric, what the gate said."""

    def poisonous(self, session: str) -> bool:
        """Whether nothing can come of a session but a dead letter."""
        return session.endswith(f"~{POISON}")

    def scored(self) -> Iterator[Published]:
        """Every record of `sessions` of which scores have to come."""
        return (
            each for each in self.sessions if not self.poisonous(each.place[0]) and each.version not in self.superseded
        )

    def _unanswered(self) -> Iterator[Version]:
        scored = {(each["session_id"], each["segment"], each["revision"]) for each in self.results}
        put_aside = {(each.partition, each.offset) for each in self.letters if each.topic == "sessions"}
        for published in self.revisions.values():
            for each in published[:-1]:
                if each.version not in scored and (each.row.partition, each.row.offset) not in put_aside:
                    yield each.version


Claim = Callable[[Evidence], Iterator[str]]
"""Gives a sentence for each fault; none if what its name says holds."""


def accepted(decision: Document) -> bool:
    """Whether the gate let a trace pass."""
    return bool(decision["details"]["decision"] == "accepted")


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row[:2])


def _letter(row: Row) -> Letter:
    about = {name: content.decode() for name, content in row.headers if name.startswith("traceweir.")}
    return Letter(
        row,
        about["traceweir.topic"].rpartition(".")[2],
        about["traceweir.reason"],
        about["traceweir.detail"],
        int(about["traceweir.partition"]),
        int(about["traceweir.offset"]),
    )
