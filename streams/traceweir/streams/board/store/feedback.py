"""Answers with what users and outcomes say, which says nothing about judges: they choose themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from traceweir.streams.board.store.labels import SCORED
from traceweir.streams.board.store.selection import Readable, Selection, in_utc
from traceweir.streams.board.store.tables import DIMENSIONS

MAX_FEEDBACK = 20_000
"""The most labels that one answer counts, the latest first."""
LEAST_OF_SLICE = 20
"""The least number of verdicts of a slice."""
MAX_NOTES = 20
_SUBJECT = "session_id, segment, level, invocation_id, trace_id, criterion, annotator, kind"
_GIVEN = "FROM labels WHERE NOT withdrawn AND kind <> 'review' AND occurred_at >= $since AND occurred_at < $until"
_KNOWN = " UNION ALL ".join(
    f"SELECT session_id, segment, revision, {', '.join(f'{name} AS its_{name}' for name in DIMENSIONS)} FROM {table} "
    f"WHERE session_id IN (SELECT session_id {_GIVEN})"
    for table in (*SCORED, "sessions")
)
_LAST = ", ".join(f"argMax(its_{name}, (segment, revision)) AS {name}" for name in DIMENSIONS)
_SAID = (
    f"WITH ranked AS (SELECT *, row_number() OVER (PARTITION BY {_SUBJECT} ORDER BY occurred_at DESC, label_id) AS place "
    f"{_GIVEN}), known AS ({_KNOWN}), "
    # A label without a segment is about the whole session, which is the segment -1 here.
    f"places AS (SELECT session_id AS of_session, segment AS of_segment, {_LAST} FROM known GROUP BY session_id, segment "
    f"UNION ALL SELECT session_id AS of_session, -1 AS of_segment, {_LAST} FROM known GROUP BY session_id), "
    "said AS (SELECT * FROM ranked LEFT JOIN places ON session_id = of_session AND coalesce(segment, -1) = of_segment "
    "WHERE place = 1)"
)
_Row = Mapping[str, Any]


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


def feedback(store: Readable, selection: Selection) -> Feedback:
    """Returns what users and outcomes said in a time range about the sessions with these values of dimensions.

    Of two labels of one annotator on one subject and criterion, the later one counts. A label that names a segment has the
    dimensions of this one, and another one those of the last segment. A session that is not known has none, so a selection
    by one leaves it out.
    """
    condition, given = selection.where("occurred_at", of_results=False)
    rows = store.query(
        f"{_SAID} SELECT session_id, criterion, kind, verdict, note, annotator, occurred_at, {', '.join(DIMENSIONS)}, "
        f"count(*) OVER () AS found FROM said WHERE {condition} ORDER BY occurred_at DESC, label_id LIMIT {MAX_FEEDBACK}",
        given,
    )
    groups: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for row in rows:
        groups[str(row["criterion"]), str(row["kind"])].append(row)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return Feedback(
        found=[
            FeedbackOfCriterion(
                criterion=criterion, kind=kind, slices=list(_slices(of)), notes=_notes(of), **_counts(of)
            )
            for (criterion, kind), of in ordered
        ],
        left_out=int(rows[0]["found"]) - len(rows) if rows else 0,
    )


def _counts(said: Sequence[_Row]) -> dict[str, Any]:
    verdicts = [each["verdict"] for each in said]
    judged = [each for each in said if each["verdict"] in ("pass", "fail")]
    rate, low, high = _rate(judged) if judged else (None, None, None)
    return {
        "labels": len(said),
        "sessions": len({each["session_id"] for each in said}),
        "passed": verdicts.count("pass"),
        "failed": verdicts.count("fail"),
        "unsure": verdicts.count("unsure"),
        "others": verdicts.count(None),
        "rate": rate,
        "low": low,
        "high": high,
    }


def _rate(judged: Sequence[_Row]) -> tuple[float, float, float]:
    import numpy as np

    from traceweir.streams.base.statistics.people_only import people_rate

    passed = np.array([each["verdict"] == "pass" for each in judged], float)
    sessions = np.unique([str(each["session_id"]) for each in judged], return_inverse=True)[1]
    found = people_rate(passed, np.ones(len(judged)), sessions)
    return found.value, found.low, found.high


def _slices(said: Sequence[_Row]) -> Iterator[FeedbackSlice]:
    for dimension in DIMENSIONS:
        parts: dict[str, list[_Row]] = defaultdict(list)
        for each in said:
            if (value := each[dimension]) is not None:
                parts[value].append(each)
        if len(parts) < 2:
            continue
        for value, part in sorted(parts.items()):
            if sum(each["verdict"] in ("pass", "fail") for each in part) >= LEAST_OF_SLICE:
                yield FeedbackSlice(dimension=dimension, value=value, **_counts(part))


def _notes(said: Iterable[_Row]) -> list[FeedbackNote]:
    noted = [each for each in said if each["note"]]
    return [FeedbackNote(**{**row, "occurred_at": in_utc(row["occurred_at"])}) for row in noted[:MAX_NOTES]]
