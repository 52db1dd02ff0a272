"""Candidate: a trace on its way to the gate, with all that the gate needs to decide."""

from __future__ import annotations

import base64
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, model_validator

from traceweir.schemas.base import Identifier, NonEmpty, Timestamp, WireModel
from traceweir.schemas.score import NotEvaluated, Status
from traceweir.schemas.trace import ReasoningTrace

Count = Annotated[int, Field(ge=0)]


class Embedding(WireModel):
    """A vector: which embedder made it, its length, and its little-endian float32 values in base64."""

    embedder: str
    dimensions: Annotated[int, Field(ge=1)]
    data: str

    @model_validator(mode="after")
    def _has_its_length(self) -> Embedding:
        size = len(base64.b64decode(self.data, validate=True))
        if size != 4 * self.dimensions:
            raise ValueError(f"data holds {size} bytes; {self.dimensions} float32 values take {4 * self.dimensions}")
        return self

    @classmethod
    def of(cls, embedder: str, vector: NDArray[np.float32]) -> Embedding:
        """The wire form of a vector of shape (dimensions,)."""
        data = base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()
        return cls(embedder=embedder, dimensions=len(vector), data=data)

    @property
    def vector(self) -> NDArray[np.float32]:
        """The values, shape (dimensions,), read-only."""
        return np.frombuffer(base64.b64decode(self.data), "<f4")


class Verdict(WireModel):
    """How a criterion that the gate requires came out."""

    status: Status
    not_evaluated_because: NotEvaluated | None = None


class Candidate(WireModel):
    """A trace for the gate, one a trace, on `candidates` under its novelty scope.

    Of one trace the highest (`segment`, `revision`, `attempt`) counts. Without an embedding, `novelty_missing` says why: there is no
    embedder, or it failed on this text.
    """

    candidate_id: str
    session_id: Identifier
    segment: Count
    revision: Count
    attempt: Count = 0
    # `decisive_part` relies on the order of the next four.
    scope: NonEmpty
    trace: ReasoningTrace
    required: dict[str, Verdict]
    embedding: Embedding | None = None
    novelty_missing: str | None = None
    occurred_at: Timestamp

    def wire(self) -> bytes:
        """The candidate as JSON, the way it stands on `candidates`."""
        return _CANDIDATE.dump_json(self, by_alias=True, exclude_unset=True)


_CANDIDATE = TypeAdapter(Candidate)


def decisive_part(wire: bytes) -> bytes:
    """What the gate decides by: the fields `scope`, `trace` and `required` of a candidate, as a JSON object.

    The part is cut out of the candidate, because to serialise the trace a second time costs as much as the first time. In JSON a
    quotation mark inside a string is escaped. So the first `,"scope":` and the last `,"embedding":` are the candidate's own fields: only
    strings and numbers stand before the one, and nothing after the other has a field of that name.

    Args:
        wire: The candidate as `Candidate.wire` writes it, with every field given.

    Raises:
        ValueError: the candidate has no such fields.
    """
    start, end = wire.index(b',"scope":') + 1, wire.rindex(b',"embedding":')
    return b"{" + wire[start:end] + b"}"
