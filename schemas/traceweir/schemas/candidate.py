"""Defines Candidate: a trace with all data that the gate needs for its decision."""

from __future__ import annotations

import base64
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, TypeAdapter, model_validator

from traceweir.schemas.base import Identifier, JsonObject, NonEmpty, Timestamp, WireModel
from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.score import NotEvaluated, Source, Status
from traceweir.schemas.session import MOST_REVISIONS, MOST_SEGMENTS
from traceweir.schemas.trace import PipelineTrace

# A process without an embedder sees no vector.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        data = base64.b64encode(vector.astype("<f4", copy=False).tobytes()).decode()
        return cls(embedder=embedder, dimensions=len(vector), data=data)

    @property
    def vector(self) -> NDArray[np.float32]:
        """The values, shape (dimensions,), read-only."""
        import numpy as np

        return np.frombuffer(base64.b64decode(self.data), "<f4")


class CriterionMeasure(WireModel):
    """What has measured a criterion that the gate requires; a certificate is about the same."""

    source: Source | None = None
    """`model` if a judge has; its verdict needs a certificate."""
    metric_digest: str | None = None
    """The score's `metric_digest`."""
    judge: str | None = None
    """The score's `judge`."""
    threshold: float | None = None
    """The score's threshold."""


class Verdict(WireModel):
    """The outcome of a criterion that the gate requires."""

    status: Status
    """The status of the criterion in this session."""
    not_evaluated_because: NotEvaluated | None = None
    """The reason of NOT_EVALUATED; null for the other statuses."""
    measured: CriterionMeasure | None = None
    """What has measured it; null unless the config of the score worker has `gate.require_certified`."""


class Candidate(Dimensions):
    """A trace for the gate, on the topic `candidates`; the record's key is the novelty scope.

    Among the candidates of a trace, the one with the highest (`segment`, `revision`, `attempt`) counts. Without an
    embedding, `novelty_missing` contains the reason: there is no embedder, or the embedder failed on this text. The
    dimensions become those of the gate's Scores, and do not influence its decision.
    """

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
    scope: Annotated[NonEmpty, Field(max_length=MAX_SCOPE_CHARS)]
    """The novelty scope: the task domain in a normal form and the embedder, or one scope for all."""
    trace: PipelineTrace
    """The trace, without unknown keys."""
    required: dict[str, Verdict]
    """The outcome of each criterion that the gate requires, by metric."""
    embedding: Embedding | None = None
    """The vector of the trace's text; null if there is none."""
    novelty_missing: str | None = None
    """Why there is no vector; null if there is one."""
    occurred_at: Timestamp
    """Timestamp of the session's last record."""
    segment_opened_at: Timestamp | None = None
    """Timestamp of the segment's first record, equal in every revision; null if it is not known."""
    gate_rules: JsonObject | None = None
    """The gate's rules of the config that scored the session; null: those of the worker's config file."""

    def wire(self) -> bytes:
        """Returns the candidate as JSON, as on the topic `candidates`."""
        return _CANDIDATE.dump_json(self, by_alias=True, exclude_unset=True)

    def digest(self, *, with_rules: bool = True) -> bytes:
        """Returns a digest of 16 bytes of what the gate's scores depend on: all fields but ids, time and embedding.

        Two revisions with the same trace, statuses, dimensions and rules have the same digest.

        Args:
            with_rules: False leaves out the rules, because the gate decides by the same rules without them.
        """
        without = _OF_ONE_REVISION if with_rules else _OF_ONE_REVISION | {"gate_rules"}
        content = _CANDIDATE.dump_json(self, by_alias=True, exclude_unset=True, exclude=without)
        return blake2b(content, digest_size=16).digest()


_CANDIDATE = TypeAdapter(Candidate)
_OF_ONE_REVISION = {
    "candidate_id",
    "session_id",
    "segment",
    "revision",
    "attempt",
    "embedding",
    "novelty_missing",
    "occurred_at",
    "segment_opened_at",
}
"""Fields that change from revision to revision of the same trace, or follow from its text."""
