"""Tests the direction and the unit of metrics."""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast

import pytest
from tests.support.paths import ROOT

from traceweir.scorers import Measurement, Scorer, Subject
from traceweir.scorers.base import Direction
from traceweir.scorers.evaluation.description import Description, description_of
from traceweir.scorers.evaluation.registry import PLACES, scorer_class


class Reports(Scorer):
    """Reports a number."""

    informational: ClassVar[bool] = True

    def score(self, subject: Subject) -> Measurement:
        """Reports 1."""
        return Measurement(value=1.0)


def derived(base: type[Scorer], **attributes: Any) -> type[Scorer]:
    return cast("type[Scorer]", type("Derived", (base,), {"__module__": __name__, **attributes}))


def test_the_page_of_metrics_has_the_direction_and_the_unit_of_every_metric_that_differs_from_the_default() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[^|]*) \| (higher|lower|neutral) \| (\w*) ?\|$", page, re.MULTILINE)
    told = {
        name.strip("`"): Description(cast("Direction", direction), unit or None)
        for names, direction, unit in rows
        for name in names.split(", ")
    }
    known = {name: description_of(name) for name in told}
    assert told == known
    scorers = {scorer_class(name) for name in told}
    others = [name for name in PLACES if scorer_class(name) not in scorers]
    assert {description_of(name) for name in others} == {Description("higher", None)}


def test_an_informational_metric_is_neutral_unless_it_says_otherwise() -> None:
    assert Reports.direction == "neutral"
    assert derived(Reports).direction == "neutral"
    lower = derived(Reports, direction="lower", __annotations__={"direction": ClassVar[Direction]})
    assert lower.direction == "lower"
    assert derived(lower).direction == "lower"


@pytest.mark.parametrize(
    ("direction", "informational", "message"),
    [
        ("down", True, "Derived.direction is 'down'; it must be one of higher, lower, neutral"),
        ("neutral", False, "Derived.direction is neutral, so no side of a threshold is better: set informational"),
    ],
)
def test_a_direction_that_does_not_exist_or_has_no_use_is_refused(
    direction: str, informational: bool, message: str
) -> None:
    annotations = {"direction": ClassVar[str], "informational": ClassVar[bool]}
    with pytest.raises(TypeError, match=re.escape(message)):
        derived(Reports, direction=direction, informational=informational, __annotations__=annotations)


@pytest.mark.parametrize("metric", ["our_tone", "no such metric", "", "response_evaluation_score", "gat\u202ee"])
def test_a_metric_without_an_installed_scorer_has_no_description(metric: str) -> None:
    assert description_of(metric) is None


def test_the_values_of_traces_have_a_description() -> None:
    assert description_of("trace_value") == description_of("gate") == Description("higher", None)
