"""Arranges what the store knows of a session as its page shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from pydantic import JsonValue, ValidationError

from traceweir.schemas.conversation import Exchange, conversation_of
from traceweir.schemas.figures import counted
from traceweir.schemas.score import GATE, INFORMATIONAL
from traceweir.schemas.session import Session
from traceweir.scorers.evaluation.languages import language_warning
from traceweir.scorers.text.scripts import script_of
from traceweir.streams.board.dashboard.page.diff import Piece, differences
from traceweir.streams.board.dashboard.page.waterfall import Waterfall, waterfalls_of
from traceweir.streams.board.store.conditions import TRACE_VALUE

_VALUE_DIMENSIONS = ("complexity", "novelty", "tool_diversity", "outcome_confidence")
_LINES: Mapping[str, tuple[str, str]] = {
    "user": ("message of the user", "messages of the user"),
    "agent": ("message of the agent", "messages of the agent"),
    "tool_call": ("tool call", "tool calls"),
    "tool_result": ("tool result", "tool results"),
    "error": ("error", "errors"),
}
"""The kinds of lines that are shortened in a dialogue: the names of one and of several."""
MAX_TEXT = 20_000
"""Characters of a text that a page shows; the JSON API has the whole text."""


@dataclass(frozen=True)
class SegmentView:
    """A segment of a session."""

    row: Mapping[str, Any]
    """The columns of the segment, without its document."""
    exchanges: list[Exchange] | None
    """What happened; None if the content is hidden or the document cannot be read."""
    traces: list[Mapping[str, JsonValue]]
    """The reasoning traces."""
    waterfalls: list[Waterfall] = field(default_factory=list)
    """The spans and the measured steps by time."""


@dataclass(frozen=True)
class ScoreView:
    """A result with what replaced it or what it replaced."""

    row: Mapping[str, Any]
    """The columns of the result."""
    dimensions: list[tuple[str, float]]
    """The dimensions of a trace value, from 0 to 1."""
    reasons: list[str]
    """Why the gate decided as it did."""
    earlier: list[Mapping[str, Any]] = field(default_factory=list)
    """The results that a later revision or attempt has replaced, the oldest first."""
    script: str | None = None
    """The script of the question and the answer; None if the result is of no invocation, or the content is hidden."""

    @property
    def details(self) -> dict[str, Any]:
        """What the scorer says beside the value."""
        details = self.row.get("details")
        return details if isinstance(details, dict) else {}

    @property
    def turns(self) -> list[str]:
        """The ids of the invocations on which a score of a session rests."""
        turns = self.details.get("turns")
        return [each for each in turns if isinstance(each, str)] if isinstance(turns, list) else []

    @property
    def replies(self) -> str | None:
        """How many replies of a judge count; None if no judge was asked."""
        replies = self.details.get("replies")
        most = self.details.get("num_samples")
        return f"{replies} of at most {most} replies" if isinstance(replies, int) else None

    @property
    def left_out(self) -> list[str]:
        """What was left out of each prompt so that it fits into the judge's window; empty if nothing was."""
        responses = self.details.get("responses")
        # A criterion that asks about each response says it of each.
        asked = [self.details, *(responses if isinstance(responses, list) else ())]
        fitted = [each.get("fitted") for each in asked if isinstance(each, dict)]
        return [
            _left_out(each) for each in fitted if isinstance(each, dict) and isinstance(each.get("shortened"), dict)
        ]

    @property
    def language_warning(self) -> str | None:
        """Why the status says little in the language of the texts; None if nothing is known against it."""
        details = {"script": self.script, **self.details}
        return language_warning(str(self.row.get("metric")), self.row.get("threshold"), details)


@dataclass(frozen=True)
class NearestTrace:
    """The known trace that a trace of the session is most similar to."""

    of: str
    """Id of the trace of the session."""
    trace_id: str
    """Id of the known trace."""
    similarity: float
    """Cosine of the embeddings."""
    session_id: str | None = None
    """The session of the known trace; None if the store does not have it any more."""
    pieces: list[Piece] = field(default_factory=list)
    """The words of both traces: those that only this trace has, only the known one, or both."""


def _left_out(fitted: Mapping[str, Any]) -> str:
    lines = [
        counted(number, *_LINES.get(kind, (f"line {kind}", f"lines {kind}")))
        for kind, number in fitted["shortened"].items()
        if isinstance(number, int)
    ]
    return f"{fitted.get('characters')} characters of {', '.join(lines)}"


def segment_views(segments: Sequence[Mapping[str, Any]]) -> list[SegmentView]:
    """Returns the segments of a session, as they were shown by `shown`."""
    return [_segment(row) for row in segments]


def score_views(
    results: Sequence[Mapping[str, Any]], replaced: Sequence[Mapping[str, Any]], segments: Sequence[SegmentView]
) -> list[ScoreView]:
    """Returns the results of a session: criteria first, those that failed before the others; then value and gate."""
    scripts = {
        (segment.row["segment"], exchange.turn.invocation.invocation_id): script_of(
            f"{exchange.question or ''} {exchange.answer or ''}"
        )
        for segment in segments
        for exchange in segment.exchanges or ()
    }
    earlier: dict[str, list[Mapping[str, Any]]] = {}
    for row in replaced:
        earlier.setdefault(row["result_id"], []).append(row)
    order = {"FAILED": 0, "NOT_EVALUATED": 1, "PASSED": 2, INFORMATIONAL: 3}
    ranked = sorted(
        results,
        key=lambda row: (
            row["metric"] == GATE,
            row["metric"] == TRACE_VALUE,
            order.get(row["status"], 4),
            row["metric"],
            row["invocation_id"] or row["trace_id"] or "",
        ),
    )
    return [
        replace(
            _score(row, earlier.get(row["result_id"], [])), script=scripts.get((row["segment"], row["invocation_id"]))
        )
        for row in ranked
    ]


def resting_on(scores: Sequence[ScoreView]) -> dict[tuple[int, str], list[ScoreView]]:
    """Returns the scores of a session by the segment and the id of each invocation on which they rest."""
    found: dict[tuple[int, str], list[ScoreView]] = {}
    for score in scores:
        for invocation_id in score.turns:
            found.setdefault((score.row["segment"], invocation_id), []).append(score)
    return found


def nearest_of(scores: Sequence[ScoreView]) -> NearestTrace | None:
    """Returns the known trace that is nearest to a trace of the session; None if no score names one."""
    found = []
    for score in scores:
        nearest = score.details.get("nearest")
        if score.row["metric"] == TRACE_VALUE and isinstance(nearest, dict):
            found.append(
                NearestTrace(
                    str(score.row["trace_id"]), str(nearest.get("trace_id")), float(nearest.get("similarity") or 0.0)
                )
            )
    return max(found, key=lambda each: each.similarity, default=None)


def compared(
    nearest: NearestTrace, session_id: str | None, own: Mapping[str, Any] | None, known: Mapping[str, Any] | None
) -> NearestTrace:
    """Returns the known trace with its session, and with the differences of both traces, as far as both are known."""
    pieces = differences(_text_of(own), _text_of(known)) if own is not None and known is not None else []
    return replace(nearest, session_id=session_id, pieces=pieces)


def _text_of(trace: Mapping[str, Any]) -> str:
    """Returns the texts of a reasoning trace: its objective, its steps, and its result."""
    task = trace.get("task")
    outcome = trace.get("outcome")
    lines = [str(task.get("objective", "")) if isinstance(task, dict) else ""]
    steps = trace.get("steps")
    for step in steps if isinstance(steps, list) else ():
        tool = step.get("tool") or {}
        lines.append(" ".join(filter(None, [step.get("type"), tool.get("name"), step.get("content")])))
    if isinstance(outcome, dict):
        lines.append(str(outcome.get("result_summary") or ""))
    return "\n".join(line for line in lines if line)


def _segment(row: Mapping[str, Any]) -> SegmentView:
    document = row.get("document")
    columns = {name: value for name, value in row.items() if name != "document"}
    if not isinstance(document, dict):
        return SegmentView(columns, None, [])
    found = document.get("traces")
    traces = found if isinstance(found, list) else []
    try:
        session = Session.model_validate_json(orjson.dumps(document))
        return SegmentView(columns, conversation_of(session), traces, waterfalls_of(session))
    except (ValidationError, RecursionError):
        # A redacted text can break a rule of the schema.
        return SegmentView(columns, None, traces)


def _score(row: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> ScoreView:
    details = row.get("details")
    details = details if isinstance(details, dict) else {}
    dimensions = [
        (name.replace("_", " "), float(details[name]))
        for name in _VALUE_DIMENSIONS
        if row["metric"] == TRACE_VALUE and isinstance(details.get(name), int | float)
    ]
    reasons = details.get("reasons")
    return ScoreView(
        row,
        dimensions,
        [str(each) for each in reasons] if row["metric"] == GATE and isinstance(reasons, list) else [],
        sorted(earlier, key=lambda each: (each["revision"], each["attempt"])),
    )
