"""Answers how two selections of results differ, as `traceweir diff` does: by pairs where both have the same results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from traceweir.schemas.score import Score, recorded_status
from traceweir.streams.board.store.selection import Readable, Selection, in_utc, stored
from traceweir.streams.lab.comparison.compare import compare
from traceweir.streams.lab.comparison.document import Diff
from traceweir.streams.lab.comparison.rows import Kinds, SideRows, UncomparableScoreError
from traceweir.streams.lab.comparison.texts import Texts

MAX_RESULTS = 50_000
"""Maximum number of results of a side: the answer keeps a page waiting."""
FLIPS = 10
"""Number of flips that are listed for each metric."""
_COST = {"input_tokens": "cost_input_tokens", "output_tokens": "cost_output_tokens", "usd": "cost_usd"}
_FIELDS = (
    *("result_id", "session_id", "segment", "revision", "attempt", "level", "invocation_id", "trace_id", "metric"),
    *("value", "threshold", "status", "not_evaluated_because", "rationale", "scorer_version", "config_digest", "judge"),
)
_COLUMNS = ", ".join((*_FIELDS, *_COST.values(), "cost_cached", "occurred_at", "evaluated_at"))
_SESSIONS_AT_ONCE = 200
_EARLIER = timedelta(hours=1)
"""How much earlier than the first of other scores a result of the same session can have occurred: another revision."""


class TooManyResultsError(ValueError):
    """A selection has more results than can be compared while a page waits; the message says what to do."""


def diff(store: Readable, first: Selection, second: Selection) -> Diff:
    """Returns what differs between two selections, without bounds: second minus first.

    Raises:
        NoOverlapError: the selections have no metric at the same level in common.
        TooManyResultsError: a selection has more than `MAX_RESULTS` results.
        StoreError: the store cannot answer.
    """
    kinds = Kinds()
    with Texts() as texts:
        before = SideRows("first", kinds, texts)
        after = SideRows("second", kinds, texts)
        unusable = _read(store, first, before), _read(store, second, after)
        return compare(before.counting(), after.counting(), kinds, texts, flips=FLIPS, unusable=unusable)


def diff_beside(store: Readable, scores: Sequence[Score], name: str) -> Diff:
    """Returns how other scores of stored sessions differ from the stored results of the same sessions, which are the base.

    Args:
        store: Has the results.
        scores: The other scores.
        name: What they are called.

    Raises:
        NoOverlapError: there is no metric at the same level in common.
        TooManyResultsError: the sessions have more than `MAX_RESULTS` results.
        StoreError: the store cannot answer.
    """
    kinds = Kinds()
    with Texts() as texts:
        before = SideRows("results", kinds, texts)
        after = SideRows(name, kinds, texts)
        unusable = _add(before, _of_sessions(store, scores)), _add(after, scores)
        return compare(before.counting(), after.counting(), kinds, texts, flips=FLIPS, unusable=unusable)


def _of_sessions(store: Readable, scores: Sequence[Score]) -> Iterator[Score]:
    """Yields the results of the sessions of these scores."""
    if not scores:
        return
    since = stored(min(score.occurred_at for score in scores) - _EARLIER)
    sessions = sorted({score.session_id for score in scores})
    left = MAX_RESULTS
    for at in range(0, len(sessions), _SESSIONS_AT_ONCE):
        some = sessions[at : at + _SESSIONS_AT_ONCE]
        names = {f"session{number}": session for number, session in enumerate(some)}
        places = ", ".join(f"${name}" for name in names)
        rows = store.query(
            f"SELECT {_COLUMNS} FROM results WHERE occurred_at >= $since AND session_id IN ({places}) "
            f"ORDER BY written_at LIMIT {left + 1}",
            {"since": since, **names},
        )
        left -= len(rows)
        if left < 0:
            raise TooManyResultsError(
                f"the sessions have more than {MAX_RESULTS} results: compare the topics with `traceweir diff`"
            )
        yield from map(_score, rows)


def _add(side: SideRows, scores: Iterable[Score]) -> int:
    unusable = 0
    for score in scores:
        try:
            side.add(score)
        except UncomparableScoreError:
            unusable += 1
    return unusable


def _read(store: Readable, selection: Selection, side: SideRows) -> int:
    """Adds the selected results to a side; returns how many of them cannot be compared."""
    where, parameters = selection.where("occurred_at")
    rows = store.query(
        f"SELECT {_COLUMNS} FROM results WHERE {where} ORDER BY written_at LIMIT {MAX_RESULTS + 1}", parameters
    )
    if len(rows) > MAX_RESULTS:
        raise TooManyResultsError(
            f"the {side.name} side has more than {MAX_RESULTS} results: select a shorter time range, an agent or a metric, or "
            "compare the topic with `traceweir diff`"
        )
    return _add(side, map(_score, rows))


def _score(row: Mapping[str, Any]) -> Score:
    cost = {"cached": row["cost_cached"], **{name: row[column] for name, column in _COST.items()}}
    times = {name: in_utc(row[name]) for name in ("occurred_at", "evaluated_at")}
    fields = {name: row[name] for name in _FIELDS} | {"status": recorded_status(row["status"])}
    return Score.model_validate({**fields, **times, "cost": cost})
