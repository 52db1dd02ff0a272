"""Defines RefusedRecord: what a session knows of a record that became a dead letter, and which parts it can have had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from traceweir.schemas.base import WireModel

QUESTION = "question"
ANSWER = "answer"
TOOL_CALLS = "tool calls"
TOOL_RESULTS = "results of tools"
INTERMEDIATE = "intermediate responses"
CONTEXT = "retrieved context"
MODEL_CALLS = "model calls"
REFERENCE = "reference"
ALL_PARTS = (QUESTION, ANSWER, TOOL_CALLS, TOOL_RESULTS, INTERMEDIATE, CONTEXT, MODEL_CALLS, REFERENCE)

_PARTS: Mapping[str, tuple[str, ...]] = {
    "invocation.started": (QUESTION, REFERENCE),
    "tool.called": (TOOL_CALLS, REFERENCE),
    "tool.returned": (TOOL_RESULTS, REFERENCE),
    "response.intermediate": (INTERMEDIATE, REFERENCE),
    "retrieval.returned": (CONTEXT, REFERENCE),
    "model.called": (MODEL_CALLS, REFERENCE),
    "invocation.completed": (ANSWER, REFERENCE),
    "session.ended": (),
}
"""The parts of an invocation that an event of each type can have; any other record can have all parts.

Each event of an invocation can have its reference.
"""


REFUSED = "can be in a refused record:"
"""What the sentence about a part in a refused record says after the part."""


def refused_part(part: str) -> str:
    """Returns how the sentence about a part in a refused record begins after `the`."""
    return f"{part} {REFUSED}"


class RefusedRecord(WireModel):
    """A record of a session that became a dead letter."""

    place: str
    """Where the record is, for a person: the dead letter of a topic, partition and offset, or a document of a file."""
    reason: str
    """The reason of the dead letter."""
    type: str | None = None
    """The type of the event; null if it cannot be read, or is none of the schema's."""
    event_id: str | None = None
    """Id of the event; null if it cannot be read."""
    invocation_id: str | None = None
    """The invocation of the event; null if it cannot be read: the record can belong to each one of the session."""


class _Lost(NamedTuple):
    first: RefusedRecord
    records: int


class LostParts:
    """The parts that refused records can have had, with the first record that can have had each part.

    >>> refused = RefusedRecord(place="the dead letter of t-0@7", reason="too_large", type="invocation.completed")
    >>> LostParts([refused]).sentences()[0]
    'the answer can be in a refused record: the dead letter of t-0@7 (too_large)'
    """

    def __init__(self, refused: Iterable[RefusedRecord], *, are_all: bool = False) -> None:
        """Collects the parts.

        Args:
            refused: The records.
            are_all: Whether nothing else of their invocation is known, so that each part can be lost.
        """
        self._lost: dict[str, _Lost] = {}
        for each in refused:
            for part in ALL_PARTS if are_all else _PARTS.get(each.type or "", ALL_PARTS):
                self._add(part, _Lost(each, 1))

    def with_others(self, others: LostParts) -> LostParts:
        """Returns these parts and those of other records."""
        found = LostParts(())
        for part, lost in (*self._lost.items(), *others._lost.items()):
            found._add(part, lost)
        return found

    def sentences(self) -> list[str]:
        """Returns a sentence for each part, as `Invocation.unread` has them."""
        return [
            f"the {refused_part(part)} {first.place} ({first.reason})"
            + (f", or in {records - 1} more" if records > 1 else "")
            for part, (first, records) in self._lost.items()
        ]

    def _add(self, part: str, lost: _Lost) -> None:
        former = self._lost.get(part)
        self._lost[part] = lost if former is None else _Lost(former.first, former.records + lost.records)
