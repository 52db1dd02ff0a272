"""Answers with what users and outcomes say, which says nothing about judges: they choose themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel

from traceweir.streams.base.canary_app import CANARY_APP
from traceweir.streams.board.store.selection import Readable, Selection, in_utc
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

MAX_FEEDBACK = 20_000
"""The most labels that one answer counts, the latest first."""
LEAST_OF_SLICE = 20
"""The least number of verdicts of a slice."""
MAX_NOTES = 20
_SLICED_BY = tuple(name for name in RESULT_DIMENSIONS if name != "judge")
_SUBJECT = "session_id, segment, level, invocation_id, trace_id, criterion, annotator, kind"


class FeedbackCount(BaseModel):
    """What was said about sessions, as counts, and the rate of passes among verdicts."""

    labels: int
    """Number of labels."""
    sessions: int
    """Number of sessions that have one."""
    passed: int
    failed: int
    unsure: int
    others: int
    """Number of labels with a number or a category."""
    rate: float | None
    """The share of passes among passes and failures; None without one."""
    low: float | None
    """Lower end of the 95 % interval of what these users would say, clustered by session."""
    high: float | None


class FeedbackSlice(FeedbackCount):
    """The same of the sessions with a value of a dimension."""

    dimension: str
    value: str


class FeedbackNote(BaseModel):
    """What somebody wrote."""

    session_id: str
    verdict: str | None
    note: str
    annotator: str
    occurred_at: datetime


class FeedbackOfCriterion(FeedbackCount):
    """The feedback of one kind about one criterion."""

    criterion: str
    kind: str
    """`user` or `outcome`."""
    slices: list[FeedbackSlice]
    notes: list[FeedbackNote]
    """The latest notes."""


class Feedback(BaseModel):
    """What users and outcomes say in a time range."""

    found: list[FeedbackOfCriterion]
    """Each kind and criterion, those with the most labels first."""
    left_out: int
    """Number of earlier labels that are not counted, because there are too many."""


class _Said(NamedTuple):
    row: Mapping[str, Any]
    of_session: Mapping[str, str | None]


def feedback(store: Readable, selection: Selection) -> Feedback:
    """Returns what users and outcomes said in a time range about the sessions with these values of dimensions.

    Of two labels of one annotator on one subject and criterion, the later one counts. A session that is not scored has no
    dimensions, so a selection by one leaves it out.
    """
    given = selection.span
    latest = (
        f"SELECT *, row_number() OVER (PARTITION BY {_SUBJECT} ORDER BY occurred_at DESC, label_id) AS place FROM labels "
        "WHERE NOT withdrawn AND kind <> 'review' AND occurred_at >= $since AND occurred_at < $until"
    )
    sessions = f"SELECT session_id FROM ({latest}) AS said"
    names = ", ".join(f"max({name}) AS known_{name}" for name in _SLICED_BY)
    known = {
        str(row["session_id"]): {name: row[f"known_{name}"] for name in _SLICED_BY}
        for row in store.query(
            f"SELECT session_id, {names} FROM results WHERE session_id IN ({sessions}) GROUP BY session_id", given
        )
    }
    rows = store.query(
        f"SELECT session_id, criterion, kind, verdict, note, annotator, occurred_at FROM ({latest}) AS said WHERE place = 1 "
        f"ORDER BY occurred_at DESC, label_id LIMIT {MAX_FEEDBACK}",
        given,
    )
    (counted,) = store.query(f"SELECT count(*) AS n FROM ({latest}) AS said WHERE place = 1", given)
    groups: dict[tuple[str, str], list[_Said]] = defaultdict(list)
    for row in rows:
        said = _Said(row, known.get(str(row["session_id"]), {}))
        if _is_selected(said, selection):
            groups[str(row["criterion"]), str(row["kind"])].append(said)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return Feedback(
        found=[
            FeedbackOfCriterion(
                criterion=criterion, kind=kind, slices=list(_slices(of)), notes=_notes(of), **_counts(of)
            )
            for (criterion, kind), of in ordered
        ],
        left_out=int(counted["n"]) - len(rows),
    )


def _is_selected(said: _Said, selection: Selection) -> bool:
    wanted = {name: value for name, value in selection.dimensions.items() if name in _SLICED_BY}
    is_canary = "app_name" not in wanted and said.of_session.get("app_name") == CANARY_APP
    return not is_canary and all(said.of_session.get(name) == value for name, value in wanted.items())


def _counts(said: Sequence[_Said]) -> dict[str, Any]:
    verdicts = [each.row["verdict"] for each in said]
    judged = [each for each in said if each.row["verdict"] in ("pass", "fail")]
    rate, low, high = _rate(judged) if judged else (None, None, None)
    return {
        "labels": len(said),
        "sessions": len({each.row["session_id"] for each in said}),
        "passed": verdicts.count("pass"),
        "failed": verdicts.count("fail"),
        "unsure": verdicts.count("unsure"),
        "others": verdicts.count(None),
        "rate": rate,
        "low": low,
        "high": high,
    }


def _rate(judged: Sequence[_Said]) -> tuple[float, float, float]:
    import numpy as np

    from traceweir.streams.base.statistics.people_only import people_rate

    passed = np.array([each.row["verdict"] == "pass" for each in judged], float)
    sessions = np.unique([str(each.row["session_id"]) for each in judged], return_inverse=True)[1]
    found = people_rate(passed, np.ones(len(judged)), sessions)
    return found.value, found.low, found.high


def _slices(said: Sequence[_Said]) -> Iterator[FeedbackSlice]:
    for dimension in _SLICED_BY:
        parts: dict[str, list[_Said]] = defaultdict(list)
        for each in said:
            if (value := each.of_session.get(dimension)) is not None:
                parts[value].append(each)
        if len(parts) < 2:
            continue
        for value, part in sorted(parts.items()):
            if sum(each.row["verdict"] in ("pass", "fail") for each in part) >= LEAST_OF_SLICE:
                yield FeedbackSlice(dimension=dimension, value=value, **_counts(part))


def _notes(said: Iterable[_Said]) -> list[FeedbackNote]:
    noted = [each.row for each in said if each.row["note"]]
    return [FeedbackNote(**{**row, "occurred_at": in_utc(row["occurred_at"])}) for row in noted[:MAX_NOTES]]
