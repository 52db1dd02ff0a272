"""Trace value: how much a reasoning trace is worth keeping, from four dimensions and three overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator
from pydantic.alias_generators import to_camel

from traceweir.schemas.base import ConfigModel, JsonObject
from traceweir.schemas.invocation import Level
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.embedding import Embedder, embedded_text
from traceweir.scorers.metrics.novelty import UNKNOWN_NOVELTY, NoveltyCache

NonNegative = Annotated[float, Field(ge=0)]


class Weights(ConfigModel):
    """What each dimension counts; together 1."""

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
"""Where the KnowledgePulse SDK's own code departs from its document, which is what the default preset follows."""


class TraceValue(Scorer):
    """A trace's worth, from 0 to 1: complexity, novelty, tool diversity and confidence in the outcome, weighted.

    With the preset `knowledgepulse` the numbers are those of KnowledgePulse's SDK (`evaluateValue`): a bonus from three recoveries on,
    weights by task domain, one novelty scope for all domains, and no clamp, so that a value may leave 0..1 by the novelty of a vector
    that points away from all others. An option given beside the preset wins over it.

    >>> TraceValue(preset="knowledgepulse", clamp=True).recovery_bonus_min
    3
    """

    level: ClassVar[Level] = "trace"

    preset: Literal["default", "knowledgepulse"] = "default"
    weights: Weights = DEFAULT_WEIGHTS
    weights_by_domain: dict[str, Weights] = {}
    """Weights for the traces whose `task_domain` is exactly this; `weights` for all others."""
    recovery_bonus_min: Annotated[int, Field(ge=1)] = 2
    """The bonus of 0.1 is given from this number of error recoveries on."""
    clamp: bool = True
    """Whether a value outside 0..1 becomes the nearer end."""

    @model_validator(mode="before")
    @classmethod
    def _preset_fills_in(cls, data: object) -> object:
        if not isinstance(data, Mapping) or data.get("preset") != "knowledgepulse":
            return data
        unsaid = {key: value for key, value in KNOWLEDGEPULSE.items() if key not in data and to_camel(key) not in data}
        return {**data, **unsaid}

    @property
    def preferred_scope(self) -> Literal["task_domain", "global"]:
        """The novelty scope where the gate's own option names none."""
        return "global" if self.preset == "knowledgepulse" else "task_domain"

    def score(self, subject: Subject) -> Measurement:
        """The value of the subject's trace, compared with no other."""
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
        """The value of a trace of known novelty, its dimensions and the overrides applied in `details`.

        Args:
            trace: The trace.
            novelty: 1 minus the greatest cosine to a remembered trace, so 0 to 2; None counts as 0.5.
            nearest: The id of that trace and the cosine.
            novelty_missing: Why `novelty` is None, such as `embedder_error` or `first_of_scope`; it then stands in `details`.
        """
        weights = self.weights_by_domain.get(trace.metadata.task_domain, self.weights)
        worth = value_of(
            [step.type for step in trace.steps],
            [step.tool.name for step in trace.steps if step.tool is not None],
            success=trace.metadata.success,
            confidence=trace.outcome.confidence,
            novelty=UNKNOWN_NOVELTY if novelty is None else novelty,
            weights=weights,
            recovery_bonus_min=self.recovery_bonus_min,
        )
        overrides: list[JsonValue] = list(worth.overrides)
        details: JsonObject = {
            "complexity": worth.complexity,
            "novelty": worth.novelty,
            "tool_diversity": worth.tool_diversity,
            "outcome_confidence": worth.outcome_confidence,
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
            value=min(1.0, max(0.0, worth.value)) if self.clamp else worth.value,
            rationale=f"complexity {worth.complexity:.2f}, novelty {worth.novelty:.2f}, "
            f"tool diversity {worth.tool_diversity:.2f}, outcome confidence {worth.outcome_confidence:.2f}",
            details=details,
        )


@dataclass(frozen=True, slots=True)
class Worth:
    """A value, what it is made of, and the overrides that changed it, in the order applied."""

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
) -> Worth:
    """The arithmetic alone, on values that nothing has validated.

    The order of operations is that of KnowledgePulse's `evaluateValue`, so that results agree to the last bit.

    Args:
        types: The type of each step.
        tools: The tool's name of each step that has a tool.
        success: Whether the trace says that it succeeded.
        confidence: The outcome's confidence.
        novelty: The novelty, 0.5 if unknown.
        weights: What each dimension counts.
        recovery_bonus_min: Error recoveries from which on the bonus is given.

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
    return Worth(value, complexity, novelty, tool_diversity, outcome_confidence, overrides)


def evaluate_value(
    trace: ReasoningTrace | Mapping[str, JsonValue],
    *,
    options: TraceValue | Mapping[str, JsonValue] | None = None,
    embedder: Embedder | None = None,
    cache: NoveltyCache | None = None,
) -> Measurement:
    """The value of one trace in one call.

    Novelty needs both an embedder and a cache of what came before; the trace is then added to the cache. Otherwise it counts as 0.5.
    The value is the gate's for a trace that is new. One that comes again is compared with itself here and added once more; the gate
    takes it for a revision, which replaces the former one and is not compared with it.

    Args:
        trace: A trace, or its JSON document.
        options: Options of `TraceValue`.
        embedder: What turns the trace's text into a vector.
        cache: The traces to compare with, of the same embedder.

    Raises:
        pydantic.ValidationError: the document is no ReasoningTrace, or an option does not exist.

    >>> evaluate_value({
    ...     "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": "kp:trace:1",
    ...     "metadata": {"created_at": "2026-01-31T12:00:00Z", "task_domain": "code", "success": True, "quality_score": 0,
    ...                  "visibility": "network", "privacy_level": "aggregated"},
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
