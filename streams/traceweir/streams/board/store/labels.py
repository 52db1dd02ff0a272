"""Joins labels with the scores of the revision that was seen. Reads no clock and no Kafka."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel

from traceweir.schemas.labels import Label, LabelSubject
from traceweir.streams.board.store.selection import Readable, in_utc, stored
from traceweir.streams.board.store.tables import KEPT_SCORES, LABELS

MAX_LABELS = 20_000
"""The most labels that one question reads, the latest first."""
WAITS = timedelta(days=7)
"""How long a label waits for its session, from when it was written."""
SCORED = ("results", "replaced_results", KEPT_SCORES.name)
"""The tables that have the scores of labelled sessions, in each revision that is known."""
_OF_CRITERION = "WHERE NOT withdrawn AND criterion = $criterion AND occurred_at >= $since"
_SCORES = ", ".join(f'"{name}"' for name in KEPT_SCORES.column_names)

Standing = Literal["current", "stale", "replaced", "waiting", "unknown", "not_scored", "unclear"]
"""How a label stands to the scores of its subject.

- `current`: the score of the revision that was seen counts now.
- `stale`: a later revision has replaced it; the label counts again when its annotator confirms it at that revision.
- `replaced`: the annotator has given a later label of the same subject and criterion.
- `waiting`: the session, its segment or its revision is not known yet, and the label came within the last 7 days.
- `unknown`: it did not come within 7 days of the label: it does not exist here, or it was removed before the label
  came.
- `not_scored`: the segment is known in the revision that was seen, and has no score of the criterion, as an outcome has
  none.
- `unclear`: the label does not say which segment or revision was seen, and there are several.
"""


class ScoreSeen(BaseModel):
    """The score that a label is compared with."""

    result_id: str
    """Id of the result."""
    revision: int
    """Number of the revision."""
    config_digest: str
    """Digest of the config."""
    scorer_version: str
    """Version of the scorer."""
    judge: str | None
    """The model that judged; null if none did."""
    status: str
    """The reported status."""
    value: float | None
    """The value; null if there is none."""
    category: str | None
    """The answer of a categorical criterion."""
    threshold: float | None
    """The threshold; null if there was none."""
    inclusion_probability: float | None
    """The probability with which the session was asked for the criterion; null if it is 1."""
    occurred_at: datetime
    """When the data of the session was complete, in UTC."""
    app_name: str | None
    """The app."""
    agent_name: str | None
    """The agent."""
    agent_version: str | None
    """The version of the agent."""
    environment: str | None
    """The environment."""
    model: str | None
    """The agent's model."""


class JudgedLabel(BaseModel):
    """A label beside a score of the same subject and criterion, or the reason why there is none."""

    label_id: str
    """Id of the label."""
    session_id: str
    """The session."""
    segment: int | None
    """Number of the segment that was seen; null if unknown."""
    revision: int | None
    """Number of the revision that was seen; null if unknown."""
    level: str
    """What was judged: an invocation, a trace or the session."""
    invocation_id: str | None
    """The judged invocation."""
    trace_id: str | None
    """The judged trace."""
    criterion: str
    """The criterion, or the name of an outcome."""
    verdict: str | None
    """`pass`, `fail` or `unsure`; null if there is a value or a category."""
    value: float | None
    """The annotator's number."""
    category: str | None
    """The annotator's category."""
    note: str | None
    """Why, in the annotator's words."""
    annotator: str
    """Who judged."""
    self_declared: bool
    """Whether nothing proves the annotator's name."""
    kind: str
    """`review`, `user` or `outcome`."""
    drawn: str
    """How the subject was chosen: `random`, `flagged` or `none`."""
    inclusion_probability: float | None
    """The probability with which the subject was drawn; null if it was not drawn at random."""
    occurred_at: datetime
    """When the label was given, in UTC."""
    standing: Standing
    """How the label stands to the scores of its subject."""
    newest_revision: int | None
    """The newest revision that was scored; null if no score is known."""
    score: ScoreSeen | None
    """The score of the revision that was seen; null if it is not known."""

    @property
    def calibrates(self) -> bool:
        """Whether the label may say how good a judge is now: a current review of a subject that was drawn at random."""
        return self.standing == "current" and self.kind == "review" and self.drawn == "random"


def labels(
    store: Readable,
    now: datetime,
    *,
    criterion: str | None = None,
    session_id: str | None = None,
    kind: str | None = None,
    limit: int = MAX_LABELS,
) -> list[JudgedLabel]:
    """Returns labels, the latest first, each once for every result of its subject and criterion; withdrawn ones are left out.

    Results of one subject differ by the scorer's version, the options or the configured judge.

    Args:
        store: Answers the questions.
        now: The present time, until which labels wait for their sessions.
        criterion: Only labels of this criterion.
        session_id: Only labels of this session.
        kind: Only labels of this kind.
        limit: The most labels.
    """
    wanted = {"criterion": criterion, "session_id": session_id, "kind": kind}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    conditions = " AND ".join(["NOT withdrawn", *(f"{name} = ${name}" for name in given)])
    names = ", ".join(f'"{name}"' for name in LABELS.column_names)
    found = store.query(
        f"SELECT {names} FROM labels WHERE {conditions} ORDER BY occurred_at DESC, label_id LIMIT {limit}", given
    )
    if not found:
        return []
    # The same labels as those found: of others, no score is read.
    page = (
        f"SELECT session_id, criterion FROM labels WHERE {conditions} ORDER BY occurred_at DESC, label_id LIMIT {limit}"
    )
    scores = _scores(store, page, given)
    newest = _newest_revisions(store, page, given)
    latest: set[tuple[Any, ...]] = set()
    joined: list[JudgedLabel] = []
    for row in found:
        # The latest comes first, so that it is there before those that it replaces.
        of_subject = scores.get((*_subject(row), row["criterion"]), ())
        segments = {each["segment"] for each in of_subject}
        # A label that names the only segment and one that names none are about the same.
        segment = next(iter(segments)) if row["segment"] is None and len(segments) == 1 else row["segment"]
        own = (row["annotator"], row["kind"], row["criterion"], *_subject(row), segment)
        waits = row["written_at"] > stored(now - WAITS)
        missing: Standing = "waiting" if waits else "unknown"
        known = newest.get((row["session_id"], row["segment"]))
        # A revision that is not known yet may bring the first score of the criterion.
        absent: Standing = "not_scored" if known is not None and (row["revision"] or 0) <= known else missing
        joined.extend(_joined(row, of_subject, "replaced" if own in latest else None, absent, missing))
        latest.add(own)
    return joined


def given_labels(store: Readable, criterion: str, since: datetime) -> list[Label]:
    """Returns the labels of a criterion as they were given at a time or later, without withdrawn ones.

    Reviews come first, so that feedback of users cannot leave them out, and then the latest.

    Args:
        store: Answers the question.
        criterion: The criterion.
        since: The time. At most `MAX_LABELS` are returned.
    """
    names = ", ".join(f'"{name}"' for name in LABELS.column_names)
    rows = store.query(
        f"SELECT {names} FROM labels {_OF_CRITERION} "
        f"ORDER BY kind <> 'review', occurred_at DESC, label_id LIMIT {MAX_LABELS}",
        {"criterion": criterion, "since": stored(since)},
    )
    return [_as_label(row) for row in rows]


def count_given_labels(store: Readable, criterion: str, since: datetime) -> int:
    """Returns the number of labels of which `given_labels` returns at most `MAX_LABELS`.

    Args:
        store: Answers the question.
        criterion: The criterion.
        since: The time.
    """
    given = {"criterion": criterion, "since": stored(since)}
    (row,) = store.query(f"SELECT count(*) AS labels FROM labels {_OF_CRITERION}", given)
    return int(row["labels"])


def labelled_criteria(store: Readable, since: datetime, most: int) -> list[str]:
    """Returns the criteria with reviews that can calibrate, given at a time or later; those with the most labels first.

    Args:
        store: Answers the question.
        since: The time.
        most: The most criteria.
    """
    rows = store.query(
        "SELECT criterion FROM labels WHERE NOT withdrawn AND kind = 'review' AND drawn = 'random' "
        f"AND occurred_at >= $since GROUP BY criterion ORDER BY count(*) DESC, criterion LIMIT {most}",
        {"since": stored(since)},
    )
    return [str(row["criterion"]) for row in rows]


def _as_label(row: Mapping[str, Any]) -> Label:
    # What the store has was a label on the topic.
    subject = LabelSubject.model_construct(**{name: row[name] for name in LabelSubject.model_fields})
    cells = {name: row[name] for name in Label.model_fields if name in row}
    return Label.model_construct(**{**cells, "subject": subject, "occurred_at": in_utc(row["occurred_at"])})


def _scores(
    store: Readable, page: str, given: Mapping[str, Any]
) -> Mapping[tuple[Any, ...], Sequence[Mapping[str, Any]]]:
    """Returns the scores of the labelled subjects, in each revision that is known, by session, subject and metric.

    Args:
        store: Answers the question.
        page: The query of the labels, with their session and criterion.
        given: Its parameters.
    """
    found = " UNION ALL ".join(
        f"SELECT {_SCORES} FROM {name} WHERE session_id IN (SELECT session_id FROM ({page}) AS page) "
        f"AND metric IN (SELECT criterion FROM ({page}) AS page)"
        for name in SCORED
    )
    by_subject: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in store.query(found, given):
        by_subject[*_subject(row), row["metric"]].append(row)
    return by_subject


def _newest_revisions(store: Readable, page: str, given: Mapping[str, Any]) -> Mapping[tuple[str, int | None], int]:
    """Returns the newest known revision of each segment of the labelled sessions, and under None that of all segments."""
    found = " UNION ALL ".join(
        f"SELECT session_id, segment, revision FROM {name} "
        f"WHERE session_id IN (SELECT session_id FROM ({page}) AS page)"
        for name in ("sessions", "results")
    )
    rows = store.query(
        f"SELECT session_id, segment, max(revision) AS newest FROM ({found}) AS known GROUP BY session_id, segment",
        given,
    )
    newest: dict[tuple[str, int | None], int] = {}
    for row in rows:
        for segment in (row["segment"], None):
            place = (str(row["session_id"]), segment)
            newest[place] = max(newest.get(place, 0), int(row["newest"]))
    return newest


def _subject(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["session_id"], row["level"], row["invocation_id"], row["trace_id"]


def _joined(
    row: Mapping[str, Any],
    scores: Sequence[Mapping[str, Any]],
    fixed: Standing | None,
    absent: Standing,
    missing: Standing,
) -> Iterable[JudgedLabel]:
    """Yields a label beside each result of its subject; once without a score if there is none.

    Args:
        row: The label.
        scores: The scores of its subject and criterion, in each known revision.
        fixed: Its standing, whatever the scores are; None: it depends on them.
        absent: Its standing if there is no score.
        missing: Its standing if its revision is not known.
    """
    by_result: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in scores:
        if row["segment"] in (None, each["segment"]):
            by_result[each["result_id"]].append(each)
    if not by_result:
        yield _label(row, fixed or absent, None, None)
    segments = {each["segment"] for found in by_result.values() for each in found}
    for found in by_result.values():
        newest = max(found, key=_version)
        seen = _seen(row, found, newest)
        standing: Standing = "current"
        if len(segments) > 1 or (row["revision"] is None and newest["revision"] > 0):
            standing = "unclear"
            seen = None
        elif row["revision"] is not None and row["revision"] < newest["revision"]:
            standing = "stale"
        elif row["revision"] is not None and row["revision"] > newest["revision"]:
            standing = missing
        yield _label(row, fixed or standing, newest["revision"], seen)


def _seen(
    row: Mapping[str, Any], found: Sequence[Mapping[str, Any]], newest: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    if row["revision"] is None:
        return newest
    of_revision = [each for each in found if each["revision"] == row["revision"]]
    return max(of_revision, key=_version, default=None)


def _version(score: Mapping[str, Any]) -> tuple[int, int]:
    return score["revision"], score["attempt"]


def _label(
    row: Mapping[str, Any], standing: Standing, newest: int | None, score: Mapping[str, Any] | None
) -> JudgedLabel:
    seen = None if score is None else ScoreSeen(**{**score, "occurred_at": in_utc(score["occurred_at"])})
    cells = {**row, "occurred_at": in_utc(row["occurred_at"])}
    return JudgedLabel(**cells, standing=standing, newest_revision=newest, score=seen)
