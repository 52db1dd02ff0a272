"""Turns scores into OpenTelemetry: the event `gen_ai.evaluation.result`, or a span beside the judged one.

The names are those of the GenAI semantic conventions, and of OpenInference's annotations in spans. What they have no name
for begins with `traceweir.`. All of it depends on the score alone, so that a score that is sent twice is the same twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import orjson
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO, LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from traceweir.schemas.score import Score, reported_status
from traceweir.streams.tools.export.content import Content, explanation, labels

EVENT_NAME = "gen_ai.evaluation.result"
SCOPE = "traceweir.export"
"""The instrumentation scope. The stage `collect` leaves out what scopes of Traceweir send, so that nothing goes round."""
LABELS = {"PASSED": "pass", "FAILED": "fail"}
"""The labels of verdicts; a value that no threshold judges has none."""
ANNOTATOR_KINDS = {"code": "CODE", "model": "LLM", "human": "HUMAN"}
"""OpenInference's names for what measured a score."""

Value: TypeAlias = str | bool | int | float
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event(score: Score, content: Content) -> LogRecord:
    """Returns the event of a score, within the judged span if the score knows it.

    Raises:
        ValueError: a number or a time of the score does not fit into OTLP.
    """
    judged = score.trace_context
    at = _nanoseconds(score.evaluated_at)
    return LogRecord(
        time_unix_nano=at,
        observed_time_unix_nano=at,
        severity_number=SEVERITY_NUMBER_INFO,
        event_name=EVENT_NAME,
        trace_id=bytes.fromhex(judged.trace_id) if judged is not None else b"",
        span_id=bytes.fromhex(judged.span_id or "") if judged is not None else b"",
        attributes=key_values(attributes(score, content)),
    )


def span(score: Score, content: Content) -> Span:
    """Returns a span without duration, below the judged span if the score knows it.

    The scores of a session without known spans share a trace whose id is made from the session's id.

    Raises:
        ValueError: a number or a time of the score does not fit into OTLP.
    """
    judged = score.trace_context
    at = _nanoseconds(score.evaluated_at)
    found = Span(
        trace_id=bytes.fromhex(judged.trace_id) if judged is not None else _digest(16, score.session_id),
        span_id=_digest(8, identity(score)),
        name=f"evaluation {score.metric}",
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=at,
        end_time_unix_nano=at,
        attributes=key_values(attributes(score, content) | _annotation(score, content)),
    )
    if judged is not None and judged.span_id is not None:
        found.parent_span_id = bytes.fromhex(judged.span_id)
        found.links.add(trace_id=found.trace_id, span_id=found.parent_span_id)
    return found


def attributes(score: Score, content: Content) -> dict[str, Value]:
    """Returns the attributes of a score; what is unknown is left out."""
    own: dict[str, Value | None] = {
        "result_id": score.result_id,
        "revision": score.revision,
        "attempt": score.attempt,
        "level": score.level,
        "segment": score.segment,
        "invocation_id": score.invocation_id,
        "reasoning_trace_id": score.trace_id,
        "status": reported_status(score.metric, score.status, score.threshold),
        "cause": score.cause,
        "judge": score.judge,
        "category": score.category,
        "threshold": score.threshold,
        "source": score.source,
        "config_digest": score.config_digest,
        "app_name": score.app_name,
        "agent_version": score.agent_version,
        "model": score.model,
        "labels": orjson.dumps(found).decode() if (found := labels(score, content)) else None,
        "cost.usd": score.cost.usd,
        "cost.input_tokens": score.cost.input_tokens,
        "cost.output_tokens": score.cost.output_tokens,
        "cost.cached": score.cost.cached,
    }
    named: dict[str, Value | None] = {
        "gen_ai.evaluation.name": score.metric,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": _label(score),
        "gen_ai.evaluation.explanation": explanation(score, content) or None,
        "gen_ai.evaluation.evaluator.version": score.scorer_version,
        "error.type": score.not_evaluated_because,
        "gen_ai.conversation.id": score.session_id,
        "session.id": score.session_id,
        "gen_ai.agent.name": score.agent_name,
        "deployment.environment.name": score.environment,
        "user.id": score.user_id,
        **{f"traceweir.{name}": value for name, value in own.items()},
    }
    return {name: value for name, value in named.items() if value is not None}


def identity(score: Score) -> str:
    """Returns what tells a score from all others: the same score is sent again under the same identity."""
    return f"{score.session_id}\x1f{score.result_id}\x1f{score.revision}\x1f{score.attempt}"


def resource(found: Mapping[str, str]) -> Resource:
    """Returns the sender of all scores."""
    return Resource(attributes=key_values(found))


def scope(version: str) -> InstrumentationScope:
    """Returns the instrumentation scope of all scores."""
    return InstrumentationScope(name=SCOPE, version=version)


def key_values(found: Mapping[str, Value]) -> Iterable[KeyValue]:
    """Returns attributes as OTLP has them."""
    return [_key_value(name, value) for name, value in found.items()]


def _annotation(score: Score, content: Content) -> dict[str, Value]:
    found: dict[str, Value | None] = {
        "name": score.metric,
        "score": score.value,
        "label": _label(score),
        "explanation": explanation(score, content) or None,
        "annotator_kind": ANNOTATOR_KINDS.get(score.source or ""),
        "identifier": score.result_id,
    }
    named = {f"evaluations.0.evaluation.{name}": value for name, value in found.items() if value is not None}
    return {"openinference.span.kind": "EVALUATOR", **named}


def _label(score: Score) -> str | None:
    return LABELS.get(reported_status(score.metric, score.status, score.threshold))


def _key_value(name: str, value: Value) -> KeyValue:
    found: Any = KeyValue(key=name)
    kind = {bool: "bool_value", int: "int_value", float: "double_value"}.get(type(value), "string_value")
    setattr(found.value, kind, value)
    return found  # type: ignore[no-any-return]


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000


def _digest(size: int, text: str) -> bytes:
    """Returns an id of this many bytes. OpenTelemetry forbids zeros, which no text is known to give."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=size).digest()
