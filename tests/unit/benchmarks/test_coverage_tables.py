"""The tables of coverage in `benchmarks/results` are those of the benchmarks, and what they show is at least 0.93."""

from __future__ import annotations

import re

import pytest
from benchmarks import kappa, trust
from benchmarks.result_tables import cells, stored

pytestmark = pytest.mark.slow

CONSERVATIVE = ("exact", "ppi++", "rogan-gladen")
"""Methods that the page names as conservative by construction, which may cover more than 0.97."""
RATES = stored("trust-rates").rows
KAPPAS = stored("kappa").rows


def test_the_file_has_each_row_of_the_benchmark_of_rates() -> None:
    places = list(trust.cells())
    assert len(RATES) == len(places)
    for row, cell in zip(RATES, places, strict=True):
        assert row[: len(cells(cell.name))] == cells(cell.name)


@pytest.mark.parametrize("place", [0, 6, 60, 81])
def test_a_row_of_rates_is_what_the_benchmark_prints(place: int) -> None:
    cell = [*trust.cells()][place]
    assert cells(trust.row(place, cell)) == RATES[place]


def test_each_coverage_of_a_rate_is_at_least_093_and_above_097_only_of_conservative_methods() -> None:
    for row in RATES:
        *_, methods, _, coverage, _ = row
        if methods == "none":
            continue
        assert float(coverage) >= 0.93, row
        if float(coverage) > 0.97:
            named = re.findall(r"[a-z+-]+", methods)
            assert {*named} <= {*CONSERVATIVE} or row[0].startswith(("0.9 to 1", "beta")), row


def test_the_file_has_each_row_of_the_benchmark_of_kappa() -> None:
    places = list(kappa.places())
    assert len(KAPPAS) == len(places)
    for row, (shares, labels, of_one) in zip(KAPPAS, places, strict=True):
        named = ", ".join(f"{each:g}" for each in shares)
        assert row[:3] == [named, str(labels), str(of_one or "1 to 20")]


@pytest.mark.parametrize("place", [0])
def test_a_row_of_kappa_is_what_the_benchmark_prints(place: int) -> None:
    assert cells(kappa.row(place, *[*kappa.places()][place]).text()) == KAPPAS[place]


def test_each_coverage_of_kappa_is_at_least_093() -> None:
    for row in KAPPAS:
        if coverage := row[4]:
            assert float(coverage.split(" to ")[0]) >= 0.93, row
