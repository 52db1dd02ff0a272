"""Tests how many more labels a statement asks for, if some labels are unsure."""

from __future__ import annotations

import numpy as np
import pytest

from traceweir.streams.base.statistics.rate_statement import JudgedSubjects, RateStatement, state_rate

OTHERS = 2_000


def stated(labels: int, unsure_share: float, seed: int = 1) -> RateStatement:
    """Returns the statement with so many random labels of a judge that is right about 90 % of the answers."""
    random = np.random.default_rng(seed)
    count = labels + OTHERS
    truth = (random.random(count) < 0.8).astype(float)
    verdicts = np.where(random.random(count) < 0.9, truth, 1 - truth)
    truth[: round(labels * unsure_share)] = np.nan
    truth[labels:] = np.nan
    chances = np.where(np.arange(count) < labels, labels / count, np.nan)
    return state_rate(JudgedSubjects(verdicts, np.ones(count), np.arange(count), truth, chances), half_width=0.1)


@pytest.mark.parametrize("unsure_share", [0.0, 0.05, 0.1])
def test_about_as_many_more_labels_as_the_statement_asks_for_are_enough(unsure_share: float) -> None:
    first = stated(30, unsure_share)
    assert first.more_labels is not None
    assert first.more_labels > 0
    enough = stated(round(1.3 * (30 + first.more_labels)), unsure_share)
    assert enough.more_labels == 0
    too_few = stated(round(0.7 * (30 + first.more_labels)), unsure_share)
    assert too_few.more_labels != 0


def test_no_number_of_labels_is_enough_with_many_unsure_ones() -> None:
    found = stated(200, 0.3)
    assert found.more_labels is None
    assert found.sentence.endswith(
        "That is not known to +/- 0.1 yet: no number of labels is enough with so many unsure."
    )
    found = stated(5_000, 0.25)
    assert found.more_labels is None
    assert found.sentence.endswith("no number of labels is enough with so many unsure.")


@pytest.mark.parametrize(("sure", "unsure"), [(2, 1), (0, 1), (12, 3), (150, 50)])
def test_few_labels_do_not_say_that_no_number_is_enough(sure: int, unsure: int) -> None:
    """The true share of unsure labels can be far below the share that was seen."""
    found = stated(sure + unsure, unsure / (sure + unsure))
    assert (found.labels, found.unsure, found.more_labels) == (sure, unsure, None)
    assert "with so many unsure, it cannot be said yet how many more labels are enough" in found.sentence
    assert "no number" not in found.sentence


def test_labels_that_are_all_unsure_ask_for_no_number() -> None:
    found = stated(5, 1.0)
    assert (found.labels, found.unsure, found.more_labels) == (0, 5, None)
    assert "cannot be said yet: no number of labels is enough with so many unsure for +/- 0.1" in found.sentence
