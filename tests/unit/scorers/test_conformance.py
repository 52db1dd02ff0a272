"""Tests that every scorer and the example plugin pass the checks, and that the checks detect violations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import ClassVar

import pytest
from pydantic import ConfigDict
from traceweir_brevity import Brevity

from traceweir.schemas.invocation import Rubric
from traceweir.scorers import Measurement, ResponseMatch, Scorer, Subject, ToolTrajectory, TraceValue
from traceweir.scorers.evaluation.registry import BUILT_IN
from traceweir.scorers.judged.databricks_ratings import GuidelineAdherence
from traceweir.scorers.judged.hallucinations_v1 import Hallucinations
from traceweir.scorers.judged.rubric_based_final_response_quality_v1 import RubricBasedFinalResponseQuality
from traceweir.scorers.judged.rubric_based_multi_turn_trajectory_quality_v1 import (
    RubricBasedTrajectoryQuality,
)
from traceweir.scorers.judged.rubric_based_tool_use_quality_v1 import RubricBasedToolUseQuality
from traceweir.scorers.judged.rubrics import RubricBased
from traceweir.scorers.metrics.checks.response_json import ResponseIsJson
from traceweir.scorers.metrics.checks.response_text import (
    ResponseContains,
    ResponseExcludes,
    ResponseLength,
    ResponseMatches,
)
from traceweir.scorers.metrics.checks.tool_limits import ForbiddenTools
from traceweir.scorers.metrics.completeness import Completeness
from traceweir.scorers.metrics.content_similarity import ContentSimilarity
from traceweir.scorers.metrics.keyword_coverage import KeywordCoverage
from traceweir.scorers.metrics.tool_call_accuracy import ToolCallAccuracy
from traceweir.scorers.metrics.trajectory import TrajectorySingleToolUse
from traceweir.scorers.testing import (
    CHECKS,
    Check,
    check_it_is_deterministic,
    check_it_is_documented,
    check_it_is_immutable,
    check_its_options_are_its_config,
    check_its_range_and_version,
    check_its_values,
    sample_subjects,
)

SHORT = Rubric(rubric_id="short", rubric_content={"text_property": "It is short."})
NEED_OPTIONS = (
    TrajectorySingleToolUse,
    ToolCallAccuracy,
    GuidelineAdherence,
    ForbiddenTools,
    ResponseContains,
    ResponseExcludes,
    ResponseMatches,
    ResponseLength,
)
SCORERS: list[Scorer] = [
    *(kind() for kind in BUILT_IN.values() if kind not in NEED_OPTIONS and not issubclass(kind, RubricBased)),
    RubricBasedFinalResponseQuality(rubrics=[SHORT]),
    RubricBasedToolUseQuality(rubrics=[SHORT]),
    RubricBasedTrajectoryQuality(rubrics=[SHORT]),
    GuidelineAdherence(guidelines=["The answer is polite."]),
    Hallucinations(evaluate_intermediate_nl_responses=True),
    TrajectorySingleToolUse(tool_name="find"),
    ToolCallAccuracy(expected_tool="find"),
    ToolCallAccuracy(expected_tool_order=["find", "other"], strict_mode=True),
    ForbiddenTools(tools=["book"]),
    ResponseContains(texts=["seats"]),
    ResponseExcludes(texts=["seats"]),
    ResponseMatches(pattern="seats?"),
    ResponseLength(max_chars=100),
    ResponseIsJson(json_schema={"type": "object"}),
    Completeness(compat="mastra"),
    KeywordCoverage(compat="mastra"),
    ContentSimilarity(compat="mastra"),
    ToolTrajectory(match_type="ANY_ORDER", ignore_args=True),
    ResponseMatch(),
    TraceValue(),
    TraceValue(preset="knowledgepulse", clamp=True),
    Brevity(max_words=3),
]


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_a_built_in_scorer_passes_every_check(scorer: Scorer) -> None:
    subjects = sample_subjects()
    for check in CHECKS:
        check(scorer, subjects)


class Undocumented(Scorer):
    def score(self, subject: Subject) -> Measurement:
        return Measurement(value=0.5)


class Careless(Undocumented):
    """Accepts any option."""

    model_config = ConfigDict(extra="ignore")


class Mutable(Undocumented):
    """Allows changes of its options."""

    model_config = ConfigDict(frozen=False)
    option: int = 1


class Backwards(Undocumented):
    """Has a range that ends before it begins."""

    range: ClassVar[tuple[float, float]] = (1.0, 0.0)


class TooGenerous(Scorer):
    """Returns a value above its range."""

    def score(self, subject: Subject) -> Measurement:
        return Measurement(value=2.0)


class Moody(Scorer):
    """Returns a different value each time."""

    seen: ClassVar[Iterator[int]] = itertools.count()

    def score(self, subject: Subject) -> Measurement:
        return Measurement(value=0.0, rationale=f"{next(self.seen)}")


@pytest.mark.parametrize(
    ("check", "scorer", "complaint"),
    [
        (check_it_is_documented, Undocumented(), "no docstring"),
        (check_its_options_are_its_config, Careless(), "accepts an option"),
        (check_it_is_immutable, Mutable(), "option can be set"),
        (check_its_range_and_version, Backwards(), "lower to a higher"),
        (check_its_values, TooGenerous(), "outside its range"),
        (check_it_is_deterministic, Moody(), "for the same subject"),
    ],
)
def test_a_scorer_that_violates_a_check_is_reported(check: Check, scorer: Scorer, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check(scorer, sample_subjects())
