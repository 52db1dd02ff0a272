"""Defines RefusedRecord: a record of a session that assemble could not use, as far as it is known what was in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field

from traceweir.schemas.base import WireModel
from traceweir.schemas.text import printable

Part = Literal[
    "question",
    "answer",
    "tool_calls",
    "tool_responses",
    "intermediate_responses",
    "retrieved_context",
    "model_calls",
    "times",
    "reference",
    "other",
    "trace",
]
"""A part of what a session tells of an agent's work.

`times` are the times at which an invocation began and ended, `reference` is what was expected, and `other` is what only a
whole invocation has, such as its rubrics.
"""

EVERY_PART: frozenset[Part] = frozenset(get_args(Part))
TRACE = "trace"
"""The type of a record that was to be a reasoning trace."""

_OF_EVENTS = EVERY_PART - {"trace"}
PARTS: Mapping[str, frozenset[Part]] = {
    "invocation.started": frozenset(("question", "reference", "times")),
    "tool.called": frozenset(("tool_calls",)),
    "tool.returned": frozenset(("tool_responses",)),
    "response.intermediate": frozenset(("intermediate_responses",)),
    "retrieval.returned": frozenset(("retrieved_context",)),
    "model.called": frozenset(("model_calls",)),
    "invocation.completed": frozenset(("answer", "times")),
    "invocation.recorded": _OF_EVENTS,
    "session.ended": frozenset(),
    TRACE: frozenset(("trace",)),
}
"""What a record of each type can contain."""


class RefusedRecord(WireModel):
    """A record that became a dead letter, and names this session.

    What is null could not be read. The record itself is in the dead letter with the same topic, partition and offset.
    """

    topic: str
    """The topic of the record; for a record of a file, the topic on which it would have been."""
    partition: int
    """The partition of the record."""
    offset: int
    """The offset of the record; for a record of a file, its number among the records of all files, from 0."""
    reason: str
    """The reason of the dead letter."""
    type: str | None = None
    """The type of the event, or `trace` for a reasoning trace."""
    invocation_id: str | None = None
    """The invocation of the event; null: it can be any invocation of the session."""
    trace_id: str | None = None
    """The id of the reasoning trace."""
    event_id: str | None = None
    """The id of the event."""
    document: Annotated[int, Field(ge=1)] | None = None
    """The number of the document in its file; null for a record of a topic."""

    @property
    def parts(self) -> frozenset[Part]:
        """What the record can have contained."""
        return _OF_EVENTS if self.type is None else PARTS.get(self.type, _OF_EVENTS)

    @property
    def sentence(self) -> str:
        """What was refused, where its dead letter is, and why, for people."""
        what = (
            "a record" if self.type is None else "a reasoning trace" if self.type == TRACE else f"an event {self.type}"
        )
        if self.document is not None:
            return f"{what} was refused ({self.reason}): document {self.document} of the input"
        # The name of a topic comes from another process.
        place = f"topic {printable(self.topic, 249)}, partition {self.partition}, offset {self.offset}"
        return f"{what} was refused ({self.reason}): see the dead letter of {place}"
