"""Bugs of the gate's certificates of judges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.bugs.registry import bug_of, put
from tests.simulation.world import World

from traceweir.scorers.evaluation import decision
from traceweir.streams.pipeline.gate.stage import GateStage
from traceweir.streams.pipeline.score.stage import ScoreStage


@bug_of(lambda scenario: scenario.certified)
def certificate_of_another_judge_counts(world: World) -> None:
    """The gate compares the criterion, the prompt and the threshold, and not the model that has answered."""

    def lenient(gate: Any, metric: str, verdict: Any) -> bool:
        measured = verdict.measured
        if measured is None or measured.source in ("code", "human"):
            return measured is not None
        judge = metric, measured.metric_digest, measured.threshold
        return any((each.criterion, each.metric_digest, each.threshold) == judge for each in gate.certificates)

    put(decision, "is_certified", lenient)


@bug_of(lambda scenario: scenario.certified)
def certificate_that_has_ended_counts(world: World) -> None:
    """A certificate counts from its first candidate on, also after its withdrawal and in other configs."""
    plan_of = GateStage._plan_of
    seen: dict[Any, Any] = {}

    def remember(self: Any, candidate: Any) -> Any:
        plan = plan_of(self, candidate)
        seen.update({each.key: each for each in plan.gate.certificates})
        return replace(plan, gate=plan.gate.model_copy(update={"certificates": [*seen.values()]}))

    put(GateStage, "_plan_of", remember)


@bug_of(lambda scenario: scenario.certified)
def verdict_of_a_later_attempt_does_not_reach_the_gate(world: World) -> None:
    """A session that a judge has answered later keeps the decision that the gate made without the answer."""
    again = ScoreStage._take_up_again

    def ungated(self: Any, row_key: bytes, pending: Any, record: Any, result: Any, regates: bool) -> None:
        again(self, row_key, pending, record, result, False)

    put(ScoreStage, "_take_up_again", ungated)
