"""Withdraws the reasoning traces of a trace from the session of its own id, because late spans name another session.

`late_events` does the same with events: an event that belongs to another session now is withdrawn in the former one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from traceweir.streams.pipeline.collect.late_traces import ReasoningTrace, kept

_CONTENT = "The spans of this trace belong to another session."


def withdrawals(
    before: Sequence[ReasoningTrace],
    ids: Iterable[str],
    is_published: Callable[[str], bool],
    was_kept: Callable[[str], bool],
) -> list[ReasoningTrace]:
    """Returns revisions that withdraw all reasoning traces of the former session. They have no content.

    Args:
        before: The reasoning traces of the spans that the last publication had.
        ids: The ids that these spans can have given to reasoning traces.
        is_published: Whether a reasoning trace was published under an id.
        was_kept: Whether a publication before has returned a text in `LateTraces.kept`.
    """
    names = [name for name in dict.fromkeys(ids) if is_published(name)]
    known: dict[str, ReasoningTrace] = {}
    for each in before:
        invocation = each["metadata"]["invocation_id"]
        held = [each["id"], *(name for name in names if was_kept(kept(invocation, name)))]
        known.setdefault(next((name for name in held if is_published(name)), each["id"]), each)
    return [_withdrawn(name, known.get(name, before[0])) for name in names] if before else []


def _withdrawn(name: str, former: ReasoningTrace) -> ReasoningTrace:
    # The domain stays, because it leads to the partition of the gate that has decided on the trace.
    # The other fields let a gate of an earlier version, which does not know `withdrawn`, reject the trace.
    metadata: dict[str, Any] = former["metadata"] | {
        "success": False,
        "visibility": "private",
        "privacy_level": "private",
        "withdrawn": True,
    }
    return former | {
        "id": name,
        "metadata": metadata,
        "task": {"objective": _CONTENT},
        "steps": [{"step_id": 1, "type": "thought", "content": _CONTENT}],
        "outcome": {"result_summary": "", "confidence": 0.0},
    }
