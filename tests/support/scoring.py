"""Builds sessions, turns, traces and candidates, with defaults for all fields that a test does not set."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from traceweir.schemas.candidate import Candidate, Verdict
from traceweir.schemas.invocation import Content, FunctionCall, IntermediateData, Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Score
from traceweir.schemas.session import Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn
from traceweir.scorers import Plan, evaluate
from traceweir.scorers.judge import Judge

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


def make_trace(**changes: Any) -> ReasoningTrace:
    """Returns a trace. The fields `metadata`, `task` and `outcome` are merged; other fields are replaced."""
    return ReasoningTrace.model_validate(trace_document(**changes))


def trace_document(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": "kp:trace:1",
        "metadata": {
            "created_at": "2026-01-31T11:59:00Z",
            "task_domain": "travel",
            "success": True,
            "quality_score": 0,
            "visibility": "network",
            "privacy_level": "aggregated",
        },
        "task": {"objective": "Book two seats"},
        "steps": [{"step_id": 0, "type": "thought", "content": "Look for trains."}],
        "outcome": {"result_summary": "Booked", "confidence": 0.9},
    }
    for key, value in changes.items():
        document[key] = {**document[key], **value} if isinstance(document.get(key), dict) else value
    return document


def make_session(session_id: str = "session-1", **changes: Any) -> Session:
    return Session(
        **{
            "session_id": session_id,
            "segment": 0,
            "revision": 0,
            "closed_because": "idle",
            "first_record_at": NOW,
            "last_record_at": NOW,
            "events": [],
            "traces": [],
            **changes,
        }
    )


def make_turn(
    invocation_id: str = "i1",
    answer: str | None = None,
    tools: Sequence[FunctionCall] = (),
    reference: Reference | None = None,
) -> Turn:
    final = None if answer is None else Content.of(answer)
    used = IntermediateData(tool_uses=list(tools))
    return Turn(Invocation(invocation_id=invocation_id, final_response=final, intermediate_data=used), reference)


def expecting(answer: str | None = None, tools: Sequence[FunctionCall] | None = None) -> Reference:
    return Reference(
        final_response=None if answer is None else Content.of(answer), tool_uses=None if tools is None else list(tools)
    )


def make_candidate(
    trace: ReasoningTrace | None = None, required: Mapping[str, Verdict] | None = None, **changes: Any
) -> Candidate:
    return Candidate(
        **{
            "candidate_id": "c1",
            "session_id": "session-1",
            "segment": 0,
            "revision": 0,
            "scope": "travel@none",
            "trace": trace or make_trace(),
            "required": dict(required or {}),
            "novelty_missing": "no_embedder",
            "occurred_at": NOW,
            **changes,
        }
    )


async def scores_of(
    plan: Plan,
    turns: Sequence[Turn],
    session: Session | None = None,
    timeout_s: float = 5,
    judge: Judge | None = None,
) -> list[Score]:
    return await evaluate(plan, session or make_session(), turns, now=lambda: NOW, timeout_s=timeout_s, judge=judge)


def install(folder: Path, package: str, entry_points: Mapping[str, str], group: str = "traceweir.scorers") -> None:
    """Writes the metadata that pip writes for a package with entry points for scorers, or for another group."""
    about = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {place}" for name, place in entry_points.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    if str(folder) not in sys.path:
        raise AssertionError("put the folder on sys.path first: monkeypatch.syspath_prepend(folder)")
