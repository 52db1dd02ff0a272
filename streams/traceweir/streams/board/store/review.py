"""Answers which subjects of a criterion people may label: a random part with a known share, and those worth a look.

No answer contains what the judge says: who labels must not know it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from traceweir.streams.board.store.conditions import IS_CRITERION, TRACE_VALUE
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.board.store.tables import key_of

MAX_DRAWN = 500
"""The most subjects of the random part that a question returns, those with the lowest points."""
LOOKED_THROUGH = 500
"""Of how many results, the latest ones, some are picked that are worth a look."""
PICKED = 10
"""How many of them are picked at most for each reason."""
NEAR = 0.1
"""The greatest distance from the threshold that is near to it."""
NOVEL = 0.7
"""Novelty of a trace from which a session is novel: 1 minus the cosine with the nearest known trace."""
_UNIT = "\x1f"
_POINTS = 2**64
_HAS_VERDICT = "status IN ('PASSED', 'FAILED')"
# A subject that was only judged because of a condition has no known probability, and says nothing about the others.
_CAN_CALIBRATE = f"{_HAS_VERDICT} AND coalesce(inclusion_probability, 1) > 0"
_SUBJECT = "session_id, segment, level, invocation_id, trace_id"
_POINT = (
    "md5_number_lower($purpose || session_id || $unit || CAST(segment AS VARCHAR) || $unit || "
    "coalesce(invocation_id, trace_id, ''))"
)


@dataclass(frozen=True, slots=True)
class ReviewSubject:
    """What a person may label: a session, or an invocation or a trace of it."""

    session_id: str
    segment: int
    level: str
    invocation_id: str | None
    trace_id: str | None
    revision: int
    """The newest revision that was scored."""
    point: float
    """The point of the draw, from 0 to 1: the subject is drawn if the share is greater."""

    @property
    def identity(self) -> tuple[str, int, str, str | None, str | None]:
        """What tells it from other subjects; its revisions are one."""
        return self.session_id, self.segment, self.level, self.invocation_id, self.trace_id


@dataclass(frozen=True, slots=True)
class Picked:
    """A subject that is worth a look, and why. The reasons tell what the judge says, and are for after the label."""

    subject: ReviewSubject
    reasons: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReviewCriterion:
    """A criterion that people can label."""

    name: str
    subjects: int
    """Number of results with a verdict."""


def review_point(criterion: str, session_id: str, segment: int, subject_id: str | None) -> float:
    """Returns a number from 0 to 1 for a subject, by which it is drawn for review.

    It depends on the criterion and the ids alone, so that everyone is offered the same subjects, and a later revision is
    drawn as the first one. It is independent of the points of sampling and cascades.

    Args:
        criterion: The criterion.
        session_id: The session.
        segment: Number of the session's segment.
        subject_id: Id of the invocation or the trace; None for a session.

    >>> round(review_point("helpful", "s-1", 0, None), 3), round(review_point("safe", "s-1", 0, None), 3)
    (0.264, 0.094)
    """
    return key_of(_UNIT.join((_purpose(criterion) + session_id, str(segment), subject_id or ""))) / _POINTS


def review_criteria(store: Readable, selection: Selection) -> list[ReviewCriterion]:
    """Returns the criteria with verdicts in a time range, by name.

    Raises:
        StoreError: the store cannot answer.
    """
    where, parameters = selection.where("occurred_at")
    rows = store.query(
        f"SELECT metric, count(*) AS n FROM results WHERE {where} AND {_HAS_VERDICT} AND {IS_CRITERION} "
        "GROUP BY metric ORDER BY metric",
        parameters,
    )
    return [ReviewCriterion(row["metric"], row["n"]) for row in rows]


def drawn_subjects(store: Readable, selection: Selection, share: float) -> tuple[list[ReviewSubject], int]:
    """Returns the subjects with a verdict that are drawn, the lowest points first, and of how many they are drawn.

    The first ones are a random part too: their order is that of the points.

    Args:
        store: The store.
        selection: The time range, the dimensions and the criterion.
        share: The probability of each subject, above 0 and up to 1.

    Raises:
        StoreError: the store cannot answer.
    """
    where, parameters = selection.where("occurred_at")
    rows = store.query(
        f"SELECT {_SUBJECT}, max(revision) AS revision, min({_POINT}) AS point FROM results "
        f"WHERE {where} AND {_CAN_CALIBRATE} AND {drawn_below(share)} GROUP BY {_SUBJECT} "
        f"ORDER BY point, {_SUBJECT} LIMIT {MAX_DRAWN}",
        parameters | review_purpose(selection),
    )
    (found,) = store.query(
        f"SELECT count(*) AS n FROM (SELECT DISTINCT {_SUBJECT} FROM results WHERE {where} AND {_CAN_CALIBRATE}) AS found",
        parameters,
    )
    return [_subject(row) for row in rows], found["n"]


def picked_subjects(store: Readable, selection: Selection) -> list[Picked]:
    """Returns subjects of the latest results that are worth a look, in the order of their points, which says nothing.

    Reasons: the worst ones that failed, those near the threshold, those on which the judge's replies differ, those of
    novel sessions, and those of sessions that failed another criterion, which no judge measured.

    Raises:
        StoreError: the store cannot answer.
    """
    where, parameters = selection.where("occurred_at")
    rows = store.query(
        f"SELECT {_SUBJECT}, revision, {_POINT} AS point, key, status, value, threshold, details, occurred_at FROM results "
        f"WHERE {where} AND {_HAS_VERDICT} ORDER BY occurred_at DESC, {_SUBJECT} LIMIT {LOOKED_THROUGH}",
        parameters | review_purpose(selection),
    )
    if not rows:
        return []
    novelty, failed = _beside(store, selection, {row["key"] for row in rows})
    orders: Mapping[str, Iterable[tuple[float, int]]] = {
        "failed by far": (
            (-_distance(row), at) for at, row in enumerate(rows) if row["status"] == "FAILED" and _distance(row) > NEAR
        ),
        "near the threshold": ((_distance(row), at) for at, row in enumerate(rows) if _distance(row) <= NEAR),
        "the judge's replies differ": (
            (-spread, at) for at, row in enumerate(rows) if (spread := _spread(row["details"])) > 0
        ),
        "novel": ((-novelty[place], at) for at, row in enumerate(rows) if (place := _place(row)) in novelty),
        "failed a check without a judge": ((at, at) for at, row in enumerate(rows) if _place(row) in failed),
    }
    reasons: dict[int, list[str]] = {}
    for reason, order in orders.items():
        for _, at in sorted(order)[:PICKED]:
            reasons.setdefault(at, []).append(reason)
    # Two scorers can have measured a subject.
    found = {_subject(rows[at]).identity: Picked(_subject(rows[at]), why) for at, why in reasons.items()}
    return sorted(found.values(), key=lambda each: (each.subject.point, each.subject.session_id))


def review_purpose(selection: Selection) -> dict[str, Any]:
    """Returns the parameters of a query with the points of the selected criterion."""
    return {"purpose": _purpose(selection.metric or ""), "unit": _UNIT}


def drawn_below(share: float) -> str:
    """Returns the condition of SQL for subjects whose points are below a share, above 0 and up to 1."""
    last = min(math.ceil(share * _POINTS), _POINTS) - 1
    return f"{_POINT} <= {last}"


def _beside(
    store: Readable, selection: Selection, keys: set[int]
) -> tuple[Mapping[tuple[str, int], float], set[tuple[str, int]]]:
    """Returns the novelty of the novel sessions, and the sessions that failed a criterion which no judge measured."""
    rows = store.query(
        "SELECT session_id, segment, metric, details FROM results WHERE key IN (SELECT unnest($keys)) "
        f"AND occurred_at >= $since AND (metric = '{TRACE_VALUE}' OR (status = 'FAILED' AND source = 'code' AND "
        f"metric <> $metric AND {IS_CRITERION})) ORDER BY occurred_at DESC LIMIT {20 * LOOKED_THROUGH}",
        {"keys": sorted(keys), "since": selection.span["since"], "metric": selection.metric or ""},
    )
    novelty: dict[tuple[str, int], float] = {}
    failed: set[tuple[str, int]] = set()
    for row in rows:
        if row["metric"] != TRACE_VALUE:
            failed.add(_place(row))
            continue
        number = _parsed(row["details"]).get("novelty")
        if isinstance(number, int | float) and number >= max(NOVEL, novelty.get(_place(row), 0.0)):
            novelty[_place(row)] = float(number)
    return novelty, failed


def _purpose(criterion: str) -> str:
    return f"review{_UNIT}{criterion}{_UNIT}"


def _subject(row: Mapping[str, Any]) -> ReviewSubject:
    names = ("session_id", "segment", "level", "invocation_id", "trace_id", "revision")
    return ReviewSubject(**{name: row[name] for name in names}, point=row["point"] / _POINTS)


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["session_id"], row["segment"]


def _distance(row: Mapping[str, Any]) -> float:
    if row["value"] is None or row["threshold"] is None:
        return math.inf
    distance: float = abs(row["value"] - row["threshold"])
    return distance


def _spread(details: str) -> float:
    """Returns the greatest share of replies against a verdict that the details of a judged result name, from 0 to 0.5."""
    return max(_numbers(_parsed(details), "spread"), default=0.0)


def _numbers(document: object, name: str, depth: int = 4) -> Iterator[float]:
    if depth == 0:
        return
    if isinstance(document, list):
        for each in document:
            yield from _numbers(each, name, depth - 1)
    elif isinstance(document, Mapping):
        for key, each in document.items():
            if key == name and isinstance(each, int | float):
                yield float(each)
            else:
                yield from _numbers(each, name, depth - 1)


def _parsed(details: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(details)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}
