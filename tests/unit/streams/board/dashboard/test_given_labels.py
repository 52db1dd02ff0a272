"""A label that was written counts at once, and what the store reads later about it counts instead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.scoring import NOW

from traceweir.schemas.labels import Label, LabelSubject
from traceweir.streams.board.dashboard import given_labels
from traceweir.streams.board.dashboard.given_labels import GivenLabels

EARLIER = NOW - timedelta(hours=1)


def label(label_id: str = "one", verdict: str = "pass", **changes: Any) -> Label:
    given: dict[str, Any] = {
        "label_id": label_id,
        "subject": LabelSubject(session_id=f"session of {label_id}", segment=0, revision=0, level="session"),
        "criterion": "helpful",
        "verdict": verdict,
        "annotator": "ana",
        "kind": "review",
        "drawn": "flagged",
        "occurred_at": NOW,
        **changes,
    }
    return Label.model_validate(given)


def verdicts(given: GivenLabels, *of_store: Label) -> list[tuple[str | None, bool]]:
    found = given.with_stored(of_store, "helpful", EARLIER)
    return [(each.label.verdict, each.is_stored) for each in found]


def test_a_written_label_counts_before_the_store_has_it_and_is_that_of_the_store_then() -> None:
    given = GivenLabels()
    given.note(label())
    assert verdicts(given) == [("pass", False)]
    assert verdicts(given, label()) == [("pass", True)]


def test_the_later_one_counts_wherever_it_is() -> None:
    given = GivenLabels()
    given.note(label())
    before = label(verdict="fail", occurred_at=NOW - timedelta(minutes=1))
    after = label(verdict="fail", occurred_at=NOW + timedelta(minutes=1))
    assert verdicts(given, before) == [("pass", False)]
    assert verdicts(given, after) == [("fail", True)]


def test_a_withdrawn_label_is_gone_until_it_is_given_again() -> None:
    given = GivenLabels()
    given.note(label(withdrawn=True, occurred_at=NOW + timedelta(minutes=1)))
    assert verdicts(given, label()) == []
    given.note(label(verdict="fail", occurred_at=NOW + timedelta(minutes=2)))
    assert verdicts(given, label()) == [("fail", False)]


def test_only_reviews_of_the_criterion_and_the_time_are_named_and_a_replaced_one_is_not() -> None:
    given = GivenLabels()
    for each in (
        label("a", kind="user"),
        label("b", criterion="safe"),
        label("c", occurred_at=EARLIER - timedelta(minutes=1)),
    ):
        given.note(each)
    assert verdicts(given, label("f", kind="outcome"), label("e"), label("e")) == [("pass", True)]


def test_of_an_annotator_the_latest_label_of_a_subject_counts() -> None:
    about = LabelSubject(session_id="s", revision=0, level="session")
    # A label that names the only segment, and one that names none, have different ids.
    earlier = label("a", subject=about)
    later = label("b", "fail", subject=about.model_copy(update={"segment": 0}), occurred_at=NOW + timedelta(minutes=1))
    other = label("c", subject=about, annotator="ben")
    assert verdicts(GivenLabels(), earlier, later, other) == [("fail", True), ("pass", True)]


def test_the_oldest_label_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_labels, "MAX_REMEMBERED", 2)
    given = GivenLabels()
    for name in ("a", "b", "a", "c"):
        given.note(label(name))
    found = given.with_stored((), "helpful", EARLIER)
    assert {each.label.label_id for each in found} == {"a", "c"}
