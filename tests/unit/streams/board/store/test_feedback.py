"""Feedback of users and outcomes is counted apart from reviews, by criterion and by slice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import scores_batch, send_labels

from traceweir.schemas.labels import Label, LabelSubject, label_id
from traceweir.streams.base.canary_app import CANARY_APP
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
    identity = label_id(fields["subject"], fields["criterion"], fields["annotator"], fields["kind"])
    return Label.model_validate({"label_id": identity, **fields})


def test_kinds_and_criteria_never_mix_and_reviews_are_left_out(store: Store) -> None:
    booked = {"criterion": "booked", "kind": "outcome"}
    send_labels(
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
    send_labels(store, said(1, "fail", label_id="own"), said(1, "pass", occurred_at=NOW + timedelta(minutes=1)))
    (found,) = feedback(store, SPAN).found
    assert (found.passed, found.failed) == (1, 0)


def test_slices_are_those_of_the_sessions_and_a_filter_selects_by_them(store: Store) -> None:
    scores = [make_score(f"s{number}", agent_version="ab"[number % 2], app_name="rail") for number in range(60)]
    store.write(scores_batch(*scores))
    send_labels(store, *(said(number, "fail" if number % 4 == 1 else "pass") for number in range(61)))
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
    send_labels(store, *(said(1, annotator=f"user-{number}") for number in range(30)))
    (found,) = feedback(store, SPAN).found
    assert (found.rate, found.high, found.sessions) == (1.0, 1.0, 1)
    assert found.low is not None
    assert found.low < 0.1


def test_what_is_too_much_is_left_out_and_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback_module, "MAX_FEEDBACK", 2)
    send_labels(store, *(said(number) for number in range(5)))
    found = feedback(store, SPAN)
    assert (found.left_out, found.found[0].labels) == (3, 2)


def test_a_selection_counts_its_own_latest_labels_whatever_others_have(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of other apps and of canaries take no place and are not said to be left out."""
    monkeypatch.setattr(feedback_module, "MAX_FEEDBACK", 3)
    apps = ["rail"] * 4 + ["hotel"] * 4 + [CANARY_APP] * 4
    store.write(scores_batch(*(make_score(f"s{number}", app_name=app) for number, app in enumerate(apps))))
    send_labels(store, *(said(number, occurred_at=NOW + timedelta(seconds=number)) for number in range(len(apps))))
    rail = feedback(store, Selection(SPAN.since, SPAN.until, {"app_name": "rail"}))
    assert (rail.left_out, rail.found[0].labels) == (1, 3)
    every = feedback(store, SPAN)
    assert (every.left_out, every.found[0].labels) == (5, 3)


def test_slices_and_the_canary_filter_outlive_the_results(store: Store) -> None:
    apps = ["rail"] * 30 + ["hotel"] * 30 + [CANARY_APP]
    scores = [make_score(f"s{number}", "thumbs", app_name=app) for number, app in enumerate(apps)]
    store.write(scores_batch(*scores))
    send_labels(store, *(said(number) for number in range(len(apps))))
    before = feedback(store, SPAN)
    store.remove_old({"results": NOW + timedelta(days=1)})
    assert store.query("SELECT count(*) AS n FROM results") == [{"n": 0}]
    assert feedback(store, SPAN) == before
    assert [(each.value, each.labels) for each in before.found[0].slices] == [("hotel", 30), ("rail", 30)]


def test_a_label_has_the_dimensions_of_its_segment_or_else_of_the_last_one(store: Store) -> None:
    segments = [
        make_score("s1", segment=number, revision=revision, agent_version=version)
        for number, revision, version in ((0, 0, "z"), (0, 1, "c"), (1, 0, "a"))
    ]
    store.write(scores_batch(*segments))
    about = LabelSubject(session_id="s1", segment=0, revision=1, level="session")
    send_labels(store, said(1, annotator="of-all"), said(1, "fail", annotator="of-first", subject=about))
    for version, passed, failed in (("a", 1, 0), ("c", 0, 1)):
        (found,) = feedback(store, Selection(SPAN.since, SPAN.until, {"agent_version": version})).found
        assert (found.passed, found.failed) == (passed, failed)
    assert feedback(store, Selection(SPAN.since, SPAN.until, {"agent_version": "z"})).found == []
