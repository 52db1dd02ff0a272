"""Finds the scorer that computes a metric, among the built-in scorers and those of plugins."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from traceweir.scorers import databricks_names
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import ALIASES, full_name
from traceweir.scorers.evaluation.other_names import nearest_here
from traceweir.scorers.spelling import did_you_mean

GROUP = "traceweir.scorers"
"""The entry point group in which a package provides scorers, by the metric's name."""

PLACES: dict[str, str] = {
    "tool_trajectory_avg_score": "metrics.tool_trajectory:ToolTrajectory",
    "response_match_score": "metrics.response_match:ResponseMatch",
    "final_response_match_v2": "judged.final_response_match_v2:FinalResponseMatch",
    "rubric_based_final_response_quality_v1": "judged.rubric_based_final_response_quality_v1:RubricBasedFinalResponseQuality",
    "rubric_based_tool_use_quality_v1": "judged.rubric_based_tool_use_quality_v1:RubricBasedToolUseQuality",
    "rubric_based_multi_turn_trajectory_quality_v1": "judged.rubric_based_multi_turn_trajectory_quality_v1:RubricBasedTrajectoryQuality",
    "multi_turn_task_success_v1": "judged.adk_session_ratings:MultiTurnTaskSuccess",
    "multi_turn_trajectory_quality_v1": "judged.adk_session_ratings:MultiTurnTrajectoryQuality",
    "multi_turn_tool_use_quality_v1": "judged.adk_session_ratings:MultiTurnToolUseQuality",
    "conversation_completeness": "judged.conversation_ratings:ConversationCompleteness",
    "user_frustration": "judged.conversation_ratings:UserFrustration",
    "knowledge_retention": "judged.conversation_ratings:KnowledgeRetention",
    "conversational_safety": "judged.conversation_ratings:ConversationalSafety",
    "conversational_guidelines": "judged.conversation_ratings:ConversationalGuidelines",
    "conversational_role_adherence": "judged.conversation_ratings:ConversationalRoleAdherence",
    "conversational_tool_call_efficiency": "judged.conversation_ratings:ConversationalToolCallEfficiency",
    "tool_call_correctness": "judged.tool_call_ratings:ToolCallCorrectness",
    "tool_call_efficiency": "judged.tool_call_ratings:ToolCallEfficiency",
    "hallucinations_v1": "judged.hallucinations_v1:Hallucinations",
    "safety_v1": "judged.safety_v1:Safety",
    "tool_call_count_v1": "metrics.efficiency:ToolCallCount",
    "inference_call_count_v1": "metrics.efficiency:InferenceCallCount",
    "token_usage_v1": "metrics.efficiency:TokenUsageTotal",
    "invocation_duration_v1": "metrics.efficiency:InvocationDuration",
    "trajectory_exact_match": "metrics.trajectory:TrajectoryExactMatch",
    "trajectory_in_order_match": "metrics.trajectory:TrajectoryInOrderMatch",
    "trajectory_any_order_match": "metrics.trajectory:TrajectoryAnyOrderMatch",
    "trajectory_precision": "metrics.trajectory:TrajectoryPrecision",
    "trajectory_recall": "metrics.trajectory:TrajectoryRecall",
    "trajectory_single_tool_use": "metrics.trajectory:TrajectorySingleToolUse",
    databricks_names.CORRECTNESS: "judged.databricks_ratings:Correctness",
    databricks_names.RELEVANCE: "judged.databricks_ratings:RelevanceToQuery",
    databricks_names.SAFETY: "judged.databricks_ratings:SafetyRating",
    databricks_names.GROUNDEDNESS: "judged.databricks_ratings:Groundedness",
    databricks_names.SUFFICIENCY: "judged.databricks_ratings:ContextSufficiency",
    databricks_names.CHUNK_PRECISION: "judged.chunk_relevance:ChunkRelevancePrecision",
    databricks_names.GUIDELINES: "judged.databricks_ratings:GuidelineAdherence",
    databricks_names.RECALL: "metrics.document_recall:DocumentRecall",
    databricks_names.TOTAL_TOKENS: "metrics.token_counts:TotalTokenCount",
    databricks_names.INPUT_TOKENS: "metrics.token_counts:InputTokenCount",
    databricks_names.OUTPUT_TOKENS: "metrics.token_counts:OutputTokenCount",
    databricks_names.LATENCY: "metrics.latency:Latency",
    "completeness": "metrics.completeness:Completeness",
    "keyword_coverage": "metrics.keyword_coverage:KeywordCoverage",
    "content_similarity": "metrics.content_similarity:ContentSimilarity",
    "tool_call_accuracy": "metrics.tool_call_accuracy:ToolCallAccuracy",
    "no_tool_errors": "metrics.checks.tool_errors:NoToolErrors",
    "tool_error_rate": "metrics.checks.tool_errors:ToolErrorRate",
    "retries_after_error": "metrics.checks.tool_errors:RetriesAfterError",
    "forbidden_tools": "metrics.checks.tool_limits:ForbiddenTools",
    "repeated_calls": "metrics.checks.tool_limits:RepeatedCalls",
    "max_tool_calls": "metrics.checks.limits:MaxToolCalls",
    "max_model_calls": "metrics.checks.limits:MaxModelCalls",
    "max_tokens": "metrics.checks.limits:MaxTokens",
    "max_duration": "metrics.checks.limits:MaxDuration",
    "handoffs": "metrics.checks.limits:Handoffs",
    "response_contains": "metrics.checks.response_text:ResponseContains",
    "response_excludes": "metrics.checks.response_text:ResponseExcludes",
    "response_matches": "metrics.checks.response_text:ResponseMatches",
    "response_length": "metrics.checks.response_text:ResponseLength",
    "response_is_json": "metrics.checks.response_json:ResponseIsJson",
    "answered": "metrics.checks.response_text:QuestionAnswered",
}
"""The module and the class of each built-in metric."""


class _BuiltIn(Mapping[str, type[Scorer]]):
    """The scorers of the built-in metrics; the module of a scorer is imported when somebody asks for the scorer."""

    def __getitem__(self, metric: str) -> type[Scorer]:
        module, _, name = PLACES[metric].partition(":")
        found: type[Scorer] = getattr(import_module(f"traceweir.scorers.{module}"), name)
        return found

    def __contains__(self, metric: object) -> bool:
        return metric in PLACES

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)


BUILT_IN: Mapping[str, type[Scorer]] = _BuiltIn()
"""The scorers of the built-in metrics. A judged scorer takes longer to import than a small file to score."""

UNSUPPORTED: dict[str, tuple[float, float]] = {
    "response_evaluation_score": (1.0, 5.0),
    "per_turn_user_simulator_quality_v1": (0.0, 1.0),
}
"""Metrics of Google ADK that Traceweir does not compute, with the range of their thresholds."""


class UnusableMetric(LookupError):  # noqa: N818  # an outcome that the caller handles
    """Raised if no scorer is available for a metric; the message contains the reason and the way out."""


class UnknownMetric(UnusableMetric):
    """Raised if no scorer is registered under the name of a metric, its only argument."""

    def __str__(self) -> str:
        """Returns the message. It is built only if somebody reads it, because the search for a similar name takes time."""
        name = self.args[0]
        return f"{name}: there is no such metric; {nearest_here(name) or did_you_mean(name, known_metrics())}"


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
