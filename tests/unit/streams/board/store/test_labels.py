"""A label is joined to the score of the revision that was seen, and says when that is not the score that counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, scores_batch

from traceweir.schemas.labels import Label, LabelSubject, label_id
from traceweir.schemas.score import Score
from traceweir.streams.board.store.labels import JudgedLabel, labels
from traceweir.streams.board.store.opening import Store

METRIC = "response_match_score"


def about(score: Score, *, revision: int | None = 0, segment: int | None = 0) -> LabelSubject:
    return LabelSubject(
        session_id=score.session_id,
        segment=segment,
        revision=revision,
        level=score.level,
        invocation_id=score.invocation_id,
        trace_id=score.trace_id,
    )


def label(subject: LabelSubject, **changes: Any) -> Label:
    given: dict[str, Any] = {
        "subject": subject,
        "criterion": METRIC,
        "verdict": "fail",
        "annotator": "ana",
        "kind": "review",
        "drawn": "random",
        "inclusion_probability": 0.5,
        "occurred_at": NOW,
        **changes,
    }
    if "verdict" not in changes and {"value", "category"} & changes.keys():
        del given["verdict"]
    identity = label_id(subject, given["criterion"], given["annotator"], given["kind"])
    return Label.model_validate({"label_id": identity, **given})


def send(store: Store, *sent: Label | bytes, offset: int = 0, written_at: datetime = NOW) -> None:
    records = [
        FakeRecord(
            each.wire() if isinstance(each, Label) else None,
            offset + number,
            each.label_id.encode() if isinstance(each, Label) else each,
            timestamp=int(written_at.timestamp() * 1000),
        )
        for number, each in enumerate(sent)
    ]
    store.write(batch_of("labels", *records))


def read(store: Store, *, now: datetime = NOW, **wanted: Any) -> list[JudgedLabel]:
    return labels(store, now, **wanted)


def standings(store: Store, **wanted: Any) -> list[str]:
    return [each.standing for each in read(store, **wanted)]


def test_a_label_stands_beside_the_score_that_was_seen(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    send(store, label(about(score), note="wrong"))
    (found,) = read(store)
    assert (found.standing, found.calibrates, found.verdict, found.note) == ("current", True, "fail", "wrong")
    assert found.score is not None
    assert (found.score.value, found.score.revision, found.score.config_digest) == (0.9, 0, score.config_digest)
    assert found.occurred_at == NOW


def test_a_label_may_come_before_its_session_and_then_waits(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    send(store, label(about(score)))
    assert standings(store) == ["waiting"]
    assert standings(store, now=NOW + timedelta(days=8)) == ["unknown"]
    store.write(scores_batch(score))
    assert standings(store) == ["current"]


def test_a_later_revision_makes_a_label_stale_until_it_is_confirmed(store: Store) -> None:
    first, later = make_score("a", METRIC, 0.2), make_score("a", METRIC, 0.9, revision=1)
    store.write(scores_batch(first, later))
    send(store, label(about(first)))
    (found,) = read(store)
    assert (found.standing, found.calibrates, found.newest_revision) == ("stale", False, 1)
    assert found.score is not None
    assert found.score.value == 0.2

    send(store, label(about(first, revision=1)), offset=1)
    (found,) = read(store)
    assert (found.standing, found.revision) == ("current", 1)
    assert found.score is not None
    assert found.score.value == 0.9


def test_a_retry_of_the_revision_that_was_seen_keeps_a_label_current(store: Store) -> None:
    first = make_score("a", METRIC, None, not_evaluated_because="error")
    store.write(scores_batch(first, make_score("a", METRIC, 0.9, attempt=1)))
    send(store, label(about(first)))
    (found,) = read(store)
    assert found.standing == "current"
    assert found.score is not None
    assert found.score.value == 0.9


@pytest.mark.parametrize("unknown", [{"revision": 7}, {"segment": 1}, {"segment": 1, "revision": 7}])
@pytest.mark.slow
def test_a_revision_or_segment_of_a_known_session_is_waited_for_and_then_has_a_reason(
    unknown: dict[str, int], store: Store
) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    send(store, label(about(score, **unknown)))
    assert standings(store) == ["waiting"]
    assert standings(store, now=NOW + timedelta(days=8)) == ["unknown"]


def test_without_a_revision_a_label_counts_only_while_there_is_one(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    send(store, label(about(score, revision=None, segment=None)))
    assert standings(store) == ["current"]
    store.write(scores_batch(make_score("a", METRIC, 0.1, revision=1), offset=1))
    (found,) = read(store)
    assert (found.standing, found.score) == ("unclear", None)


def test_a_criterion_that_was_not_scored_is_said(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    send(store, label(about(score), criterion="renamed"))
    assert standings(store) == ["not_scored"]


def test_a_later_revision_may_bring_the_first_score_of_a_criterion(store: Store) -> None:
    score = make_score("a", "another_metric", 0.9)
    store.write(scores_batch(score))
    send(store, label(about(score, revision=1)))
    assert standings(store) == ["waiting"]
    assert standings(store, now=NOW + timedelta(days=8)) == ["unknown"]
    store.write(scores_batch(make_score("a", "another_metric", 0.8, revision=1), offset=1))
    assert standings(store) == ["not_scored"]
    store.write(scores_batch(make_score("a", METRIC, 0.7, revision=1), offset=2))
    assert standings(store) == ["current"]


def test_twice_counts_once_and_the_later_record_counts(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    send(store, label(about(score)), label(about(score)), label(about(score), verdict="pass"))
    assert [each.verdict for each in read(store)] == ["pass"]


def test_of_two_labels_of_one_annotator_the_later_one_counts(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    later = label(about(score), verdict="pass", label_id="own-id", occurred_at=NOW + timedelta(hours=1))
    send(store, later, label(about(score)), written_at=NOW + timedelta(hours=1))
    assert [(each.verdict, each.standing) for each in read(store)] == [("pass", "current"), ("fail", "replaced")]


def test_a_label_that_names_no_segment_is_replaced_by_a_later_one_of_the_only_segment(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    unknown = about(score).model_copy(update={"segment": None})
    later = label(about(score), occurred_at=NOW + timedelta(hours=1))
    send(store, label(unknown, verdict="pass"), later, written_at=NOW + timedelta(hours=1))
    assert [(each.verdict, each.standing) for each in read(store)] == [("fail", "current"), ("pass", "replaced")]


def test_labels_of_two_annotators_both_count(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    send(store, label(about(score)), label(about(score), annotator="ben"))
    assert standings(store) == ["current", "current"]


@pytest.mark.parametrize("kind", ["user", "outcome"])
@pytest.mark.slow
def test_feedback_and_outcomes_never_calibrate(store: Store, kind: str) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    send(store, label(about(score), kind=kind))
    (found,) = read(store)
    assert (found.standing, found.calibrates) == ("current", False)


def test_a_withdrawn_label_and_one_that_a_tombstone_removes_are_gone(store: Store) -> None:
    first, second = make_score("a", METRIC, 0.9), make_score("b", METRIC, 0.9)
    one, other = label(about(first)), label(about(second), note="secret")
    send(store, one, other)
    send(store, one.model_copy(update={"withdrawn": True}), other.label_id.encode(), offset=2)
    assert read(store) == []
    assert store.query("SELECT note FROM labels WHERE note IS NOT NULL") == []


def test_a_note_is_erased_by_a_record_without_one(store: Store) -> None:
    subject = about(make_score("a", METRIC, 0.9))
    send(store, label(subject, note="she lives in Rome"))
    send(store, label(subject), offset=1)
    assert store.query("SELECT note FROM labels") == [{"note": None}]


def test_labels_are_no_results(store: Store) -> None:
    send(store, label(about(make_score("a", METRIC, 0.9))))
    assert store.query("SELECT count(*) AS n FROM results") == [{"n": 0}]
    assert store.query("SELECT count(*) AS n FROM rollups") == [{"n": 0}]


def test_a_label_outlives_the_removal_of_what_it_judges(store: Store) -> None:
    first, later = make_score("a", METRIC, 0.2), make_score("a", METRIC, 0.9, revision=1)
    unlabelled = make_score("b", METRIC, 0.4)
    store.write(scores_batch(first, later, unlabelled))
    send(store, label(about(first, revision=1)), label(about(first), annotator="ben"))
    before = read(store)
    store.remove_old({"results": NOW + timedelta(days=1)})
    assert store.query("SELECT count(*) AS n FROM results") == [{"n": 0}]
    assert read(store) == before
    assert store.query("SELECT DISTINCT session_id FROM labelled_scores") == [{"session_id": first.session_id}]


def test_a_record_that_is_no_label_is_counted_and_costs_no_other(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    good = label(about(score))
    records = [
        FakeRecord(b"no label", 0, b"x"),
        FakeRecord(good.wire(), 1, b"another key"),
        FakeRecord(good.wire(), 2, good.label_id.encode()),
    ]
    batch = batch_of("labels", *records)
    assert batch.unreadable == {"labels": 2}
    store.write(batch)
    assert len(read(store)) == 1


def test_a_label_that_another_program_dates_into_the_future_does_not_stay_the_latest(store: Store) -> None:
    score = make_score("a", METRIC, 0.9)
    store.write(scores_batch(score))
    own = label(about(score))
    ahead = label(about(score), verdict="pass", label_id="forged", occurred_at=NOW + timedelta(minutes=6))
    near = label(about(score), verdict="pass", label_id="near", occurred_at=NOW + timedelta(minutes=5))
    send(store, own, ahead)
    assert [(each.verdict, each.standing) for each in read(store)] == [("fail", "current")]
    assert store.query("SELECT n FROM unreadable_records WHERE topic = 'labels'") == [{"n": 1}]
    send(store, near, offset=2)
    assert [(each.verdict, each.standing) for each in read(store)] == [("pass", "current"), ("fail", "replaced")]


def test_labels_are_read_by_criterion_session_and_kind(store: Store) -> None:
    first, second = make_score("a", METRIC, 0.9), make_score("b", METRIC, 0.9)
    store.write(scores_batch(first, second))
    send(store, label(about(first)), label(about(second), criterion="other"), label(about(second), kind="user"))
    assert [each.session_id for each in read(store, criterion=METRIC, kind="review")] == [first.session_id]
    assert {each.session_id for each in read(store, session_id=second.session_id)} == {second.session_id}
    assert len(read(store, limit=1)) == 1
