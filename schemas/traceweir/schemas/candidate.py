"""Defines Candidate: a trace with all data that the gate needs for its decision."""

from __future__ import annotations

import base64
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, model_validator
from pydantic_core import to_json

from traceweir.schemas.base import Identifier, NonEmpty, Timestamp, WireModel
from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.score import NotEvaluated, Status
from traceweir.schemas.session import MOST_REVISIONS, MOST_SEGMENTS
from traceweir.schemas.trace import PipelineTrace

MAX_SCOPE_CHARS = 32_768
"""Maximum length of a novelty scope. Its domain has 1,024 characters at most; NFKC writes one character as up to 18."""


class Embedding(WireModel):
    """A vector: the id of its embedder, its length, and its values as little-endian float32 in base64."""

    embedder: str
    """Id of the embedder; only vectors of the same embedder are compared."""
    dimensions: Annotated[int, Field(ge=1)]
    """Number of values, at least 1."""
    data: str
    """The values as little-endian float32, in base64."""

    rules_read_attributes: ClassVar = True

    @model_validator(mode="after")
    def _check_length(self) -> Embedding:
        size = len(base64.b64decode(self.data, validate=True))
        if size != 4 * self.dimensions:
            raise ValueError(
                f"data has {size} bytes; {self.dimensions} float32 values take {4 * self.dimensions} bytes"
            )
        return self

    @classmethod
    def of(cls, embedder: str, vector: NDArray[np.float32]) -> Embedding:
        """Returns the wire form of a vector of shape (dimensions,)."""
        data = base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()
        return cls(embedder=embedder, dimensions=len(vector), data=data)

    @property
    def vector(self) -> NDArray[np.float32]:
        """The values, shape (dimensions,), read-only."""
        return np.frombuffer(base64.b64decode(self.data), "<f4")


class Verdict(WireModel):
    """The outcome of a criterion that the gate requires."""

    status: Status
    """The status of the criterion in this session."""
    not_evaluated_because: NotEvaluated | None = None
    """The reason of NOT_EVALUATED; null for the other statuses."""


class _Question(WireModel):
    """The part of a candidate that the gate decides on. It is a class of its own so that its fields come first."""

    candidate_id: str
    """Id of the candidate, derived from its session and trace, so that a repeated run gives the same id."""
    session_id: Identifier
    """The session of the trace."""
    segment: Annotated[int, Field(ge=0, lt=MOST_SEGMENTS)]
    """Number of the session's segment, from 0."""
    revision: Annotated[int, Field(ge=0, lt=MOST_REVISIONS)]
    """Number of the segment's revision, from 0."""
    attempt: Annotated[int, Field(ge=0, lt=MOST_REVISIONS)] = 0
    """Number of the attempt to score the revision, from 0; it grows when a judge was not available."""
    # `decisive_part` depends on the order of the next four fields.
    scope: Annotated[NonEmpty, Field(max_length=MAX_SCOPE_CHARS)]
    """The novelty scope: the task domain in a normal form and the embedder, or one scope for all."""
    trace: PipelineTrace
    """The trace, with unknown keys."""
    required: dict[str, Verdict]
    """The outcome of each criterion that the gate requires, by metric."""
    embedding: Embedding | None = None
    """The vector of the trace's text; null if there is none."""
    novelty_missing: str | None = None
    """Why there is no vector; null if there is one."""
    occurred_at: Timestamp
    """Timestamp of the session's last record."""


class Candidate(Dimensions, _Question):
    """A trace for the gate, on the topic `candidates`; the record's key is the novelty scope.

    Among the candidates of a trace, the one with the highest (`segment`, `revision`, `attempt`) counts. Without an
    embedding, `novelty_missing` contains the reason: there is no embedder, or the embedder failed on this text. The
    dimensions become those of the gate's Scores, and do not influence its decision.
    """

    # A text, because the names of its keys must not look like those of the candidate (`_cut`).
    gate_rules: str | None = None
    """The gate's rules of the config that scored the session, as JSON; null: those of the worker's config file."""

    def wire(self) -> bytes:
        """Returns the candidate as JSON, as on the topic `candidates`."""
        return _CANDIDATE.dump_json(self, by_alias=True, exclude_unset=True)


_CANDIDATE = TypeAdapter(Candidate)
_MOMENT = b',"occurred_at":"'


def decisive_part(wire: bytes) -> bytes:
    """Returns the inputs of the gate's decision: the fields `scope`, `trace` and `required` of a candidate, as JSON.

    The function cuts these fields out of the serialised candidate, because a second serialisation of the trace costs
    as much as the first. JSON escapes quotation marks inside strings. So the first `,"scope":`, and the last
    `,"embedding":` before an object or null, are the candidate's own fields: only strings and numbers precede the
    first, and after the last only a label can have the same name, whose value is a string.

    Args:
        wire: The candidate as written by `Candidate.wire`, with every field set.

    Raises:
        ValueError: the candidate lacks these fields.
    """
    start, end = _cut(wire)
    return b"{" + wire[start:end] + b"}"


def changing_part(wire: bytes, *, default_rules: str | None = None) -> bytes:
    """Returns what makes a candidate of a later revision differ from the one before.

    These are the decisive part, the dimensions and the gate's rules. The bytes without dimensions and rules are those of
    `decisive_part`.

    Args:
        wire: The candidate as written by `Candidate.wire`, with every field set.
        default_rules: The rules by which the gate decides on a candidate without rules. The part of a candidate with these
            rules is that of a candidate without rules, because the decision is the same.

    Raises:
        ValueError: the candidate lacks these fields.
    """
    start, end = _cut(wire)
    # Between the embedding and the time of the session are numbers, and texts in which quotation marks are escaped.
    moment = wire.index(_MOMENT, end) + len(_MOMENT)
    dimensions = wire.index(b'"', moment) + 1
    part = b"{" + wire[start:end] + wire[dimensions:]
    if default_rules is None:
        return part
    last_field = b',"gate_rules":' + to_json(default_rules) + b"}"
    return part.removesuffix(last_field) + b"}" if part.endswith(last_field) else part


def _cut(wire: bytes) -> tuple[int, int]:
    """Returns where the fields that decide begin and end."""
    start = wire.index(b',"scope":') + 1
    end = max(wire.rfind(b',"embedding":{'), wire.rfind(b',"embedding":null'))
    if end < start:
        raise ValueError("the field embedding is not found after the field scope")
    return start, end
