"""Defines Score: the value of a metric for one subject, or the reason why there is no value."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, Field, JsonValue, model_validator

from traceweir.schemas.base import Identifier, Timestamp, WireModel
from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.invocation import Level

Status = Literal["PASSED", "FAILED", "NOT_EVALUATED"]
INFORMATIONAL = "INFORMATIONAL"
"""The reported status of a value that no threshold judges."""
ReportedStatus = Literal["PASSED", "FAILED", "NOT_EVALUATED", "INFORMATIONAL"]
"""A status as commands, pages, stores and exports show and count it; `reported_status` makes it of that of a record."""
GATE = "gate"
"""The metric of the gate's decisions. A decision is FAILED for every trace that must not be shared."""
NotEvaluated = Literal["missing_input", "sampled_out", "budget", "timeout", "error", "unsupported"]
UNANSWERED: frozenset[NotEvaluated] = frozenset(("budget", "error", "timeout"))
"""The reasons of a judged score without a verdict although a judge was to be asked.

Such a score can get a value in a retry, unless every question got a reply.
"""
Cause = Literal[
    "judge_unavailable",
    "judge_refused",
    "judge_truncated",
    "judge_unparsable",
    "judge_unfit",
    "too_long",
    "not_recorded",
    "record_refused",
    "cascade",
    "settling",
]
"""What a judge lacked for a verdict, where the reason is `error`; or why an input is missing, where it is `missing_input`.

- `judge_unavailable`: it could not be asked, or sent no answer: no connection, a wrong key, an error of the provider.
- `judge_refused`: the model refused, or its provider's filter stopped it.
- `judge_truncated`: the answer was cut off at the limit of its tokens.
- `judge_unparsable`: the answer has no verdict that can be read, such as a tool call or no text.
- `judge_unfit`: it did not tell known cases of the criterion apart (`judge.check` is `require`).
- `too_long`: the question and the longest answer do not fit into the model.
- `not_recorded`: the source of the session does not have the input, or has cut it.
- `record_refused`: the input can be in a record that became a dead letter.
- `cascade`: no condition of the criterion holds, and the session is not in the random share; with `sampled_out`.
- `settling`: the criterion is asked after its `settle_s`, if no later revision comes until then; with `missing_input`.
"""
REASON_OF: Mapping[Cause, NotEvaluated] = MappingProxyType(
    {
        "not_recorded": "missing_input",
        "record_refused": "missing_input",
        "cascade": "sampled_out",
        "settling": "missing_input",
    }
)
"""The reason of a score that is NOT_EVALUATED with a cause; that of the other causes is `error`."""
Source = Literal["code", "model", "human"]
Count = Annotated[int, Field(ge=0)]

NAMESPACE = bytes.fromhex("5fca0bcb2d9f5c6a8f3a1b7e4d2c9e10")
"""The UUIDv5 namespace of result and candidate ids."""


class Cost(WireModel):
    """The cost of a measurement. With `cached`, a stored verdict was used and nothing was paid."""

    input_tokens: Count = 0
    """Number of input tokens of the judge, at least 0."""
    output_tokens: Count = 0
    """Number of output tokens of the judge, at least 0."""
    usd: Annotated[float, Field(ge=0)] = 0.0
    """Price of the tokens in USD, at least 0."""
    cached: bool = False
    """Whether a stored verdict was used, so that nothing was paid."""
    cached_input_tokens: Count = 0
    """How many of the input tokens the provider had in its cache. Left out of the JSON if 0, as the next."""
    reasoning_tokens: Count = 0
    """How many of the output tokens were reasoning."""


class Score(Dimensions):
    """One measurement, on the `results` topic.

    `value` is null exactly when `status` is NOT_EVALUATED; `not_evaluated_because` then contains the reason.

    (`result_id`, `revision`, `attempt`) is unique unless dead letters are replayed. Among the scores with the same
    `result_id`, the one with the highest (`revision`, `attempt`) counts: a later revision of a session has the same ids
    and a higher revision, and a retry after a judge was unavailable has the same revision and a higher attempt.

    The dimensions are those of the measured invocation, of the invocation that a trace tells of, or those that the
    invocations of a session share. A dimension that is null is left out of the JSON.
    """

    result_id: str
    """Id of the result; repeated runs with the same metric and options have the same id."""
    revision: Count
    """Number of the segment's revision, from 0."""
    attempt: Count = 0
    """Number of the attempt to score the revision, from 0; it grows when a judge was not available."""
    session_id: Identifier
    """The session."""
    segment: Count
    """Number of the session's segment, from 0."""
    invocation_id: str | None = None
    """The measured invocation; null at the other levels."""
    trace_id: str | None = None
    """The measured trace; null at the other levels."""
    level: Level
    """What was measured: an invocation, a trace or the session."""
    metric: str
    """Name of the metric."""
    value: float | None
    """The value, in the range of the metric; null if NOT_EVALUATED."""
    threshold: float | None
    """The threshold of the config; null if the metric has none."""
    status: Status
    """PASSED or FAILED against the threshold, or NOT_EVALUATED."""
    not_evaluated_because: NotEvaluated | None = None
    """Why there is no value; null if there is one."""
    cause: Cause | None = None
    """What a judge lacked, or why an input is missing, as far as it is known. Left out of the JSON if null."""
    judge: str | None = None
    """The model that judged, by litellm's name; several models of a fallback that share in the value, joined with ` + `.

    Null if no model has answered, or none was asked. Left out of the JSON if null. The ids do not depend on it.
    """
    inclusion_probability: Annotated[float, Field(ge=0, le=1)] | None = None
    """The probability with which the session was asked for this criterion: by the sampling of the config, and by the
    random share of a cascade unless one of its conditions holds. Null, and left out of the JSON, if it is 1."""
    category: str | None = None
    """The answer of a categorical criterion, of which `value` is the number. Left out of the JSON if null."""
    rationale: str = ""
    """The reason of the value, for people."""
    details: dict[str, JsonValue] = {}
    """Parts of the value, by name; they depend on the metric."""
    cost: Cost = Cost()
    """Cost of the judge."""
    scorer_version: str
    """Version of the scorer; values of different versions cannot be compared."""
    metric_digest: str | None = None
    """Digest of what measured the value: the metric's name, the scorer's version, the options without the threshold, the
    list of the judge's models and the embedder. `result_id` is made of it. Left out of the JSON if null, as in records
    of other programs."""
    config_digest: str
    """Digest of the whole config; equal for equivalent configs."""
    source: Source | None = None
    """What measured the value: `code`, a `model` that judges, or a `human`; null if nothing could measure it."""
    occurred_at: Timestamp
    """The timestamp of the session's last record: when the data was complete, by the clock of Kafka."""
    segment_opened_at: Timestamp | None = None
    """The timestamp of the session segment's first record, by the clock of Kafka; equal in every revision.

    Null, and left out of the JSON, if no such record is known: in a file without times, and in records of former versions.
    """
    started_at: Timestamp | None = None
    """When the measured subject began, by the agents' own clock, in UTC.

    For an invocation, the earliest `occurred_at` of its events; for a trace, its `created_at`; for a session, the
    earliest of both. A revision changes this time only if an earlier event came late. Null if no time is known.
    """
    evaluated_at: Timestamp
    """When the score was computed."""

    def wire(self) -> bytes:
        """Returns the Score as JSON, as on the topic `results`."""
        document = self.__dict__.copy()
        # orjson would call `_fields` for each Score.
        document["cost"] = {
            name: found for name, found in self.cost.__dict__.items() if found or name not in _LEFT_OUT_IF_ZERO
        }
        for name in _LEFT_OUT_IF_NULL:
            if document[name] is None:
                del document[name]
        try:
            return orjson.dumps(document, default=_fields, option=orjson.OPT_UTC_Z)
        except TypeError:
            # An integer of more than 64 bits in `details`.
            return self.model_dump_json(include=set(document)).encode()

    @model_validator(mode="after")
    def _check_value_matches_status(self) -> Score:
        missing = self.status == "NOT_EVALUATED"
        if missing != (self.value is None) or missing != (self.not_evaluated_because is not None):
            raise ValueError(
                f"{self.metric}: status {self.status} with value {self.value} and reason {self.not_evaluated_because}; "
                "value must be null and a reason must be present exactly when the status is NOT_EVALUATED"
            )
        if self.cause is not None:
            reason = REASON_OF.get(self.cause, "error")
            if self.not_evaluated_because != reason:
                raise ValueError(
                    f"{self.metric}: cause {self.cause} with the reason {self.not_evaluated_because}; "
                    f"only a score that is NOT_EVALUATED {reason} has this cause"
                )
        return self


_LEFT_OUT_IF_ZERO = ("cached_input_tokens", "reasoning_tokens")
_LEFT_OUT_IF_NULL = (
    "inclusion_probability", "category", "cause", "judge", "metric_digest", "segment_opened_at", "source", *Dimensions.model_fields,
)  # fmt: skip


def _fields(model: BaseModel) -> dict[str, Any]:
    return model.__dict__


def reported_status(metric: str, status: str, threshold: float | None) -> str:
    """Returns the status of a score as it is shown and counted: INFORMATIONAL for a value that no threshold judges.

    A record without a threshold has PASSED, which says nothing about quality, so it is in no pass rate. A decision of the
    gate is a verdict of its own.

    >>> reported_status("latency", "PASSED", None), reported_status("match", "PASSED", 0.5)
    ('INFORMATIONAL', 'PASSED')
    >>> reported_status("match", "NOT_EVALUATED", None), reported_status("gate", "PASSED", None)
    ('NOT_EVALUATED', 'PASSED')
    """
    return INFORMATIONAL if threshold is None and status != "NOT_EVALUATED" and metric != GATE else status


def recorded_status(reported: str) -> str:
    """Returns the status of the record whose reported status is known.

    >>> recorded_status("INFORMATIONAL"), recorded_status("FAILED")
    ('PASSED', 'FAILED')
    """
    return "PASSED" if reported == INFORMATIONAL else reported


def uuid5(*parts: str) -> str:
    """Returns a UUIDv5 (RFC 9562) of the parts; the boundaries between the parts count.

    >>> uuid5("a", "0") == uuid5("a", "0"), uuid5("ab", "c") == uuid5("a", "bc")
    (True, False)
    """
    name = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    text = hashlib.sha1(NAMESPACE + name, usedforsecurity=False).hexdigest()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def result_id(session_id: str, segment: int, level: Level, subject_id: str, metric: str, metric_digest: str) -> str:
    """Returns the id of a result; runs that measure the same subject in the same way have equal ids.

    `metric_digest` covers the metric, the scorer's version, its options without the threshold, the judge's model and
    the embedder's id.
    """
    return uuid5(session_id, str(segment), level, subject_id, metric, metric_digest)
