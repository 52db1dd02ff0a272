"""Decides which reasoning traces a publication of a trace adds, and under which ids.

A reasoning trace has the id of the outermost span of its invocation. If late spans put a span around it, it would have
another id, and its former revision would stay. Therefore a document keeps the id under which it was published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from traceweir.streams.intake.spans.reasoning_ids import moved_id

ReasoningTrace = dict[str, Any]


class LateTraces(NamedTuple):
    """The reasoning traces that turn the result of one reading of a trace into that of the next."""

    changed: list[ReasoningTrace]
    """Those that differ from what was published, each with the id of its former revision."""
    kept: list[str]
    """A text, as `kept` returns it, for each invocation with an id that a later reading does not tell."""


def late_traces(
    before: Sequence[ReasoningTrace],
    after: Sequence[ReasoningTrace],
    ids: Iterable[str],
    is_published: Callable[[str], bool],
    was_kept: Callable[[str], bool],
    *,
    moves: bool = False,
) -> LateTraces:
    """Returns the reasoning traces that differ from those of the publication before.

    Args:
        before: The reasoning traces of the spans that the last publication had.
        after: The reasoning traces of all spans.
        ids: The ids that the spans of the last publication can have given to reasoning traces.
        is_published: Whether a reasoning trace was published under an id.
        was_kept: Whether a publication before has returned a text in `kept`.
        moves: Whether all reasoning traces move to another session, where they have ids of their own.
    """
    former = {_invocation(each): each for each in before}
    sessions = {each["id"]: _session(each) for each in before}
    taken = {each["id"] for each in after}
    free = [name for name in dict.fromkeys(ids) if name not in taken and is_published(name)]

    def name_before(invocation: str) -> str:
        return next((name for name in free if was_kept(kept(invocation, name))), "")

    found = LateTraces([], [])
    present = {_invocation(each) for each in after}
    for each in before:
        invocation = _invocation(each)
        name = each["id"]
        name = name if is_published(name) else name_before(invocation)
        # It can come back below another span.
        if name and invocation not in present:
            found.kept.append(kept(invocation, name))
    for each in after:
        invocation = _invocation(each)
        name = each["id"]
        known = former.get(invocation)
        if known is not None and known["id"] in free and not is_published(name):
            name = known["id"]
        elif not is_published(name):
            name = name_before(invocation) or name
        if moves:
            if name != each["id"]:
                found.kept.append(kept(invocation, moved_id(name)))
            found.changed.append(each | {"id": moved_id(name)})
            continue
        if sessions.get(name, _session(each)) != _session(each) or (known and _session(known) != _session(each)):
            # A trace id in another session would be a conflict.
            continue
        if name != each["id"]:
            found.kept.append(kept(invocation, name))
        document = each | {"id": name}
        if known is None or known | {"id": name} != document:
            found.changed.append(document)
    return found


def kept(invocation_id: str, name: str) -> str:
    """Returns a text that says that the reasoning trace of an invocation has kept an id."""
    return f"{invocation_id} {name}"


def _invocation(trace: ReasoningTrace) -> str:
    return str(trace["metadata"]["invocation_id"])


def _session(trace: ReasoningTrace) -> str:
    return str(trace["metadata"]["session_id"])
