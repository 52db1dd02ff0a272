"""Tests which scores of a side count, and which cannot be compared."""

from __future__ import annotations

import pytest
from tests.support.comparing import compared, only_metric
from tests.support.results import make_score

from traceweir.schemas.score import Cost, Score
from traceweir.streams.lab.comparison.rows import MAX_KINDS, Kind, Kinds, Side, SideRows, UncomparableScoreError
from traceweir.streams.lab.comparison.texts import Texts


def side(*scores: Score, unselected: tuple[Score, ...] = ()) -> Side:
    with Texts() as texts:
        rows = SideRows("base", Kinds(), texts)
        for score in scores:
            rows.add(score)
        for score in unselected:
            rows.add(score, selected=False)
        return rows.counting()


def test_the_highest_revision_and_attempt_of_a_result_counts_in_any_order() -> None:
    versions = [(0, 0), (1, 0), (1, 1), (0, 5)]
    scores = [make_score(revision=revision, attempt=attempt, value=attempt / 10) for revision, attempt in versions]
    counting = side(*scores, make_score("other", value=0.9))
    assert sorted(counting.rows["value"]) == [0.1, 0.9]
    assert counting.replaced == 3


def test_of_two_results_for_one_subject_the_later_one_counts() -> None:
    by_old_config, by_new_config = make_score(value=0.2), make_score(value=0.4, result_id="of another config")
    assert side(by_old_config, by_new_config).rows["value"].tolist() == [0.4]


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": "t"},
        {"segment": 1},
        {"level": "invocation"},
        {"invocation_id": "i"},
        {"trace_id": "t"},
        {"metric": "completeness"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_results_of_different_subjects_both_count(changes: dict[str, object]) -> None:
    other = make_score().model_copy(update=changes)
    assert len(side(make_score(), other).rows) == 2


def test_an_id_with_a_separator_is_not_the_identity_of_another_result() -> None:
    one = make_score("a", invocation_id="x\x1f0\x1finvocation\x1fy", level="invocation")
    other = make_score("a\x1f0\x1finvocation\x1fx", invocation_id="y", level="invocation")
    assert len(side(one, other).rows) == 2


def test_a_later_revision_that_is_not_selected_still_replaces_its_result() -> None:
    counting = side(make_score("a"), make_score("b"), unselected=(make_score("a", revision=1), make_score("c")))
    assert len(counting.rows) == 1
    assert counting.replaced == 1


@pytest.mark.parametrize(
    ("score", "named"),
    [
        (make_score(value=-1e101), "value: 1e+101 is more than 1e+100"),
        (make_score(cost=Cost(usd=1e101)), "cost.usd"),
        (make_score(cost=Cost(input_tokens=2**32)), "cost.input_tokens"),
        (make_score(revision=2**31), "revision"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_number_that_no_row_can_hold_is_refused_with_its_name(score: Score, named: str) -> None:
    with pytest.raises(UncomparableScoreError, match=named.replace("+", r"\+")):
        side(score)


def test_the_number_of_metrics_is_limited() -> None:
    kinds = Kinds()
    for number in range(MAX_KINDS):
        kinds.number(Kind(str(number), "session"))
    with pytest.raises(UncomparableScoreError, match="the maximum"):
        kinds.number(Kind("one more", "session"))
    assert kinds.number(Kind("7", "session")) == 7


def test_a_long_rationale_is_cut() -> None:
    long = make_score(value=1.0, rationale="x" * 5_000)
    found = only_metric(compared([long], [make_score(value=0.0, rationale="한국")])).verdicts
    assert found is not None
    assert (len(found.flips[0].base.rationale), found.flips[0].challenger.rationale) == (2_000, "한국")
