"""Computes the trace value: how valuable a reasoning trace is, from four dimensions and three overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator
from pydantic.alias_generators import to_camel

from traceweir.schemas.base import ConfigModel, JsonObject
from traceweir.schemas.invocation import Level
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.embedding import Embedder, embedded_text
from traceweir.scorers.metrics.novelty_value import UNKNOWN_NOVELTY

# Which needs numpy.
if TYPE_CHECKING:
    from traceweir.scorers.metrics.novelty import NoveltyCache

NonNegative = Annotated[float, Field(ge=0)]


class Weights(ConfigModel):
    """Holds the weight of each dimension; the four weights sum to 1."""

    complexity: NonNegative
    novelty: NonNegative
    tool_diversity: NonNegative
    outcome_confidence: NonNegative

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = self.complexity + self.novelty + self.tool_diversity + self.outcome_confidence
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the four weights must sum to 1, not {total:.12g}")
        return self


def _weights(complexity: float, novelty: float, tool_diversity: float, outcome_confidence: float) -> Weights:
    return Weights(
        complexity=complexity,
        novelty=novelty,
        tool_diversity=tool_diversity,
        outcome_confidence=outcome_confidence,
    )


DEFAULT_WEIGHTS = _weights(0.25, 0.35, 0.15, 0.25)

KNOWLEDGEPULSE: JsonObject = {
    "recovery_bonus_min": 3,
    "clamp": False,
    "weights_by_domain": {
        "finance": _weights(0.20, 0.25, 0.10, 0.45).model_dump(),
        "code": _weights(0.20, 0.30, 0.30, 0.20).model_dump(),
        "medical": _weights(0.15, 0.20, 0.10, 0.55).model_dump(),
        "customer_service": _weights(0.20, 0.30, 0.20, 0.30).model_dump(),
    },
}
"""Options that follow the code of the KnowledgePulse SDK where it differs from its document.

The default preset follows the document.
"""


class TraceValue(Scorer):
    """Returns the value of a trace, from 0 to 1: the weighted sum of four dimensions.

    The dimensions are complexity, novelty, tool diversity and confidence in the outcome. With the preset
    `knowledgepulse` the values equal those of KnowledgePulse's SDK (`evaluateValue`): a bonus for three or more
    recoveries, weights by task domain, a single novelty scope for all domains, and no clamp. Without the clamp a value
    can leave the range 0..1, because the novelty of a vector that points away from all others exceeds 1. An option in
    the config overrides the preset.

    >>> TraceValue(preset="knowledgepulse", clamp=True).recovery_bonus_min
    3
    """

    level: ClassVar[Level] = "trace"

    preset: Literal["default", "knowledgepulse"] = "default"
    weights: Weights = DEFAULT_WEIGHTS
    weights_by_domain: dict[str, Weights] = {}
    """Weights by `task_domain`, which must match exactly; `weights` applies to all other traces."""
    recovery_bonus_min: Annotated[int, Field(ge=1)] = 2
    """Number of error recoveries from which a trace receives the bonus of 0.1."""
    clamp: bool = True
    """Whether a value below 0 becomes 0 and a value above 1 becomes 1."""

    @model_validator(mode="before")
    @classmethod
    def _apply_preset(cls, data: object) -> object:
        if not isinstance(data, Mapping) or data.get("preset") != "knowledgepulse":
            return data
        unset = {key: value for key, value in KNOWLEDGEPULSE.items() if key not in data and to_camel(key) not in data}
        return {**data, **unset}

    @property
    def preferred_scope(self) -> Literal["task_domain", "global"]:
        """The novelty scope that applies if the config does not set `gate.scope`."""
        return "global" if self.preset == "knowledgepulse" else "task_domain"

    def score(self, subject: Subject) -> Measurement:
        """Returns the value of the subject's trace with an unknown novelty of 0.5."""
        if subject.trace is None:
            raise MissingInput("there is no trace")
        return self.measure(subject.trace)

    def measure(
        self,
        trace: ReasoningTrace,
        novelty: float | None = None,
        *,
        nearest: tuple[str, float] | None = None,
        novelty_missing: str = "no_embedder",
    ) -> Measurement:
        """Returns the value of a trace; `details` contains the dimensions and the applied overrides.

        Args:
            trace: The trace.
            novelty: 1 minus the largest cosine with a remembered trace, from 0 to 2; None counts as 0.5.
            nearest: The id of the most similar trace, and the cosine.
            novelty_missing: The reason why `novelty` is None, such as `embedder_error` or `first_of_scope`; added to
                `details` in this case.
        """
        weights = self.weights_by_domain.get(trace.metadata.task_domain, self.weights)
        breakdown = value_of(
            [step.type for step in trace.steps],
            [step.tool.name for step in trace.steps if step.tool is not None],
            success=trace.metadata.success,
            confidence=trace.outcome.confidence,
            novelty=UNKNOWN_NOVELTY if novelty is None else novelty,
            weights=weights,
            recovery_bonus_min=self.recovery_bonus_min,
        )
        overrides: list[JsonValue] = list(breakdown.overrides)
        details: JsonObject = {
            "complexity": breakdown.complexity,
            "novelty": breakdown.novelty,
            "tool_diversity": breakdown.tool_diversity,
            "outcome_confidence": breakdown.outcome_confidence,
            "overrides": overrides,
            "weights": {
                "complexity": weights.complexity,
                "novelty": weights.novelty,
                "tool_diversity": weights.tool_diversity,
                "outcome_confidence": weights.outcome_confidence,
            },
        }
        if novelty is None:
            details["novelty_missing"] = novelty_missing
        if nearest is not None:
            details["nearest"] = {"trace_id": nearest[0], "similarity": nearest[1]}
        return Measurement(
            value=min(1.0, max(0.0, breakdown.value)) if self.clamp else breakdown.value,
            rationale=f"complexity {breakdown.complexity:.2f}, novelty {breakdown.novelty:.2f}, "
            f"tool diversity {breakdown.tool_diversity:.2f}, outcome confidence {breakdown.outcome_confidence:.2f}",
            details=details,
        )


@dataclass(frozen=True, slots=True)
class ValueBreakdown:
    """Holds a trace value, its four dimensions, and the overrides that changed the value, in the order applied."""

    value: float
    complexity: float
    novelty: float
    tool_diversity: float
    outcome_confidence: float
    overrides: list[str]


def value_of(
    types: Sequence[str],
    tools: Sequence[str],
    *,
    success: bool,
    confidence: float,
    novelty: float,
    weights: Weights = DEFAULT_WEIGHTS,
    recovery_bonus_min: int = 2,
) -> ValueBreakdown:
    """Computes the trace value from plain values, without validating them.

    The order of operations equals that of KnowledgePulse's `evaluateValue`, so that results agree to the last bit.

    Args:
        types: The type of each step.
        tools: The name of the tool of each step that has a tool.
        success: Whether the trace reports success.
        confidence: The outcome's confidence, from 0 to 1.
        novelty: The novelty, from 0 to 2; 0.5 if unknown.
        weights: The weight of each dimension.
        recovery_bonus_min: Number of error recoveries from which the bonus applies.

    >>> value_of(["thought"], [], success=True, confidence=0.9, novelty=0.5).overrides
    ['single_thought']
    """
    steps = len(types)
    recoveries = sum(kind == "error_recovery" for kind in types)
    distinct_tools = len(set(tools))

    complexity = min(1.0, len(set(types)) / 4 * 0.5 + (0.3 if recoveries else 0.0) + steps / 20 * 0.2)
    tool_diversity = min(1.0, distinct_tools / max(1, steps) * 3)
    outcome_confidence = confidence * (1.0 if success else 0.3)
    value = (
        complexity * weights.complexity
        + novelty * weights.novelty
        + tool_diversity * weights.tool_diversity
        + outcome_confidence * weights.outcome_confidence
    )

    overrides = []
    if steps == 1 and types[0] == "thought":
        value = 0.1
        overrides.append("single_thought")
    if recoveries >= recovery_bonus_min and success:
        value = min(1.0, value + 0.1)
        overrides.append("recovery_bonus")
    if tools and distinct_tools <= 1:
        value = max(0.0, value - 0.1)
        overrides.append("single_tool_penalty")
    return ValueBreakdown(value, complexity, novelty, tool_diversity, outcome_confidence, overrides)


def evaluate_value(
    trace: ReasoningTrace | Mapping[str, JsonValue],
    *,
    options: TraceValue | Mapping[str, JsonValue] | None = None,
    embedder: Embedder | None = None,
    cache: NoveltyCache | None = None,
) -> Measurement:
    """Returns the value of one trace.

    Novelty needs both an embedder and a cache of earlier traces, and adds the trace to the cache; without them novelty
    counts as 0.5. For a new trace the value equals the gate's. A trace that arrives twice is compared with its first
    occurrence here and added a second time; the gate treats the second occurrence as a revision, which replaces the
    first and is not compared with it.

    Args:
        trace: A trace, or its JSON document.
        options: Options of `TraceValue`.
        embedder: Computes the vector of the trace's text.
        cache: The traces to compare with, whose vectors must come from the same embedder.

    Raises:
        pydantic.ValidationError: the document is not a valid ReasoningTrace, or an option does not exist.

    >>> evaluate_value({
    ...     "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": "kp:trace:1",
    ...     "metadata": {"created_at": "2026-01-31T12:00:00Z", "task_domain": "code", "success": True,
    ...                  "quality_score": 0, "visibility": "network", "privacy_level": "aggregated"},
    ...     "task": {"objective": "Find the bug"}, "steps": [{"step_id": 0, "type": "thought", "content": "Hm."}],
    ...     "outcome": {"result_summary": "none", "confidence": 0.9},
    ... }).value
    0.1
    """
    document = trace if isinstance(trace, ReasoningTrace) else ReasoningTrace.model_validate(trace)
    scorer = options if isinstance(options, TraceValue) else TraceValue.model_validate(options or {})
    if embedder is None or cache is None:
        return scorer.measure(document, novelty_missing="no_embedder" if embedder is None else "no_cache")
    text = embedded_text(document.task.objective, [step.content for step in document.steps])
    found = cache.measure_and_add(embedder.embed([text]), [document.id])[0]
    if found.nearest is None or found.similarity is None:
        return scorer.measure(document, novelty_missing="first_of_scope")
    return scorer.measure(document, found.value, nearest=(found.nearest, found.similarity))
