"""The subjects for review are drawn by a point of their own, the same for everyone, and those worth a look are apart."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, scores_batch

from traceweir.schemas.labels import Label, LabelSubject
from traceweir.schemas.score import Score
from traceweir.scorers.evaluation.cascade import cascade_point
from traceweir.scorers.evaluation.runner import sampling_point
from traceweir.streams.board.store import judged, labels
from traceweir.streams.board.store.judged import judged_scores
from traceweir.streams.board.store.labels import given_labels
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.review import (
    drawn_subjects,
    picked_subjects,
    review_criteria,
    review_point,
)
from traceweir.streams.board.store.selection import Selection

METRIC = "helpful"
SPAN = Selection(NOW - timedelta(days=1), NOW + timedelta(days=1), metric=METRIC)
IDS = [f"session-{number}" for number in range(10_000)]


def scored(session_id: str, value: float | None = 0.9, metric: str = METRIC, **changes: Any) -> Score:
    return make_score(session_id, metric, value, **changes)


def test_the_share_of_the_points_is_the_probability() -> None:
    for share in (0.05, 0.5):
        drawn = sum(review_point(METRIC, each, 0, None) < share for each in IDS)
        # Five standard deviations.
        assert abs(drawn - 10_000 * share) < 5 * (10_000 * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("other", [sampling_point, cascade_point, lambda each: review_point("other", each, 0, None)])
def test_the_draw_is_independent_of_other_draws(other: Any) -> None:
    among = [each for each in IDS if other(each) < 0.1]
    drawn = sum(review_point(METRIC, each, 0, None) < 0.5 for each in among)
    assert abs(drawn - 0.5 * len(among)) < 5 * (0.25 * len(among)) ** 0.5


def test_the_store_draws_by_the_same_points_the_lowest_first(store: Store) -> None:
    scores = [scored(each) for each in IDS[:200]]
    store.write(scores_batch(*scores))
    found, population = drawn_subjects(store, SPAN, 0.2)
    points = {score.session_id: review_point(METRIC, score.session_id, 0, score.invocation_id) for score in scores}
    assert [each.session_id for each in found] == sorted(
        (each for each, point in points.items() if point < 0.2), key=points.__getitem__
    )
    assert [each.point for each in found] == [points[each.session_id] for each in found]
    assert population == 200
    assert drawn_subjects(store, SPAN, 0.2)[0] == found
    assert len(drawn_subjects(store, SPAN, 1.0)[0]) == 200


def test_a_later_revision_is_drawn_as_the_first_one_and_counts_once(store: Store) -> None:
    store.write(scores_batch(*(scored(each) for each in IDS[:50])))
    before = {each.identity: each.point for each in drawn_subjects(store, SPAN, 0.5)[0]}
    store.write(scores_batch(*(scored(each, 0.1, revision=1) for each in IDS[:50]), offset=100))
    after, population = drawn_subjects(store, SPAN, 0.5)
    assert {each.identity: each.point for each in after} == before
    assert {each.revision for each in after} == {1}
    assert population == 50


def test_only_what_can_calibrate_is_drawn(store: Store) -> None:
    store.write(
        scores_batch(
            scored("whole"),
            scored("sampled", inclusion_probability=0.1),
            scored("chosen", inclusion_probability=0.0),
            scored("missing", None, not_evaluated_because="error"),
            scored("old", occurred_at=NOW - timedelta(days=3)),
            scored("other", metric="safe"),
        )
    )
    found, population = drawn_subjects(store, SPAN, 1.0)
    assert {each.session_id for each in found} == {"whole", "sampled"}
    assert population == 2
    everything = Selection(SPAN.since, SPAN.until)
    assert [(each.name, each.subjects) for each in review_criteria(store, everything)] == [("helpful", 3), ("safe", 1)]


def test_what_is_worth_a_look_has_its_reasons(store: Store) -> None:
    novel = {"level": "trace", "trace_id": "t", "invocation_id": None, "details": {"novelty": 0.9}}
    store.write(
        scores_batch(
            scored("plain", 1.0),
            scored("far", 0.0, status="FAILED"),
            scored("near", 0.7),
            scored("split", 1.0, details={"responses": [{"spread": 0.4}]}),
            scored("novel", 1.0),
            make_score("novel", "trace_value", 0.9, **novel),
            scored("checked", 1.0),
            make_score("checked", "format", 0.0, status="FAILED", source="code"),
            scored("judged", 1.0),
            make_score("judged", "kind", 0.0, status="FAILED", source="model"),
            scored("hostile", 1.0, details={"spread": ["x"], "responses": {"spread": "0.5"}}),
        )
    )
    found = {each.subject.session_id: list(each.reasons) for each in picked_subjects(store, SPAN)}
    assert found == {
        "far": ["failed by far"],
        "near": ["near the threshold"],
        "split": ["the judge's replies differ"],
        "novel": ["novel"],
        "checked": ["failed a check without a judge"],
    }


def test_the_order_of_what_is_worth_a_look_says_nothing_of_the_reason(store: Store) -> None:
    store.write(scores_batch(*(scored(each, 0.0, status="FAILED") for each in IDS[:8])))
    points = [each.subject.point for each in picked_subjects(store, SPAN)]
    assert points == sorted(points)


def test_scores_and_labels_are_read_as_they_were_sent(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [scored(each, judge="model-a", agent_version="2") for each in IDS[:40]]
    missing = scored("missing", None, not_evaluated_because="error")
    store.write(scores_batch(*scores, missing, scored("other", metric="safe")))
    about = LabelSubject(session_id=IDS[0], segment=0, revision=0, level="session")
    given = Label(
        label_id="one", subject=about, criterion=METRIC, verdict="pass", annotator="ana", kind="review",
        drawn="random", inclusion_probability=0.5, occurred_at=NOW, note="why", self_declared=True,
    )  # fmt: skip
    early = given.model_copy(update={"label_id": "early", "occurred_at": NOW - timedelta(days=2)})
    withdrawn = given.model_copy(update={"label_id": "withdrawn", "withdrawn": True})
    records = [FakeRecord(each.wire(), at, each.label_id.encode()) for at, each in enumerate((given, early, withdrawn))]
    store.write(batch_of("labels", *records))
    assert given_labels(store, METRIC, SPAN.since) == [given]
    found, number = judged_scores(store, SPAN)
    assert number == len(found) == 41
    by_session = {each.session_id: each for each in found}
    assert by_session["missing"].not_evaluated_because == "error"
    names = ("value", "threshold", "status", "judge", "agent_version", "occurred_at", "scorer_version", "result_id")
    for each in scores:
        read = by_session[each.session_id]
        assert [getattr(read, name) for name in names] == [getattr(each, name) for name in names]

    monkeypatch.setattr(judged, "MAX_JUDGED", 20)
    part, number = judged_scores(store, SPAN)
    assert number == 41
    assert {each.session_id for each in part} == {
        each for each in by_session if review_point(METRIC, each, 0, None) < 20 / 41
    }


def test_much_feedback_of_users_leaves_no_review_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "MAX_LABELS", 2)
    about = LabelSubject(session_id=IDS[0], segment=0, revision=0, level="session")
    review = Label(
        label_id="review", subject=about, criterion=METRIC, verdict="pass", annotator="ana", kind="review",
        drawn="random", inclusion_probability=0.5, occurred_at=NOW,
    )  # fmt: skip
    later = {"kind": "user", "drawn": "none", "inclusion_probability": None, "occurred_at": NOW + timedelta(minutes=1)}
    thumbs = [review.model_copy(update={**later, "label_id": f"thumb-{number}"}) for number in range(3)]
    records = [FakeRecord(each.wire(), at, each.label_id.encode()) for at, each in enumerate((review, *thumbs))]
    store.write(batch_of("labels", *records))
    assert [each.label_id for each in given_labels(store, METRIC, SPAN.since)] == ["review", "thumb-0"]
