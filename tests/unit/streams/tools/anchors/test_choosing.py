"""Tests which labels become anchors, and of which session."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.support.anchors import CRITERION, anchor, frozen_session, label, subject
from tests.support.scoring import NOW

from traceweir.schemas.anchor import Anchor, anchor_id
from traceweir.streams.tools.anchors import choosing
from traceweir.streams.tools.anchors.choosing import chosen_anchors, labelled_subjects, unlabelled


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"withdrawn": True}, "withdrawn"),
        ({"kind": "user"}, "of the kind user"),
        ({"verdict": None, "value": 0.5}, "a number or a category"),
        ({"verdict": "unsure"}, "unsure"),
        ({"subject": subject("s", level="trace", invocation_id=None, trace_id="t")}, "about a trace"),
        ({"criterion": "helpful"}, None),
    ],
)
def test_only_reviews_that_pass_or_fail_count(changes: dict[str, Any], reason: str | None) -> None:
    subjects, refused = labelled_subjects([label(subject("s"), **changes)], CRITERION)
    assert subjects == []
    assert [each[: len(reason or "")] for each in refused] == ([reason] if reason else [])


def test_those_of_a_random_draw_come_first_and_people_who_disagree_are_left_out() -> None:
    flagged: dict[str, Any] = {"drawn": "flagged", "inclusion_probability": None}
    labels = [
        *(label(subject(f"flagged-{number}"), **flagged) for number in range(3)),
        *(label(subject(f"random-{number}"), "fail") for number in range(3)),
        label(subject("doubtful")),
        label(subject("doubtful"), "fail", annotator="ben"),
        label(subject("both")),
        label(subject("both"), annotator="ben"),
    ]
    subjects, refused = labelled_subjects(labels, None)
    assert [each.is_random for each in subjects] == [True] * 4 + [False] * 3
    assert {each.subject.session_id: len(each.labels) for each in subjects}["both"] == 2
    assert refused == {"people disagree about the subject": 2}


def chosen(*labels: Any, known: dict[str, Anchor] | None = None, limit: int = 10, **frozen: Any) -> Any:
    subjects, _ = labelled_subjects(labels, None)
    sessions = {("s", 0): [frozen_session("s")], **{("s", int(name[1:])): each for name, each in frozen.items()}}
    return chosen_anchors(subjects, sessions, known or {}, limit, NOW)


def test_an_anchor_has_the_session_in_the_revision_that_was_labelled() -> None:
    revisions = [frozen_session("s", revision) for revision in range(3)]
    (found,) = chosen(label(subject("s", revision=1)), s0=revisions).anchors
    assert found.session == revisions[1]
    assert found.subject.revision == 1
    (latest,) = chosen(label(subject("s", revision=None)), s0=revisions).anchors
    assert latest.session == revisions[2]
    assert Anchor.model_validate_json(found.wire()) == found


def test_a_session_that_is_gone_or_not_named_is_said() -> None:
    assert chosen(label(subject("other"))).refused == {
        "the topic sessions no longer has the session in the revision that was labelled": 1
    }
    two: dict[str, Any] = {"s1": [frozen_session("s", segment=1)]}
    assert chosen(label(subject("s", segment=None)), **two).refused == {
        "the session has several segments, and the label names none": 1
    }


def test_what_is_an_anchor_already_stays_unless_its_label_is_another_one() -> None:
    known = {anchor_id(subject("s"), CRITERION): anchor("s", "pass")}
    assert chosen(label(subject("s")), known=known).refused == {"an anchor already": 1}
    (found,) = chosen(label(subject("s"), "fail"), known=known, limit=1).anchors
    assert found.label == "fail"


def test_the_limits_of_number_and_bytes_hold_and_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"s-{number}" for number in range(4)]
    subjects, _ = labelled_subjects([label(subject(name)) for name in names], None)
    sessions = {(name, 0): [frozen_session(name)] for name in names}
    found = chosen_anchors(subjects, sessions, {}, 3, NOW)
    assert len(found.anchors) == 3
    assert found.refused == {"over the limit of 3 anchors of a criterion": 1}
    size = len(found.anchors[0].wire())
    monkeypatch.setattr(choosing, "MAX_ALL_BYTES", 2 * size)
    assert len(chosen_anchors(subjects, sessions, {}, 4, NOW).anchors) == 2
    monkeypatch.setattr(choosing, "MAX_ANCHOR_BYTES", size - 1)
    refused = chosen_anchors(subjects, sessions, {}, 4, NOW).refused
    assert refused == Counter({f"larger than {size - 1:,} bytes": 4})


def test_an_anchor_is_named_when_people_no_longer_say_one_thing_about_it() -> None:
    labels = [
        label(subject("kept")),
        label(subject("gone"), withdrawn=True),
        label(subject("unsure"), "unsure"),
        label(subject("both")),
        label(subject("both"), "fail", annotator="ben"),
    ]
    subjects, _ = labelled_subjects(labels, None)
    known = {anchor_id(subject(name), CRITERION): anchor(name, "pass") for name in ("kept", "gone", "unsure", "both")}
    found = unlabelled(known, subjects, None)
    assert [each.session.session_id for each in found] == ["gone", "unsure", "both"]
    assert unlabelled(known, [], "another criterion") == []
