"""Answers which sessions there are, what is known of one, what was not scored, and which records could not be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import JsonValue, TypeAdapter

from traceweir.schemas.score import GATE, INFORMATIONAL
from traceweir.streams.board.store.answers import (
    DeadLetterCounts,
    DeadLetterSummary,
    NotScoredCount,
    SessionDetails,
    SessionSummary,
)
from traceweir.streams.board.store.paging import Position, SessionPage
from traceweir.streams.board.store.selection import Readable, Selection, in_utc, stored
from traceweir.streams.board.store.tables import DIMENSIONS, RESULTS, SESSIONS, Table

MAX_LISTED = 500
"""Maximum length of a list in an answer."""
MAX_SEGMENTS = 20
"""Maximum number of segments of one session in an answer. A segment has a record of up to some megabytes."""
MAX_RESULTS = 1_000
"""Maximum number of results of one session in an answer, and of results that were replaced."""
MAX_SEARCHED = 200
"""Maximum number of the latest sessions with a text that are looked at."""
TRACE_VALUE = "trace_value"
"""The metric that the gate compares with its threshold; it is no criterion."""
_IS_CRITERION = f"metric NOT IN ('{GATE}', '{TRACE_VALUE}')"
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_FIRST_WINDOW, _WIDER = timedelta(hours=1), 8
"""The last part of a span in which results are looked for, and how often wider each next one is."""

_LAST = datetime.max.replace(microsecond=999_000, tzinfo=UTC)
WHAT_TO_DO: Mapping[str, str] = {
    "missing_input": "The session lacks what the metric reads. The rationale names the part, and the setting that "
    "brings it.",
    "sampled_out": "The config scores a share of the sessions: raise `sampling`.",
    "budget": "The judge's budget of the day was spent: raise `budget`, sample fewer sessions, or set `judge.retry_later`.",
    "timeout": "The score did not come in time: raise TRACEWEIR_SCORE_TIMEOUT_S or TRACEWEIR_JUDGE_TIMEOUT_S.",
    "error": "The scorer or its judge failed. The rationale has the message; `judge.retry_later` asks the judge again.",
    "unsupported": "This version of Traceweir does not compute the metric: remove it from the config, or add a plugin.",
}
"""How to get a value, by the reason why there is none."""
AFTER_A_CAUSE: Mapping[str, str] = {
    "judge_unavailable": "The judge could not be asked, or sent no answer. The rationale has the message of its provider; "
    "`judge.retry_later` asks again.",
    "judge_refused": "The model refused, or its provider's filter stopped it: loosen the filter, or ask another model.",
    "judge_truncated": "The answer was cut off: raise `judge.max_output_tokens`, or ask a model that reasons less.",
    "judge_unparsable": "The answer has no verdict that can be read: ask another model, or raise `judge.repairs`.",
    "judge_unfit": "The model did not tell known cases of the criterion apart: ask another model, or set `judge.check` to "
    "`warn`. `traceweir judge check` shows what it judges wrongly.",
    "too_long": "The question and the longest answer do not fit into the model: ask a model with a longer context, or lower "
    "`judge.max_output_tokens`.",
    "not_recorded": "The source of the session does not have what the metric reads. The rationale names the part, and the "
    "setting that brings it.",
    "cascade": "No condition of the criterion's `when` holds, and the session is not in the share of `else`.",
    "settling": "The criterion waits for late events (`settle_s`); its score comes when no later revision has come.",
    "record_refused": "What the metric reads can be in a record that became a dead letter: mend it, and replay it.",
}
"""How to get a value, by what a judge lacked or why an input is missing."""
NO_CAUSE = "none"
"""Selects results without a value and without a cause."""


def session_page(
    store: Readable,
    selection: Selection,
    *,
    status: str | None = None,
    reason: str | None = None,
    cause: str | None = None,
    least: float | None = None,
    most: float | None = None,
    text: str | None = None,
    readable: Callable[[str], str] = str,
    limit: int = 50,
    after: Position | None = None,
) -> SessionPage:
    """Returns the latest sessions of a span of time, the newest first, and where the list goes on.

    A page can have fewer sessions than `limit` and still not be the last one: a session whose results have several
    times is left out where it would be repeated, and a search looks at a number of sessions for each page.

    Args:
        store: The store.
        selection: The span and the dimensions. With a metric, only sessions with a result of this metric.
        status: Only sessions with a result of this status, of the selected metric if there is one.
        reason: Only sessions with a result without a value for this reason.
        cause: Only sessions with a result without a value for this cause, or `NO_CAUSE` for one without a cause.
        least: Only sessions with a result of at least this value, of the selected metric if there is one.
        most: Only sessions with a result of at most this value, of the selected metric if there is one.
        text: Only sessions whose id or whose record contains this text, in any case. At most `MAX_SEARCHED` sessions
            with such a record are looked at.
        readable: Returns the part of a record that the asker may read; only that part is searched.
        limit: Maximum number of sessions, up to `MAX_LISTED`.
        after: Only sessions after this place, which `SessionPage.next` of the page before has named.

    Raises:
        StoreError: the store cannot answer.
    """
    limit = min(limit, MAX_LISTED)
    conditions = _Conditions(status, reason, cause, least, most)
    if text is not None:
        return _found_by_text(store, selection, text, readable, conditions, limit, after)
    if _is_about_results(selection, conditions):
        rows = _matching(store, selection, conditions, limit, after=after)
        # A session that was listed before, because it has a newer result, is not listed again.
        found = rows if after is None else _without_newer(store, selection, conditions, rows, after)
    else:
        where, parameters = _after(*selection.where("last_record_at", of_results=False), "last_record_at", after)
        found = rows = store.query(
            f"SELECT key, session_id, segment, last_record_at AS at FROM sessions WHERE {where} "
            f"ORDER BY last_record_at DESC, session_id, segment LIMIT {limit}",
            parameters,
        )
    return SessionPage(sessions=_summaries(store, found), next=Position.of(rows[-1]) if len(rows) == limit else None)


def sessions(store: Readable, selection: Selection, **conditions: Any) -> list[SessionSummary]:
    """Returns the sessions of `session_page`, which describes the conditions.

    Raises:
        StoreError: the store cannot answer.
    """
    return session_page(store, selection, **conditions).sessions


def trace(store: Readable, trace_id: str) -> tuple[str | None, dict[str, Any] | None]:
    """Returns the session of a reasoning trace, and the trace itself; None for what the store does not know.

    Raises:
        StoreError: the store cannot answer.
    """
    places = store.query(
        "SELECT key, session_id, segment FROM results WHERE trace_id = $trace_id ORDER BY occurred_at DESC LIMIT 1",
        {"trace_id": trace_id},
    )
    if not places:
        return None, None
    (place,) = places
    documents = store.query(
        "SELECT document FROM sessions WHERE key = $key AND session_id = $session_id AND segment = $segment "
        "AND document IS NOT NULL",
        place,
    )
    document = _parsed(documents[0]["document"]) if documents else None
    traces = document.get("traces") if isinstance(document, dict) else None
    found = (each for each in (traces if isinstance(traces, list) else ()) if isinstance(each, dict))
    return place["session_id"], next((each for each in found if each.get("id") == trace_id), None)


def session(store: Readable, session_id: str) -> SessionDetails | None:
    """Returns what the store knows of a session; None if it knows nothing.

    Of more than `MAX_SEGMENTS` segments or `MAX_RESULTS` results the last ones are returned, by the number of the
    segment, and the others are counted.

    Raises:
        StoreError: the store cannot answer.
    """
    segments, segments_left_out = _latest_of(store, SESSIONS, "sessions", session_id, ("segment",), MAX_SEGMENTS)
    order = ("segment", "level", "metric", "invocation_id", "trace_id", "revision", "attempt")
    results, results_left_out = _latest_of(store, RESULTS, "results", session_id, order, MAX_RESULTS)
    replaced, replaced_left_out = _latest_of(store, RESULTS, "replaced_results", session_id, order, MAX_RESULTS)
    if not segments and not results:
        return None
    return SessionDetails(
        session_id=session_id,
        segments=segments,
        results=results,
        replaced_results=replaced,
        segments_left_out=segments_left_out,
        results_left_out=results_left_out,
        replaced_results_left_out=replaced_left_out,
    )


def recorded_segments(store: Readable, session_id: str) -> dict[int, str | None]:
    """Returns the record of each known segment of a session, by its number; None for one whose record the store lacks.

    Raises:
        StoreError: the store cannot answer.
    """
    one = {"session_id": session_id}
    where = "WHERE key = md5_number_lower($session_id) AND session_id = $session_id"
    scored = store.query(f"SELECT DISTINCT segment FROM results {where}", one)
    recorded = store.query(f"SELECT segment, document FROM sessions {where}", one)
    records: dict[int, str | None] = dict.fromkeys(row["segment"] for row in scored)
    records.update((row["segment"], row["document"]) for row in recorded)
    return dict(sorted(records.items()))


def not_scored(store: Readable, selection: Selection) -> list[NotScoredCount]:
    """Returns why results of a span of time have no value, the most frequent reason first.

    Raises:
        StoreError: the store cannot answer.
    """
    where, parameters = selection.where("occurred_at")
    rows = store.query(
        "SELECT metric, not_evaluated_because AS reason, cause, count(*) AS results, arg_max(session_id, occurred_at) AS "
        f"session_id, arg_max(rationale, occurred_at) AS rationale FROM results WHERE status = 'NOT_EVALUATED' AND {where} "
        "GROUP BY ALL ORDER BY results DESC, metric, reason, cause",
        parameters,
    )
    return [NotScoredCount(**row, what_to_do=what_to_do(row["reason"], row["cause"])) for row in rows]


def what_to_do(reason: str, cause: str | None) -> str:
    """Returns how to get a value. A cause that this version does not know has the advice of its reason."""
    return AFTER_A_CAUSE.get(cause or "", WHAT_TO_DO[reason])


def dead_letters(store: Readable, selection: Selection, *, limit: int = 50) -> DeadLetterCounts:
    """Returns the dead letters of a span of time. Filters by dimension do not apply: an unreadable record has none.

    Raises:
        StoreError: the store cannot answer.
    """
    span = selection.span
    where = "WHERE written_at >= $since AND written_at < $until"
    counts = store.query(
        f"SELECT reason, count(*) AS n FROM dead_letters {where} GROUP BY reason ORDER BY n DESC, reason", span
    )
    names = ", ".join(name for name in DeadLetterSummary.model_fields if name != "replayed")
    latest = store.query(
        f"SELECT {names}, letter_id IN (SELECT letter_id FROM replays) AS replayed FROM dead_letters {where} "
        f"ORDER BY written_at DESC, letter_id LIMIT {min(limit, MAX_LISTED)}",
        span,
    )
    return DeadLetterCounts(
        by_reason={row["reason"]: row["n"] for row in counts},
        latest=[DeadLetterSummary(**row | {"written_at": in_utc(row["written_at"])}) for row in latest],
        replay_command=f"traceweir dlq replay --since {_option(selection.since)} --until {_option(selection.until)}",
    )


def _option(moment: datetime) -> str:
    """Returns a time as an option, rounded up to milliseconds, which select the same records in both options."""
    moment = min(moment.astimezone(UTC), _LAST)
    moment += timedelta(microseconds=-moment.microsecond % 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _latest_of(
    store: Readable, table: Table, name: str, session_id: str, order: Sequence[str], limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Returns the rows of a session in this order, those of its last segments, and the number of rows left out."""
    where = "WHERE key = md5_number_lower($session_id) AND session_id = $session_id"
    one = {"session_id": session_id}
    rows = store.query(
        f"SELECT * FROM (SELECT {_names(table.column_names)} FROM {name} {where} "
        f"ORDER BY segment DESC, {', '.join(order)} LIMIT {limit}) AS found ORDER BY {', '.join(order)}",
        one,
    )
    left_out = 0
    if len(rows) == limit:
        (found,) = store.query(f"SELECT count(*) AS n FROM {name} {where}", one)
        left_out = found["n"] - limit
    return [_document(row) for row in rows], left_out


class _Conditions(NamedTuple):
    """What a result must have; None: any."""

    status: str | None
    reason: str | None
    cause: str | None
    least: float | None
    most: float | None


def _is_about_results(selection: Selection, conditions: _Conditions) -> bool:
    return selection.is_about_results or any(each is not None for each in conditions)


def _found_by_text(
    store: Readable,
    selection: Selection,
    text: str,
    readable: Callable[[str], str],
    conditions: _Conditions,
    limit: int,
    after: Position | None,
) -> SessionPage:
    where, parameters = _after(*selection.where("last_record_at", of_results=False), "last_record_at", after)
    rows = store.query(
        "SELECT key, session_id, segment, last_record_at AS at, document FROM sessions WHERE "
        f"(contains(lower(session_id), $text) OR contains(lower(document), $text)) AND {where} "
        f"ORDER BY last_record_at DESC, session_id, segment LIMIT {MAX_SEARCHED}",
        parameters | {"text": text.lower()},
    )
    found = [
        row
        for row in rows
        if text.lower() in row["session_id"].lower() or text.lower() in readable(row["document"] or "").lower()
    ]
    if found and _is_about_results(selection, conditions):
        matching = _matching(store, selection, conditions, MAX_LISTED, among=found)
        wanted = {(row["session_id"], row["segment"]) for row in matching}
        found = [row for row in found if (row["session_id"], row["segment"]) in wanted]
    last = found[limit - 1] if len(found) > limit else rows[-1] if len(rows) == MAX_SEARCHED else None
    return SessionPage(sessions=_summaries(store, found[:limit]), next=Position.of(last) if last is not None else None)


def _matching(
    store: Readable,
    selection: Selection,
    conditions: _Conditions,
    limit: int,
    *,
    among: Sequence[dict[str, Any]] | None = None,
    after: Position | None = None,
) -> list[dict[str, Any]]:
    where, parameters = _of_results(selection, conditions, among)
    having = ""
    until = selection.until
    if after is not None:
        condition, place = after.after("max(occurred_at)")
        where = f"{where} AND occurred_at <= $after_at"
        having = f"HAVING {condition} "
        parameters = parameters | place
        until = min(until, after.moment)
    # A session can have any number of results, and the latest sessions are mostly in the last part of the span.
    window = _FIRST_WINDOW
    while True:
        since = until - window if window < until - selection.since else selection.since
        found = store.query(
            "SELECT key, session_id, segment, max(occurred_at) AS at FROM results "
            f"WHERE {where} GROUP BY key, session_id, segment {having}"
            f"ORDER BY max(occurred_at) DESC, session_id, segment LIMIT {limit}",
            parameters | {"since": stored(since)},
        )
        if len(found) == limit or since == selection.since:
            return found
        window *= _WIDER


def _without_newer(
    store: Readable, selection: Selection, conditions: _Conditions, rows: Sequence[dict[str, Any]], after: Position
) -> list[dict[str, Any]]:
    """Returns the rows of sessions whose matching results are all at or after this place in the list."""
    where, parameters = _of_results(selection, conditions, rows)
    newer = store.query(
        f"SELECT DISTINCT session_id, segment FROM results WHERE {where} AND occurred_at > $after_at",
        parameters | {"after_at": after.at},
    )
    listed = {(row["session_id"], row["segment"]) for row in newer}
    return [row for row in rows if (row["session_id"], row["segment"]) not in listed]


def _of_results(
    selection: Selection, conditions: _Conditions, among: Sequence[dict[str, Any]] | None
) -> tuple[str, dict[str, Any]]:
    """Returns the condition for results of the selection, those of some sessions or of all, and its parameters."""
    status, reason, cause, least, most = conditions
    where, parameters = selection.where("occurred_at")
    for condition, name, bound in (("value >= $least", "least", least), ("value <= $most", "most", most)):
        if bound is not None:
            where = f"{where} AND {condition}"
            parameters = parameters | {name: bound}
    if among is not None:
        where = f"{where} AND key IN (SELECT unnest($keys))"
        parameters = parameters | {"keys": [row["key"] for row in among]}
    if status is not None:
        where = f"{where} AND status = $status"
        parameters = parameters | {"status": status}
        if selection.metric is None:
            # A trace that is not worth sharing has not failed a criterion.
            where = f"{where} AND {_IS_CRITERION}"
    if reason is not None:
        where = f"{where} AND not_evaluated_because = $reason"
        parameters = parameters | {"reason": reason}
    if cause == NO_CAUSE:
        where = f"{where} AND status = 'NOT_EVALUATED' AND cause IS NULL"
    elif cause is not None:
        where = f"{where} AND cause = $cause"
        parameters = parameters | {"cause": cause}
    return where, parameters


def _after(where: str, parameters: dict[str, Any], time: str, after: Position | None) -> tuple[str, dict[str, Any]]:
    """Returns a condition for sessions with what makes them be after a place in the list."""
    if after is None:
        return where, parameters
    condition, place = after.after(time)
    # The first comparison is implied by the second, and lets the database skip what is newer.
    return f"{where} AND {time} <= $after_at AND {condition}", parameters | place


def _summaries(store: Readable, places: Sequence[dict[str, Any]]) -> list[SessionSummary]:
    if not places:
        return []
    keys = {"keys": [row["key"] for row in places]}
    dimensions = ", ".join(DIMENSIONS)
    known = store.query(
        f"SELECT session_id, segment, revision, last_record_at, {dimensions} FROM sessions WHERE key IN (SELECT unnest($keys))",
        keys,
    )
    scores = store.query(
        f"""
        SELECT session_id, segment, count(*) FILTER ({_IS_CRITERION} AND status = 'PASSED') AS passed,
        count(*) FILTER ({_IS_CRITERION} AND status = 'FAILED') AS failed,
        count(*) FILTER ({_IS_CRITERION} AND status = '{INFORMATIONAL}') AS informational,
        count(*) FILTER ({_IS_CRITERION} AND status = 'NOT_EVALUATED') AS not_evaluated,
        min(value) FILTER (metric = '{TRACE_VALUE}') AS trace_value, count(*) FILTER (metric = '{GATE}') AS decisions,
        count(*) FILTER (metric = '{GATE}' AND status = 'PASSED') AS accepted,
        {", ".join(f"any_value({name}) AS {name}" for name in DIMENSIONS)} FROM results
        WHERE key IN (SELECT unnest($keys)) GROUP BY session_id, segment
        """,
        keys,
    )
    sessions_by_place = {(row["session_id"], row["segment"]): row for row in known}
    scores_by_place = {(row["session_id"], row["segment"]): row for row in scores}
    wanted = [(row["session_id"], row["segment"]) for row in places]
    return [_summary(place, sessions_by_place.get(place), scores_by_place.get(place, {})) for place in wanted]


def _summary(place: tuple[str, int], found: dict[str, Any] | None, scores: Mapping[str, Any]) -> SessionSummary:
    about = found or scores
    gate: Literal["accepted", "rejected"] | None = None
    if scores.get("decisions"):
        gate = "accepted" if scores["accepted"] == scores["decisions"] else "rejected"
    return SessionSummary(
        session_id=place[0],
        segment=place[1],
        revision=found["revision"] if found else None,
        closed_at=in_utc(found["last_record_at"]) if found else None,
        **{name: about.get(name) for name in DIMENSIONS},
        passed=scores.get("passed", 0),
        failed=scores.get("failed", 0),
        informational=scores.get("informational", 0),
        not_evaluated=scores.get("not_evaluated", 0),
        trace_value=scores.get("trace_value"),
        gate=gate,
    )


def _document(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row as JSON: times in UTC with their zone, and columns of JSON as documents."""
    found: dict[str, Any] = {}
    for name, cell in row.items():
        if isinstance(cell, datetime):
            cell = in_utc(cell).isoformat()
        elif name in ("details", "labels", "document") and cell is not None:
            cell = _parsed(cell)
        found[name] = cell
    return found


def _parsed(text: str) -> JsonValue:
    """Returns a document; one that JSON's usual readers refuse, such as a number of 400 digits, stays a text."""
    try:
        return _JSON.validate_python(orjson.loads(text))
    except ValueError:
        return text


def _names(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)
