"""The agreement in numbers and categories equals that of other packages, and its intervals contain the truth."""

from __future__ import annotations

import numpy as np
import pytest

from traceweir.streams.base.statistics.answer_agreement import AnswerPair, category_agreement, number_agreement

pytestmark = pytest.mark.slow

DRAWS = 400


def test_kappa_equals_that_of_statsmodels() -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    chance = np.random.default_rng(5)
    people = chance.choice(list("abcd"), 60)
    judge = np.where(chance.random(60) < 0.7, people, chance.choice(list("abcd"), 60))
    found = category_agreement(
        [AnswerPair(str(a), str(b), str(at), 5.0) for at, (a, b) in enumerate(zip(people, judge, strict=True))]
    )
    assert found is not None
    table = [[found.table.get((a, b), 0) for b in "abcd"] for a in "abcd"]
    assert found.kappa == pytest.approx(cohens_kappa(table).kappa, abs=1e-12)
    assert sum(found.table.values()) == found.labels == 60


@pytest.mark.parametrize(("sessions", "of_session"), [(10, 1), (20, 3), (60, 1)])
def test_the_interval_of_the_difference_contains_the_true_one(sessions: int, of_session: int) -> None:
    """Numbers from 1 to 5 by people, and by a judge that gives 0.3 more on average; a session has a deviation of its own."""
    chance = np.random.default_rng(7)
    covered = 0
    for _ in range(DRAWS):
        own = np.repeat(chance.normal(0, 0.5, sessions), of_session)
        people = chance.integers(1, 6, sessions * of_session).astype(float)
        judge = people + 0.3 + own + chance.choice([-1.0, 0.0, 1.0], sessions * of_session)
        pairs = [
            AnswerPair(a, b, str(at // of_session), 1.0) for at, (a, b) in enumerate(zip(people, judge, strict=True))
        ]
        found = number_agreement(pairs)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.3 <= found.high
    assert 0.925 <= covered / DRAWS <= 0.985


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([AnswerPair(1.0, 1.0 + at % 2, str(at), 1.0) for at in range(9)], "nine sessions"),
        ([AnswerPair(1.0, 2.0, str(at), 1.0) for at in range(30)], "all differ by the same"),
        ([AnswerPair(1.0, 1.0 + at % 2, str(at), 1.0 + at) for at in range(30)], "several probabilities"),
    ],
)
def test_where_no_interval_holds_there_is_none(pairs: list[AnswerPair], why: str) -> None:
    found = number_agreement(pairs)
    assert found is not None
    assert (found.low, found.high) == (None, None), why


def test_numbers_and_categories_do_not_mix() -> None:
    pairs = [AnswerPair(1.0, 2.0, "a", 1.0), AnswerPair("good", "good", "b", 1.0), AnswerPair("good", 2.0, "c", 1.0)]
    numbers = number_agreement(pairs)
    categories = category_agreement(pairs)
    assert numbers is not None
    assert categories is not None
    assert (numbers.labels, categories.labels) == (1, 1)
    assert categories.kappa is None
    assert number_agreement([]) is None
    assert category_agreement([]) is None
