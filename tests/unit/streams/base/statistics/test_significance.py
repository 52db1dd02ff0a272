"""Tests the exact test, the agreement and the correction against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.base.statistics.significance import cohens_kappa, exact_mcnemar, holm

# Each test imports what it compares with, and one process runs these tests: SciPy, pandas and statsmodels take 3 s of CPU.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("statsmodels")]

counts = st.integers(0, 40)


@given(counts, counts)
def test_mcnemar_is_that_of_statsmodels(to_failed: int, to_passed: int) -> None:
    from statsmodels.stats import contingency_tables

    table = np.array([[3, to_failed], [to_passed, 4]])
    expected = contingency_tables.mcnemar(table, exact=True).pvalue if to_failed + to_passed else 1.0
    assert exact_mcnemar(to_failed, to_passed) == pytest.approx(expected)


@given(counts, st.integers(1, 40), st.integers(1, 40), counts)
def test_kappa_is_that_of_statsmodels(both_passed: int, to_failed: int, to_passed: int, both_failed: int) -> None:
    from statsmodels.stats import inter_rater

    table = np.array([[both_passed, to_failed], [to_passed, both_failed]])
    expected = inter_rater.cohens_kappa(table, return_results=False)
    assert cohens_kappa(both_passed, both_failed, to_failed, to_passed) == pytest.approx(expected)


@pytest.mark.parametrize("counts", [(9, 0, 0, 0), (0, 9, 0, 0)], ids=["passed", "failed"])
def test_one_and_the_same_verdict_has_no_kappa(counts: tuple[int, int, int, int]) -> None:
    assert cohens_kappa(*counts) is None


@pytest.mark.parametrize(
    "p_values",
    [[0.03], [0.01, 0.04, 0.03], [0.01, 0.01, 0.01], [0.9, 0.5, 0.7], [0.0, 1.0], [0.02, 0.001, 0.4, 0.02, 0.05]],
    ids=str,
)
def test_the_correction_is_that_of_statsmodels(p_values: list[float]) -> None:
    from statsmodels.stats import multitest

    assert holm(p_values) == pytest.approx(multitest.multipletests(p_values, method="holm")[1].tolist())
