"""Finds the scorer that computes a metric, among the built-in scorers and those of plugins."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from traceweir.scorers import databricks_names
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import ALIASES, full_name
from traceweir.scorers.judged.chunk_relevance import ChunkRelevancePrecision
from traceweir.scorers.judged.databricks_ratings import (
    ContextSufficiency,
    Correctness,
    Groundedness,
    GuidelineAdherence,
    RelevanceToQuery,
    SafetyRating,
)
from traceweir.scorers.judged.final_response_match_v2 import FinalResponseMatch
from traceweir.scorers.judged.hallucinations_v1 import Hallucinations
from traceweir.scorers.judged.rubric_based_final_response_quality_v1 import RubricBasedFinalResponseQuality
from traceweir.scorers.judged.rubric_based_tool_use_quality_v1 import RubricBasedToolUseQuality
from traceweir.scorers.judged.safety_v1 import Safety
from traceweir.scorers.metrics.completeness import Completeness
from traceweir.scorers.metrics.content_similarity import ContentSimilarity
from traceweir.scorers.metrics.document_recall import DocumentRecall
from traceweir.scorers.metrics.efficiency import (
    InferenceCallCount,
    InvocationDuration,
    TokenUsageTotal,
    ToolCallCount,
)
from traceweir.scorers.metrics.keyword_coverage import KeywordCoverage
from traceweir.scorers.metrics.latency import Latency
from traceweir.scorers.metrics.response_match import ResponseMatch
from traceweir.scorers.metrics.token_counts import InputTokenCount, OutputTokenCount, TotalTokenCount
from traceweir.scorers.metrics.tool_call_accuracy import ToolCallAccuracy
from traceweir.scorers.metrics.tool_trajectory import ToolTrajectory
from traceweir.scorers.metrics.trajectory import (
    TrajectoryAnyOrderMatch,
    TrajectoryExactMatch,
    TrajectoryInOrderMatch,
    TrajectoryPrecision,
    TrajectoryRecall,
    TrajectorySingleToolUse,
)
from traceweir.scorers.spelling import did_you_mean

GROUP = "traceweir.scorers"
"""The entry point group in which a package provides scorers, by the metric's name."""

BUILT_IN: dict[str, type[Scorer]] = {
    "tool_trajectory_avg_score": ToolTrajectory,
    "response_match_score": ResponseMatch,
    "final_response_match_v2": FinalResponseMatch,
    "rubric_based_final_response_quality_v1": RubricBasedFinalResponseQuality,
    "rubric_based_tool_use_quality_v1": RubricBasedToolUseQuality,
    "hallucinations_v1": Hallucinations,
    "safety_v1": Safety,
    "tool_call_count_v1": ToolCallCount,
    "inference_call_count_v1": InferenceCallCount,
    "token_usage_v1": TokenUsageTotal,
    "invocation_duration_v1": InvocationDuration,
    "trajectory_exact_match": TrajectoryExactMatch,
    "trajectory_in_order_match": TrajectoryInOrderMatch,
    "trajectory_any_order_match": TrajectoryAnyOrderMatch,
    "trajectory_precision": TrajectoryPrecision,
    "trajectory_recall": TrajectoryRecall,
    "trajectory_single_tool_use": TrajectorySingleToolUse,
    databricks_names.CORRECTNESS: Correctness,
    databricks_names.RELEVANCE: RelevanceToQuery,
    databricks_names.SAFETY: SafetyRating,
    databricks_names.GROUNDEDNESS: Groundedness,
    databricks_names.SUFFICIENCY: ContextSufficiency,
    databricks_names.CHUNK_PRECISION: ChunkRelevancePrecision,
    databricks_names.GUIDELINES: GuidelineAdherence,
    databricks_names.RECALL: DocumentRecall,
    databricks_names.TOTAL_TOKENS: TotalTokenCount,
    databricks_names.INPUT_TOKENS: InputTokenCount,
    databricks_names.OUTPUT_TOKENS: OutputTokenCount,
    databricks_names.LATENCY: Latency,
    "completeness": Completeness,
    "keyword_coverage": KeywordCoverage,
    "content_similarity": ContentSimilarity,
    "tool_call_accuracy": ToolCallAccuracy,
}

UNSUPPORTED: dict[str, tuple[float, float]] = {
    "response_evaluation_score": (1.0, 5.0),
    "multi_turn_task_success_v1": (0.0, 1.0),
    "multi_turn_trajectory_quality_v1": (0.0, 1.0),
    "multi_turn_tool_use_quality_v1": (0.0, 1.0),
    "per_turn_user_simulator_quality_v1": (0.0, 1.0),
    "rubric_based_multi_turn_trajectory_quality_v1": (0.0, 1.0),
}
"""Metrics of Google ADK that Traceweir does not compute, with the range of their thresholds."""


class UnusableMetric(LookupError):  # noqa: N818  # an outcome that the caller handles
    """Raised if no scorer is available for a metric; the message contains the reason and the way out."""


class UnknownMetric(UnusableMetric):
    """Raised if no scorer is registered under the name of a metric, its only argument."""

    def __str__(self) -> str:
        """Returns the message. It is built only if somebody reads it, because the search for a similar name takes time."""
        return f"{self.args[0]}: there is no such metric; {did_you_mean(self.args[0], known_metrics())}"


def scorer_class(metric: str) -> type[Scorer]:
    """Returns the scorer class that computes a metric, and imports a plugin only if the config names its metric.

    Raises:
        UnknownMetric: no scorer is registered under the name.
        UnusableMetric: several packages provide the metric, or the provided object is not a scorer.
    """
    metric, asked = full_name(metric), metric
    names = {metric, asked}
    offered = _offered(tuple(sys.path))
    offers = sorted((entry for name in names for entry in offered.get(name, ())), key=_package)
    owners = [_package(entry) for entry in offers]
    if metric in BUILT_IN:
        if owners:
            raise UnusableMetric(
                f"{metric}: a built-in metric cannot be replaced, but {_listed(owners)} provides one of that name; "
                "uninstall the package or rename its entry point"
            )
        return BUILT_IN[metric]
    if not offers:
        raise UnknownMetric(metric)
    if len(offers) > 1:
        raise UnusableMetric(f"{metric}: {_listed(owners)} both provide this metric; uninstall one of them")
    return _loaded(offers[0])


def known_metrics() -> set[str]:
    """Returns the names that a config can use: built-in metrics, aliases, plugins, and unsupported ADK metrics."""
    return {*BUILT_IN, *UNSUPPORTED, *ALIASES, *_offered(tuple(sys.path))}


@lru_cache(maxsize=8)
def _offered(_path: tuple[str, ...]) -> Mapping[str, Sequence[EntryPoint]]:
    """Returns the entry points of the installed packages by name; a search of a path takes milliseconds, and is made once."""
    found: dict[str, list[EntryPoint]] = defaultdict(list)
    for entry in entry_points(group=GROUP):
        found[entry.name].append(entry)
    return dict(found)


def _loaded(entry: EntryPoint) -> type[Scorer]:
    try:
        loaded = entry.load()
    except Exception as error:
        # A plugin's import can fail in any way; all other problems must still be reported.
        raise UnusableMetric(
            f"{entry.name}: {entry.value} of {_package(entry)} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Scorer)):
        raise UnusableMetric(f"{entry.name}: {entry.value} of {_package(entry)} is not a subclass of Scorer")
    return loaded


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def _listed(names: list[str]) -> str:
    return " and ".join(names)
