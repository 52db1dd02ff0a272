"""Answers which sessions of a time range match, in order and page by page, with a summary of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from traceweir.streams.board.store.answers import SessionSummary
from traceweir.streams.board.store.conditions import IS_CRITERION, Conditions, as_json
from traceweir.streams.board.store.paging import OF_METRIC, Order, Place, Position, SessionPage, ValuePosition
from traceweir.streams.board.store.selection import Readable, Selection, stored
from traceweir.streams.board.store.session_facts import SessionFacts, facts_of
from traceweir.streams.board.store.session_summaries import summaries_of
from traceweir.streams.board.store.sessions import MAX_LISTED

MAX_SEARCHED = 200
"""Maximum number of sessions whose texts are read for a page of a list."""
_FIRST_WINDOW, _WIDER = timedelta(hours=1), 8
"""The last part of a time range in which results are looked for, and how often wider each next one is."""
_ORDERED_BY: Mapping[Order, str] = {"lowest": "min(value)", "highest": "max(value)", "failures": "count(*)"}
Read = Callable[[str], str]
"""Returns the part of a text that the asker may read."""


def session_page(
    store: Readable,
    selection: Selection,
    conditions: Conditions | None = None,
    *,
    order: Order = "newest",
    readable: Read | None = None,
    limit: int = 50,
    after: Place | None = None,
) -> SessionPage:
    """Returns sessions of a time range in an order, how many there are, and where the list goes on.

    A page can have fewer sessions than `limit` and still not be the last one: a session whose results have several
    times is left out where it would be repeated, and a search for a text or a tool reads at most `MAX_SEARCHED` sessions
    for each page. Such a search has no total, unless the first page reads all of them; by value, it has one page.

    Args:
        store: The store.
        selection: The time range and the dimensions. With a metric, only sessions with a result of this metric.
        conditions: What else a session must have.
        order: The newest first, by the value of the selected metric, or by the number of failed results of criteria.
        readable: Returns the part of a text that the asker may read; only that part is searched, and shown as a preview.
            None: all is searched, and there is no preview.
        limit: Maximum number of sessions, up to `MAX_LISTED`.
        after: Only sessions after this place, which `SessionPage.next` of the page before has named.

    Raises:
        ValueError: the order is by the value of a metric, and none is selected; or the place is one of another order.
        StoreError: the store cannot answer.
    """
    limit = min(limit, MAX_LISTED)
    wanted = conditions or Conditions()
    if order in OF_METRIC and selection.metric is None:
        raise ValueError(f"the order {order} is that of the values of a metric: select a metric")
    if after is not None and isinstance(after, ValuePosition) == (order == "newest"):
        raise ValueError("the place in the list is one of another order")
    found, last, total = places(store, selection, wanted, order=order, readable=readable, limit=limit, after=after)
    return SessionPage(
        sessions=summaries_of(store, found, readable),
        next=None if last is None else Position.of(last) if order == "newest" else ValuePosition.of(last),
        total=total,
    )


def sessions(
    store: Readable, selection: Selection, *, readable: Read | None = None, limit: int = 50, **conditions: Any
) -> list[SessionSummary]:
    """Returns the latest sessions that meet `Conditions`.

    Raises:
        StoreError: the store cannot answer.
    """
    return session_page(store, selection, Conditions(**conditions), readable=readable, limit=limit).sessions


def places(
    store: Readable,
    selection: Selection,
    conditions: Conditions,
    *,
    order: Order = "newest",
    readable: Read | None = None,
    limit: int = MAX_LISTED,
    after: Place | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any] | None, int | None]:
    """Returns the rows `key`, `session_id` and `segment` of sessions, the row after which the list goes on, and the total.

    The arguments are those of `session_page`. The row is None at the end of the list, the total is None if it is unknown.
    """
    if conditions.are_of_records:
        asked = MAX_SEARCHED
        looked_at = _with_record(store, selection, conditions, after)
        found = [row for row in looked_at if _meets(row, conditions, readable or str)]
        if found and (order != "newest" or _is_about_results(selection, conditions)):
            matching = _matching(store, selection, conditions, MAX_LISTED, order=order, among=found)
            found = matching if order != "newest" else _only(found, matching)
    elif order != "newest" or _is_about_results(selection, conditions):
        asked = limit if conditions.rationale is None else MAX_SEARCHED
        looked_at = _matching(store, selection, conditions, asked, order=order, after=after)
        found = looked_at
        if isinstance(after, Position):
            # A session that was listed before, because it has a newer result, is not listed again.
            found = _without_newer(store, selection, conditions, looked_at, after)
    else:
        asked = limit
        looked_at = found = _closed(store, selection, limit, after)
    if conditions.rationale is not None and found:
        found = _only(found, _with_rationale(store, selection, conditions, found, readable or str))
    is_read = conditions.are_of_records or conditions.rationale is not None
    goes_on = order == "newest" or not conditions.are_of_records
    last = found[limit - 1] if len(found) > limit else looked_at[-1] if len(looked_at) == asked else None
    total: int | None = len(found) if after is None and len(looked_at) < asked else None
    if total is None and not is_read:
        total = _total(store, selection, conditions, order)
    return found[:limit], last if goes_on else None, total


def _is_about_results(selection: Selection, conditions: Conditions) -> bool:
    return selection.is_about_results or conditions.are_of_results


def _closed(store: Readable, selection: Selection, limit: int, after: Place | None) -> list[dict[str, Any]]:
    where, parameters = _after(*selection.where("last_record_at", of_results=False), after)
    return store.query(
        f"SELECT key, session_id, segment, last_record_at AS at FROM sessions WHERE {where} "
        f"ORDER BY last_record_at DESC, session_id, segment LIMIT {limit}",
        parameters,
    )


def _with_record(
    store: Readable, selection: Selection, conditions: Conditions, after: Place | None
) -> list[dict[str, Any]]:
    """Returns the latest sessions whose records can meet the conditions, with their records."""
    where, parameters = _after(*selection.where("last_record_at", of_results=False), after)
    if conditions.text is not None:
        where = f"(contains(lower(session_id), $text) OR contains(lower(document), $text)) AND {where}"
        parameters = parameters | {"text": conditions.text.lower()}
    for name, tool in (("tool", conditions.tool), ("tool_error", conditions.tool_error)):
        if tool is not None:
            where = f"contains(document, ${name}) AND {where}"
            parameters = parameters | {name: as_json(tool)}
    return store.query(
        f"SELECT key, session_id, segment, last_record_at AS at, document FROM sessions WHERE {where} "
        f"ORDER BY last_record_at DESC, session_id, segment LIMIT {MAX_SEARCHED}",
        parameters,
    )


def _meets(row: Mapping[str, Any], conditions: Conditions, readable: Read) -> bool:
    document = row["document"]
    if (text := conditions.text) is not None:
        text = text.lower()
        if text not in row["session_id"].lower() and text not in readable(document or "").lower():
            return False
    if conditions.tool is None and conditions.tool_error is None:
        return True
    facts = facts_of(document) or SessionFacts()
    return (conditions.tool is None or conditions.tool in facts.tools) and (
        conditions.tool_error is None or conditions.tool_error in facts.failed_tools
    )


def _matching(
    store: Readable,
    selection: Selection,
    conditions: Conditions,
    limit: int,
    *,
    order: Order = "newest",
    among: Sequence[Mapping[str, Any]] | None = None,
    after: Place | None = None,
) -> list[dict[str, Any]]:
    """Returns the sessions with a result that meets the conditions, each with its place in the order."""
    where, parameters = conditions.where(selection)
    if among is not None:
        where = f"{where} AND key IN (SELECT unnest($keys))"
        parameters = parameters | {"keys": [row["key"] for row in among]}
    if order != "newest":
        return _by_value(store, where, parameters, limit, order, after)
    having = ""
    until = selection.until
    if isinstance(after, Position):
        condition, place = after.after("max(occurred_at)")
        where = f"{where} AND occurred_at <= $after_at"
        having = f"HAVING {condition} "
        parameters = parameters | place
        until = min(until, after.moment)
    # A session can have any number of results, and the latest sessions are mostly in the last part of the time range.
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


def _by_value(
    store: Readable, where: str, parameters: Mapping[str, Any], limit: int, order: Order, after: Place | None
) -> list[dict[str, Any]]:
    value = _ORDERED_BY[order]
    having = ""
    if isinstance(after, ValuePosition):
        condition, place = after.after(value, order)
        having = f"HAVING {condition} "
        parameters = {**parameters, **place}
    return store.query(
        f"SELECT key, session_id, segment, {value} AS found FROM results WHERE {_with_value(order)} AND {where} "
        f"GROUP BY key, session_id, segment {having}"
        f"ORDER BY {value}{'' if order == 'lowest' else ' DESC'}, session_id, segment LIMIT {limit}",
        parameters,
    )


def _with_value(order: Order) -> str:
    """Returns the condition of the results that give a session its place in an order by value."""
    return f"status = 'FAILED' AND {IS_CRITERION}" if order == "failures" else "value IS NOT NULL"


def _without_newer(
    store: Readable, selection: Selection, conditions: Conditions, rows: Sequence[dict[str, Any]], after: Position
) -> list[dict[str, Any]]:
    """Returns the rows of sessions whose matching results are all at or after this place in the list."""
    where, parameters = conditions.where(selection)
    newer = store.query(
        f"SELECT DISTINCT session_id, segment FROM results WHERE {where} AND key IN (SELECT unnest($keys)) "
        "AND occurred_at > $after_at",
        parameters | {"keys": [row["key"] for row in rows], "after_at": after.at},
    )
    listed = {_place(row) for row in newer}
    return [row for row in rows if _place(row) not in listed]


def _with_rationale(
    store: Readable, selection: Selection, conditions: Conditions, rows: Sequence[dict[str, Any]], readable: Read
) -> list[dict[str, Any]]:
    """Returns the sessions with a rationale in whose readable part the text is."""
    where, parameters = conditions.where(selection)
    found = store.query(
        f"SELECT DISTINCT session_id, segment, rationale FROM results WHERE {where} AND key IN (SELECT unnest($keys))",
        parameters | {"keys": [row["key"] for row in rows]},
    )
    text = (conditions.rationale or "").lower()
    return [row for row in found if text in readable(row["rationale"]).lower()]


def _total(store: Readable, selection: Selection, conditions: Conditions, order: Order) -> int:
    if order == "newest" and not _is_about_results(selection, conditions):
        where, parameters = selection.where("last_record_at", of_results=False)
        source = f"sessions WHERE {where}"
    else:
        where, parameters = conditions.where(selection)
        has_value = "" if order == "newest" else f" AND {_with_value(order)}"
        source = f"(SELECT DISTINCT key, session_id, segment FROM results WHERE {where}{has_value}) AS found"
    (row,) = store.query(f"SELECT count(*) AS n FROM {source}", parameters)
    return int(row["n"])


def _after(where: str, parameters: dict[str, Any], after: Place | None) -> tuple[str, dict[str, Any]]:
    """Returns a condition for sessions with what makes them be after a place in the list."""
    if not isinstance(after, Position):
        return where, parameters
    condition, place = after.after("last_record_at")
    # The first comparison is implied by the second, and lets the database skip what is newer.
    return f"{where} AND last_record_at <= $after_at AND {condition}", parameters | place


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["session_id"], row["segment"]


def _only(rows: Sequence[dict[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of these sessions, in their order."""
    names = {_place(row) for row in wanted}
    return [row for row in rows if _place(row) in names]
