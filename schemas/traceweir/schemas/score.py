"""Score: one measured number about one subject, or why there is none."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, Field, JsonValue, model_validator

from traceweir.schemas.base import Identifier, Timestamp, WireModel
from traceweir.schemas.invocation import Level

Status = Literal["PASSED", "FAILED", "NOT_EVALUATED"]
NotEvaluated = Literal["missing_input", "sampled_out", "budget", "timeout", "error", "unsupported"]
Count = Annotated[int, Field(ge=0)]

NAMESPACE = bytes.fromhex("5fca0bcb2d9f5c6a8f3a1b7e4d2c9e10")
"""The UUIDv5 namespace of result and candidate ids."""


class Cost(WireModel):
    """What measuring cost. `cached` says that a stored verdict was used and nothing was paid."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    usd: Annotated[float, Field(ge=0)] = 0.0
    cached: bool = False


class Score(WireModel):
    """One measurement, on the `results` topic.

    `value` is null exactly when `status` is NOT_EVALUATED, and then `not_evaluated_because` says why.

    (`result_id`, `revision`, `attempt`) is unique unless dead letters are replayed. Of one `result_id` the highest (`revision`,
    `attempt`) counts: a later revision of a session has the same ids and a higher revision, and a retry of a revision whose judge
    could not be asked has the same revision and a higher attempt.
    """

    result_id: str
    revision: Count
    attempt: Count = 0
    session_id: Identifier
    segment: Count
    invocation_id: str | None = None
    trace_id: str | None = None
    level: Level
    metric: str
    value: float | None
    threshold: float | None
    status: Status
    not_evaluated_because: NotEvaluated | None = None
    rationale: str = ""
    details: dict[str, JsonValue] = {}
    cost: Cost = Cost()
    scorer_version: str
    config_digest: str
    occurred_at: Timestamp
    evaluated_at: Timestamp

    def wire(self) -> bytes:
        """The Score as JSON, the way it stands on `results`."""
        try:
            return orjson.dumps(self.__dict__, default=_fields, option=orjson.OPT_UTC_Z)
        except TypeError:  # a whole number beyond 64 bits in `details`
            return self.model_dump_json().encode()

    @model_validator(mode="after")
    def _says_one_thing(self) -> Score:
        missing = self.status == "NOT_EVALUATED"
        if missing != (self.value is None) or missing != (self.not_evaluated_because is not None):
            raise ValueError(
                f"{self.metric}: status {self.status} with value {self.value} and reason {self.not_evaluated_because}; "
                "value is null, and a reason given, exactly when the status is NOT_EVALUATED"
            )
        return self


def _fields(model: BaseModel) -> dict[str, Any]:
    return model.__dict__


def uuid5(*parts: str | int) -> str:
    """A UUIDv5 (RFC 9562) of the parts, each told apart from the next.

    >>> uuid5("a", 0) == uuid5("a", 0), uuid5("ab", "c") == uuid5("a", "bc")
    (True, False)
    """
    name = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    text = hashlib.sha1(NAMESPACE + name, usedforsecurity=False).hexdigest()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def result_id(session_id: str, segment: int, level: Level, subject_id: str, metric: str, metric_digest: str) -> str:
    """The id of a result, the same in every run that measures the same subject in the same way.

    `metric_digest` covers the metric, the scorer's version, its options without the threshold, the judge's model and the embedder's id.
    """
    return uuid5(session_id, segment, level, subject_id, metric, metric_digest)
