"""The interval of kappa contains the true one with categories, sessions and skewed answers, or there is none."""

from __future__ import annotations

import numpy as np
import pytest

from traceweir.streams.base.statistics.drawn_kappa import DrawnKappa, drawn_kappa

pytestmark = pytest.mark.slow


def kappa_of(first: list[int], second: list[int], of_session: int = 1, weight: float = 1.0) -> DrawnKappa:
    weights = np.ones(len(first))
    weights[0] = weight
    return drawn_kappa(np.array(first), np.array(second), weights, np.arange(len(first)) // of_session)


def test_with_many_independent_answers_it_is_near_that_of_statsmodels() -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    chance = np.random.default_rng(5)
    first = chance.choice(4, 4_000, p=[0.4, 0.3, 0.2, 0.1])
    second = np.where(chance.random(4_000) < 0.9, first, chance.integers(0, 4, 4_000))
    found = drawn_kappa(first, second, np.ones(4_000), np.arange(4_000))
    table = np.zeros((4, 4))
    np.add.at(table, (first, second), 1)
    theirs = cohens_kappa(table)
    assert found.value == pytest.approx(theirs.kappa, abs=1e-12)
    assert found.interval is not None
    low, high = found.interval
    assert low == pytest.approx(theirs.kappa_low, abs=0.002)
    assert high == pytest.approx(theirs.kappa_upp, abs=0.002)


def test_answers_that_are_all_the_same_have_an_interval_with_a_width() -> None:
    answers = [0, 1, 2] * 10
    found = kappa_of(answers, answers)
    assert found.value == 1
    assert found.interval is not None
    low, high = found.interval
    assert high == 1
    assert 0.75 < low < 0.9


def test_sessions_in_which_all_differ_make_it_wider() -> None:
    first = [0, 1, 2, 1] * 60
    second = [(each + (at // 4 % 5 == 0)) % 3 for at, each in enumerate(first)]
    alone = kappa_of(first, second).interval
    clustered = kappa_of(first, second, 4).interval
    assert alone is not None
    assert clustered is not None
    assert clustered[1] - clustered[0] > 1.7 * (alone[1] - alone[0])


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (kappa_of([0, 1] * 9 + [0], [0, 1] * 9 + [1]), "19 subjects"),
        (kappa_of([0, 1] * 18, [0, 1] * 18, 4), "nine sessions"),
        (kappa_of([0] * 26 + [1] * 4, [0] * 26 + [1] * 4), "four other answers"),
        (kappa_of([0] * 30 + [1] * 10, [0] * 30 + [1] * 10, 4), "other answers of three sessions"),
        (kappa_of([0, 1] * 20, [0, 1] * 20, weight=2.0), "two probabilities"),
    ],
    ids=lambda found: found if isinstance(found, str) else "",
)
def test_where_none_was_shown_to_hold_there_is_none(found: DrawnKappa, why: str) -> None:
    assert found.value is not None
    assert found.interval is None, why


def test_one_and_the_same_answer_has_no_kappa() -> None:
    assert kappa_of([0] * 30, [0] * 30) == (None, None)
