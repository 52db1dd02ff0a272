"""The tables of coverage in docs/trust.md are those of the benchmarks, and what they show is at least 0.93."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks import kappa, trust

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[3] / "docs/trust.md").read_text("utf-8")
CONSERVATIVE = ("exact", "ppi++", "rogan-gladen")
"""Methods that the page names as conservative by construction, which may cover more than 0.97."""


def rows_below(head: str) -> list[str]:
    """Returns the rows of the table with this head."""
    below = PAGE.split(f"{head}\n", 1)[1]
    return [line for line in below.split("\n\n", 1)[0].splitlines() if not line.startswith("|---")]


RATES = rows_below(trust.HEAD)
KAPPAS = rows_below(kappa.HEAD)


def test_the_page_has_each_row_of_the_benchmark_of_rates() -> None:
    places = list(trust.cells())
    assert len(RATES) == len(places)
    for row, cell in zip(RATES, places, strict=True):
        assert row.startswith(f"| {cell.name} |")


@pytest.mark.parametrize("place", [0, 6, 60, 81])
def test_a_row_of_rates_is_what_the_benchmark_prints(place: int) -> None:
    cell = [*trust.cells()][place]
    assert trust.row(place, cell) == RATES[place]


def test_each_coverage_of_a_rate_is_at_least_093_and_above_097_only_of_conservative_methods() -> None:
    for row in RATES:
        *_, methods, _, coverage, _ = [each.strip() for each in row.strip("|").split("|")]
        if methods == "none":
            continue
        assert float(coverage) >= 0.93, row
        if float(coverage) > 0.97:
            named = re.findall(r"[a-z+-]+", methods)
            assert {*named} <= {*CONSERVATIVE} or "0.9 to 1" in row or "beta" in row, row


def test_the_page_has_each_row_of_the_benchmark_of_kappa() -> None:
    places = list(kappa.places())
    assert len(KAPPAS) == len(places)
    for row, (shares, labels, of_one) in zip(KAPPAS, places, strict=True):
        named = ", ".join(f"{each:g}" for each in shares)
        assert row.startswith(f"| {named} | {labels} | {of_one or '1 to 20'} |")


@pytest.mark.parametrize("place", [0])
def test_a_row_of_kappa_is_what_the_benchmark_prints(place: int) -> None:
    assert kappa.row(place, *[*kappa.places()][place]).text() == KAPPAS[place]


def test_each_coverage_of_kappa_is_at_least_093() -> None:
    for row in KAPPAS:
        coverage = row.strip("|").split("|")[4].strip()
        if coverage:
            assert float(coverage.split(" to ")[0]) >= 0.93, row
