"""Feedback of users and outcomes is counted apart from reviews, by criterion and by slice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, scores_batch

from traceweir.schemas.labels import Label, LabelSubject, label_id
from traceweir.streams.board.store import feedback as feedback_module
from traceweir.streams.board.store.feedback import feedback
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.selection import Selection

SPAN = Selection(NOW - timedelta(days=1), NOW + timedelta(days=1))


def said(number: int, verdict: str | None = "pass", **changes: Any) -> Label:
    about = LabelSubject(session_id=f"s{number}", segment=None, revision=None, level="session")
    fields: dict[str, Any] = {
        "subject": about, "criterion": "thumbs", "verdict": verdict, "annotator": f"user-{number}", "kind": "user",
        "occurred_at": NOW, **changes,
    }  # fmt: skip
    identity = label_id(about, fields["criterion"], fields["annotator"], fields["kind"])
    return Label.model_validate({"label_id": identity, **fields})


def put(store: Store, *labels: Label) -> None:
    records = [FakeRecord(each.wire(), number, each.label_id.encode()) for number, each in enumerate(labels)]
    store.write(batch_of("labels", *records))


def test_kinds_and_criteria_never_mix_and_reviews_are_left_out(store: Store) -> None:
    booked = {"criterion": "booked", "kind": "outcome"}
    put(
        store, said(1), said(2, "fail", note="no seat"), said(3, "unsure"), said(4, None, value=4.0), said(1, **booked),
        said(5, kind="review"), said(6, withdrawn=True), said(7, occurred_at=NOW - timedelta(days=2)),
    )  # fmt: skip
    thumbs, outcome = feedback(store, SPAN).found
    assert (thumbs.criterion, thumbs.kind, thumbs.labels, thumbs.sessions) == ("thumbs", "user", 4, 4)
    assert (thumbs.passed, thumbs.failed, thumbs.unsure, thumbs.others) == (1, 1, 1, 1)
    assert thumbs.rate == 0.5
    assert [(each.session_id, each.note) for each in thumbs.notes] == [("s2", "no seat")]
    assert (outcome.criterion, outcome.kind, outcome.labels) == ("booked", "outcome", 1)


def test_the_later_one_of_two_labels_of_one_annotator_counts(store: Store) -> None:
    put(store, said(1, "fail", label_id="own"), said(1, "pass", occurred_at=NOW + timedelta(minutes=1)))
    (found,) = feedback(store, SPAN).found
    assert (found.passed, found.failed) == (1, 0)


def test_slices_are_those_of_the_sessions_and_a_filter_selects_by_them(store: Store) -> None:
    scores = [make_score(f"s{number}", agent_version="ab"[number % 2], app_name="rail") for number in range(60)]
    store.write(scores_batch(*scores))
    put(store, *(said(number, "fail" if number % 4 == 1 else "pass") for number in range(61)))
    (found,) = feedback(store, SPAN).found
    assert found.labels == 61
    assert [(each.dimension, each.value, each.labels, each.rate) for each in found.slices] == [
        ("agent_version", "a", 30, 1.0), ("agent_version", "b", 30, 0.5)
    ]  # fmt: skip
    assert found.slices[1].low is not None
    assert found.slices[1].low < 0.4
    only = Selection(SPAN.since, SPAN.until, {"agent_version": "a"})
    (found,) = feedback(store, only).found
    assert (found.labels, found.slices) == (30, [])


def test_labels_of_one_session_are_not_as_many_people(store: Store) -> None:
    put(store, *(said(1, annotator=f"user-{number}") for number in range(30)))
    (found,) = feedback(store, SPAN).found
    assert (found.rate, found.high, found.sessions) == (1.0, 1.0, 1)
    assert found.low is not None
    assert found.low < 0.1


def test_what_is_too_much_is_left_out_and_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback_module, "MAX_FEEDBACK", 2)
    put(store, *(said(number) for number in range(5)))
    found = feedback(store, SPAN)
    assert (found.left_out, found.found[0].labels) == (3, 2)
