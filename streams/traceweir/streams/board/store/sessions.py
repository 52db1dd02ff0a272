"""Answers what is known of a session, what was not scored, and which records could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from pydantic import JsonValue, TypeAdapter

from traceweir.streams.board.store.answers import SessionDetails
from traceweir.streams.board.store.missing_answers import DeadLetterCounts, DeadLetterSummary, NotScoredCount
from traceweir.streams.board.store.selection import Readable, Selection, in_utc
from traceweir.streams.board.store.tables import RESULTS, SESSIONS, Table

MAX_LISTED = 500
"""Maximum length of a list in an answer."""
MAX_SEGMENTS = 20
"""Maximum number of segments of one session in an answer. A segment has a record of up to some megabytes."""
MAX_RESULTS = 1_000
"""Maximum number of results of one session in an answer, and of results that were replaced."""
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_LAST = datetime.max.replace(microsecond=999_000, tzinfo=UTC)
WHAT_TO_DO: Mapping[str, str] = {
    "missing_input": "The session does not have what the metric compares or reads; the rationale names it. If it is a "
    "reference: write what was expected with `traceweir references push FILE`, an eval set, or as `reference` in the events; or "
    "choose criteria that need none, such as those of examples/live.json.",
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
    "not_recorded": "The agent did not send what the metric reads; the rationale names it. For most instrumentations one "
    "variable turns content on: the page of your framework in docs/guides/connect-your-agent.md names it. `traceweir sessions "
    "--from-kafka --session ID` shows all that is missing.",
    "cascade": "No condition of the criterion's `when` holds, and the session is not in the share of `else`.",
    "settling": "The criterion waits for late events (`settle_s`); its score comes when no later revision has come.",
    "record_refused": "What the metric reads can be in a record that became a dead letter: mend it, and replay it.",
}
"""How to get a value, by what a judge lacked or why an input is missing."""


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
    order = ("segment", "level", "metric", "invocation_id", "trace_id", "revision", "attempt", '"offset"')
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
