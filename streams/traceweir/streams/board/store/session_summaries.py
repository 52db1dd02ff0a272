"""Summarizes sessions for a list: what they are, how they were scored, and what their records say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from traceweir.schemas.score import GATE, INFORMATIONAL
from traceweir.streams.board.store.answers import SessionSummary
from traceweir.streams.board.store.conditions import IS_CRITERION, TRACE_VALUE
from traceweir.streams.board.store.selection import Readable, in_utc
from traceweir.streams.board.store.session_facts import SessionFacts, facts_of, preview
from traceweir.streams.board.store.tables import DIMENSIONS

Place = tuple[str, int]
"""The id of a session, and the number of a segment."""


def summaries_of(
    store: Readable, places: Sequence[Mapping[str, Any]], readable: Callable[[str], str] | None
) -> list[SessionSummary]:
    """Returns the summaries of sessions, in their order.

    Args:
        store: The store.
        places: The `key`, the `session_id` and the `segment` of each, and the value by which they are ordered as `found`.
        readable: Returns the part of a text that the asker may read; None: there is no preview.

    Raises:
        StoreError: the store cannot answer.
    """
    if not places:
        return []
    keys = {"keys": [row["key"] for row in places]}
    known = store.query(
        f"SELECT session_id, segment, revision, first_record_at, last_record_at, {', '.join(DIMENSIONS)}, document "
        "FROM sessions WHERE key IN (SELECT unnest($keys))",
        keys,
    )
    scores = store.query(
        f"""
        SELECT session_id, segment, count(*) FILTER ({IS_CRITERION} AND status = 'PASSED') AS passed,
        count(*) FILTER ({IS_CRITERION} AND status = 'FAILED') AS failed,
        count(*) FILTER ({IS_CRITERION} AND status = '{INFORMATIONAL}') AS informational,
        count(*) FILTER ({IS_CRITERION} AND status = 'NOT_EVALUATED') AS not_evaluated,
        min(value) FILTER (metric = '{TRACE_VALUE}') AS trace_value, count(*) FILTER (metric = '{GATE}') AS decisions,
        count(*) FILTER (metric = '{GATE}' AND status = 'PASSED') AS accepted, sum(cost_usd) AS usd,
        {", ".join(f"any_value({name}) AS {name}" for name in DIMENSIONS)} FROM results
        WHERE key IN (SELECT unnest($keys)) GROUP BY session_id, segment
        """,
        keys,
    )
    failed = store.query(
        f"SELECT DISTINCT session_id, segment, metric FROM results WHERE {IS_CRITERION} AND status = 'FAILED' "
        "AND key IN (SELECT unnest($keys)) ORDER BY metric",
        keys,
    )
    failed_by_place: dict[Place, list[str]] = {}
    for row in failed:
        failed_by_place.setdefault(_place(row), []).append(row["metric"])
    known_by_place = {_place(row): row for row in known}
    scores_by_place = {_place(row): row for row in scores}
    return [
        _summary(
            place,
            known_by_place.get(place),
            scores_by_place.get(place, {}),
            failed_by_place.get(place, []),
            readable,
        ).model_copy(update={"metric_value": row.get("found")})
        for row in places
        for place in (_place(row),)
    ]


def _summary(
    place: Place,
    known: Mapping[str, Any] | None,
    scores: Mapping[str, Any],
    failed: list[str],
    readable: Callable[[str], str] | None,
) -> SessionSummary:
    about = known or scores
    facts = (facts_of(known["document"]) if known else None) or SessionFacts()
    duration_s = facts.duration_s
    if duration_s is None and known:
        duration_s = (known["last_record_at"] - known["first_record_at"]).total_seconds()
    gate: Literal["accepted", "rejected"] | None = None
    if scores.get("decisions"):
        gate = "accepted" if scores["accepted"] == scores["decisions"] else "rejected"
    return SessionSummary(
        session_id=place[0],
        segment=place[1],
        revision=known["revision"] if known else None,
        closed_at=in_utc(known["last_record_at"]) if known else None,
        **{name: about.get(name) for name in DIMENSIONS},
        passed=scores.get("passed", 0),
        failed=scores.get("failed", 0),
        informational=scores.get("informational", 0),
        not_evaluated=scores.get("not_evaluated", 0),
        trace_value=scores.get("trace_value"),
        gate=gate,
        failed_metrics=failed,
        question=preview(facts.question, readable) if readable is not None else None,
        answer=preview(facts.answer, readable) if readable is not None else None,
        tools=list(facts.tools),
        failed_tools=list(facts.failed_tools),
        input_tokens=facts.input_tokens,
        output_tokens=facts.output_tokens,
        duration_s=duration_s,
        judge_usd=scores.get("usd") or 0.0,
    )


def _place(row: Mapping[str, Any]) -> Place:
    return row["session_id"], row["segment"]
