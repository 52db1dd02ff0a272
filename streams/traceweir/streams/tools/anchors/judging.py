"""Asks the judge about an anchor, as the scoring of sessions asks, whatever verdicts are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from traceweir.schemas.anchor import Anchor, AnchorVerdict
from traceweir.schemas.score import uuid5
from traceweir.schemas.turns import turns_of
from traceweir.scorers.base import Measurement
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.runner import measured
from traceweir.scorers.judge import Judge
from traceweir.scorers.judged.base import JudgedScorer, subject_at_end
from traceweir.streams.base.settings import Settings
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.judges.verdict_file import JudgeFile


@dataclass(frozen=True, slots=True)
class AnchorSet:
    """The anchors of one criterion that a config can judge."""

    metric: Metric
    anchors: Mapping[str, Anchor]
    """The anchors by id; at least one."""

    @property
    def set_id(self) -> str:
        """Id of the digest and threshold of the metric, and of all its anchors."""
        labels = [part for name in sorted(self.anchors) for part in (name, self.anchors[name].label)]
        return uuid5("anchors", self.metric.digest, str(self.metric.threshold), *labels)


def anchor_sets(plan: Plan, anchors: Sequence[Anchor]) -> tuple[dict[str, AnchorSet], dict[str, str]]:
    """Returns the sets of anchors by criterion, and why the anchors of other criteria are not judged.

    Args:
        plan: The config.
        anchors: All anchors.
    """
    metrics = {metric.name: metric for metric in plan.metrics}
    found: dict[str, AnchorSet] = {}
    unused: dict[str, str] = {}
    for name in sorted({each.criterion for each in anchors}):
        metric = metrics.get(name)
        if metric is None or not isinstance(metric.scorer, JudgedScorer):
            unused[name] = "the config has no such criterion that asks a judge"
        elif metric.threshold is None:
            unused[name] = "the criterion has no threshold, so nothing passes or fails"
        else:
            own = {each.anchor_id: each for each in anchors if each.criterion == name}
            right = {key: each for key, each in own.items() if each.subject.level == metric.scorer.level}
            if right:
                found[name] = AnchorSet(metric, right)
            else:
                unused[name] = f"its anchors are not about the level {metric.scorer.level}"
    return found, unused


@contextmanager
def anchor_judging(plan: Plan, settings: Settings, clock: Callable[[], datetime]) -> Iterator[Judging]:
    """Yields what asks the judges of a config: each question is sent, and no answer is stored.

    Budget, limits, retries and fallback are those of the config, and what is spent counts in the file of the commands that
    run without Kafka. Known cases are not asked.

    Raises:
        JudgeUnavailableError: the [judge] extra is not installed, or the file of the spending cannot be used.
    """
    cache = plan.judge.cache.model_copy(update={"max_verdicts": 0})
    asking = plan.judge.model_copy(update={"cache": cache, "check": "off"})
    with JudgeFile(settings.judge_cache, plan.judge.cache) as file:
        judging = Judging(asking, Access.of(settings), clock, note=file.pay)
        for paid in file.paid():
            judging.budget.record_spend(paid)
        yield judging


async def judged_anchor(
    anchors: AnchorSet,
    name: str,
    judge: Judge,
    due_at: datetime,
    clock: Callable[[], datetime],
    timeout_s: float,
) -> tuple[AnchorVerdict, str]:
    """Returns the verdict on an anchor, and why there is none; empty if there is one.

    Args:
        anchors: The anchors of the criterion.
        name: The id of the anchor.
        judge: The judge, which knows no verdicts.
        due_at: When it is the anchor's turn.
        clock: Returns the current time.
        timeout_s: Seconds that the judge can take.
    """
    anchor = anchors.anchors[name]
    metric = anchors.metric
    outcome = await _outcome(metric, anchor, judge, timeout_s)
    value = outcome.value if isinstance(outcome, Measurement) else None
    verdict = AnchorVerdict(
        anchor_id=name,
        criterion=metric.name,
        metric_digest=metric.digest,
        set_id=anchors.set_id,
        label=anchor.label,
        passed=None if value is None else metric.status_of(value) == "PASSED",
        value=value,
        not_evaluated_because=outcome.because if isinstance(outcome, Unmeasured) else None,
        cause=outcome.cause if isinstance(outcome, Unmeasured) else None,
        judge=outcome.judge,
        cost=outcome.cost,
        due_at=due_at,
        judged_at=clock(),
    )
    return verdict, outcome.rationale if isinstance(outcome, Unmeasured) else ""


async def _outcome(metric: Metric, anchor: Anchor, judge: Judge, timeout_s: float) -> Outcome:
    turns = turns_of(anchor.session)
    scorer = metric.scorer
    assert isinstance(scorer, JudgedScorer)  # noqa: S101  # `anchor_sets` has no others
    if anchor.subject.level == "invocation":
        wanted = anchor.subject.invocation_id
        places = [place for place, turn in enumerate(turns) if turn.invocation.invocation_id == wanted]
        turns = turns[: places[0] + 1] if places else []
    if not turns:
        return Unmeasured("missing_input", "the frozen session has no such invocation")
    subject = subject_at_end(scorer, turns, judge, anchor.session)
    return await measured(metric, replace(subject, dimensions=turns[-1].dimensions), timeout_s)
