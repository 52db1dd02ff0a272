"""Writes an invocation, as read from its spans, as a ReasoningTrace."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from traceweir.streams.intake.spans.attributes import ABSENT, plain, plain_text, text_of
from traceweir.streams.intake.spans.conventions import CONVENTIONS
from traceweir.streams.intake.spans.invocation_events import arguments_of, utc_time
from traceweir.streams.intake.spans.reasoning_ids import reasoning_trace_id
from traceweir.streams.intake.spans.records import Reading
from traceweir.streams.intake.spans.span import Span

_FRAMEWORKS = (
    *(pair for each in CONVENTIONS for pair in each.frameworks),
    *(pair for each in CONVENTIONS for pair in each.clients),
)
"""Words in the name of a scope, each with its framework."""
MAX_DOMAIN_CHARS = 1_024
_MAX_SCOPE_CHARS = 256
"""Beginning of the name of an instrumentation scope in which the word of a framework is looked for."""
_INPUT_DEPTH = 3
"""Number of objects and lists around the input of a step: the document, its steps, and the step."""


def framework_of(spans: list[Span]) -> str:
    """Returns the framework that the instrumentation scopes name; empty if they name none."""
    scopes = {span.scope for span in spans}
    places = [_place_of_framework(scope[:_MAX_SCOPE_CHARS]) for scope in scopes]
    return _FRAMEWORKS[first][1] if (first := min(places, default=len(_FRAMEWORKS))) < len(_FRAMEWORKS) else ""


@lru_cache(maxsize=256)
def _place_of_framework(scope: str) -> int:
    """Returns the place of the first framework whose word is in the name of a scope; the number of all if none is."""
    known = scope.lower()
    return next((place for place, (word, _) in enumerate(_FRAMEWORKS) if word in known), len(_FRAMEWORKS))


def reasoning_trace(reading: Reading, visibility: Literal["private", "org", "network"]) -> dict[str, Any]:
    """Returns the document of an invocation. Its values are plain: JSON can represent them.

    The domain of the task is the name of the agent, else of the service. The spans tell neither the confidence of the
    agent nor the quality of the result: confidence is 1 for a success and 0 otherwise, quality is 0 until it is valued.
    """
    root = reading.turn.roots[0].span
    agent = plain_text(reading.agent or reading.app)
    framework = framework_of([node.span for node in reading.turn.nodes])
    success = not reading.error and (bool(reading.answer) or "answer" in reading.missing.parts)
    metadata: dict[str, Any] = {
        "created_at": utc_time(reading.turn.start_ns),
        **({"agent_id": agent} if agent else {}),
        **({"framework": framework} if framework else {}),
        "task_domain": agent[:MAX_DOMAIN_CHARS] or "unknown",
        "success": success,
        "quality_score": 0.0,
        "visibility": visibility,
        "privacy_level": "private" if visibility == "private" else "aggregated",
        "session_id": plain_text(reading.session_id),
        "invocation_id": plain_text(reading.invocation_id),
    }
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": reasoning_trace_id(reading.trace_id, root.span_id),
        "metadata": metadata,
        "task": {"objective": plain_text(reading.question or reading.missing.parts.get("question", "unknown"))},
        "steps": _steps(reading),
        "outcome": {"result_summary": plain_text(reading.answer), "confidence": 1.0 if success else 0.0},
    }


def _steps(reading: Reading) -> list[dict[str, Any]]:
    found: list[tuple[tuple[int, int, int], dict[str, Any]]] = []
    for model in reading.models:
        if text := model.text:
            end = model.end_ns
            milliseconds = max(end - model.start_ns, 0) / 1e6
            found.append(((end, 0, 0), {"type": "thought", "content": plain_text(text), "latency_ms": milliseconds}))
    failed_before: set[str] = set()
    for place, call in enumerate(reading.calls):
        name = plain_text(call.name)
        recovers = call.name in failed_before
        step: dict[str, Any] = {
            "type": "error_recovery" if recovers else "tool_call",
            "tool": {"name": name},
        }
        args = arguments_of(call)
        if args is not None:
            step["input"] = plain(args, _INPUT_DEPTH)
        if call.run is not None:
            step["latency_ms"] = max(call.run.span.end_ns - call.run.span.start_ns, 0) / 1e6
        begin = call.order[0]
        found.append(((begin, 1, place), step))
        end = max(call.run.span.end_ns if call.run else begin, begin)
        failed_before.discard(call.name)
        if call.error is not None:
            failed_before.add(call.name)
        if call.error is not None or call.result is not ABSENT:
            output = call.error if call.error is not None else text_of(plain(call.result))
            observed = {"type": "observation", "tool": {"name": name}, "output_summary": plain_text(output)}
            found.append(((end, 2, place), observed))
    if not found:
        text = plain_text(reading.answer) or "The spans contain no step of the agent."
        found.append(((0, 0, 0), {"type": "thought", "content": text}))
    found.sort(key=lambda each: each[0])
    return [{"step_id": number, **step} for number, (_, step) in enumerate(found, 1)]
