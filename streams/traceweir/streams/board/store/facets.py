"""Counts by what the sessions of a list can be narrowed: metrics, tools, users, versions, reasons, labels and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from traceweir.schemas.score import GATE
from traceweir.streams.board.store.conditions import NO_CAUSE, Conditions, labels_of
from traceweir.streams.board.store.rollups import rejected_because
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.board.store.session_facts import SessionFacts, facts_of
from traceweir.streams.board.store.session_list import places
from traceweir.streams.board.store.sessions import MAX_LISTED

MAX_VALUES = 20
"""Maximum number of values of a facet."""
FACETS = (
    *("metric", "cause", "gate_reason", "tool", "tool_error", "user_id", "app_name", "agent_version"),
    *("config_digest", "judge", "label"),
)
"""The parameters of a list that are counted, in the order in which they are shown."""
_COLUMNS = ("metric", "user_id", "app_name", "agent_version", "config_digest", "judge", "cause")
_OF_SESSIONS = ("app_name", "agent_version")
"""The facets that the record of a session has too."""
_RECORDS_AT_ONCE = 100


class FacetValue(BaseModel):
    """A value of a facet."""

    value: str
    """The value, as the parameter of the list takes it."""
    sessions: int
    """Number of sessions with this value."""


class Facet(BaseModel):
    """By what sessions can be narrowed, and how many sessions there are for each value."""

    name: str
    """The parameter of the list."""
    values: list[FacetValue]
    """The most frequent values, the most sessions first."""


class Facets(BaseModel):
    """The facets of a list of sessions."""

    sessions: int
    """Number of sessions that were counted: the latest ones."""
    are_all: bool
    """Whether these are all sessions of the list."""
    facets: list[Facet]
    """The facets that have a value."""


def facets(
    store: Readable, selection: Selection, conditions: Conditions, readable: Callable[[str], str] | None = None
) -> Facets:
    """Returns by what the sessions of a list can be narrowed, of the latest `MAX_LISTED` at most.

    Searches for a text or a tool are counted in the latest sessions that are read for them.

    Raises:
        StoreError: the store cannot answer.
    """
    found, last, total = places(store, selection, conditions, readable=readable, limit=MAX_LISTED)
    counts: dict[str, dict[str, set[tuple[str, int]]]] = {name: {} for name in FACETS}
    wanted = {_place(row) for row in found}
    for name, value, place in _values(store, selection, conditions, found):
        if place in wanted:
            counts[name].setdefault(value, set()).add(place)
    return Facets(
        sessions=len(found),
        are_all=total == len(found) if total is not None else last is None,
        facets=[Facet(name=name, values=_ranked(values)) for name, values in counts.items() if values],
    )


def _values(
    store: Readable, selection: Selection, conditions: Conditions, found: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str, tuple[str, int]]]:
    """Yields each facet, its value and a session that has it."""
    if not found:
        return
    keys = {"keys": [row["key"] for row in found]}
    # A condition on a dimension is one on results only if another condition is.
    of_records = () if selection.is_about_results or conditions.are_of_results else _OF_SESSIONS
    where, parameters = conditions.where(selection)
    rows = store.query(
        f"SELECT DISTINCT session_id, segment, {', '.join(_COLUMNS)}, labels, status FROM results "
        f"WHERE {where} AND key IN (SELECT unnest($keys))",
        parameters | keys,
    )
    for row in rows:
        place = _place(row)
        for name in _COLUMNS:
            if row[name] and name not in of_records:
                yield name, row[name], place
        if row["status"] == "NOT_EVALUATED" and row["cause"] is None:
            yield "cause", NO_CAUSE, place
        for label in labels_of(row["labels"]):
            yield "label", label, place
    decisions = store.query(
        f"SELECT DISTINCT session_id, segment, status, details FROM results WHERE metric = '{GATE}' AND status = 'FAILED' "
        "AND occurred_at >= $since AND occurred_at < $until AND key IN (SELECT unnest($keys))",
        selection.span | keys,
    )
    for row in decisions:
        for reason in rejected_because(GATE, row["status"], row["details"]):
            yield "gate_reason", reason, _place(row)
    for at in range(0, len(found), _RECORDS_AT_ONCE):
        some = [row["key"] for row in found[at : at + _RECORDS_AT_ONCE]]
        records = store.query(
            f"SELECT session_id, segment, {', '.join(_OF_SESSIONS)}, document FROM sessions "
            "WHERE key IN (SELECT unnest($keys))",
            {"keys": some},
        )
        for row in records:
            place = _place(row)
            for name in of_records:
                if row[name]:
                    yield name, row[name], place
            facts = facts_of(row["document"]) or SessionFacts()
            for tool in facts.tools:
                yield "tool", tool, place
            for tool in facts.failed_tools:
                yield "tool_error", tool, place


def _ranked(values: Mapping[str, set[tuple[str, int]]]) -> list[FacetValue]:
    ranked = sorted(values.items(), key=lambda each: (-len(each[1]), each[0]))
    return [FacetValue(value=value, sessions=len(places)) for value, places in ranked[:MAX_VALUES]]


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["session_id"], row["segment"]
