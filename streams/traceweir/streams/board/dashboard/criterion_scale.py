"""Finds the scale on which people answer a criterion: that of the config of its latest scores, as far as it is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Literal

from traceweir.scorers.databricks_names import full_name
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.judged.prompt_criterion import PromptCriterion
from traceweir.scorers.judged.scales import CategoryScale, NumberScale
from traceweir.scorers.judged.session_rating import SessionRating
from traceweir.streams.board.dashboard.pushed_configs import first_push
from traceweir.streams.board.store.selection import Readable, stored
from traceweir.streams.worker.config_topic import TopicState

MOST_DIGIT = 9
"""The greatest number that has a key."""


@dataclass(frozen=True, slots=True)
class AnswerButton:
    """An answer that a button gives."""

    field: Literal["verdict", "value", "category"]
    """The field of a label."""
    value: str
    text: str
    key: str | None
    """The key that presses it; None: it has none."""


@dataclass(frozen=True, slots=True)
class CriterionScale:
    """How people answer: with a verdict, if there are neither categories nor ends."""

    categories: Sequence[str] = ()
    """The categories, in the order of the config."""
    ends: tuple[float, float] | None = None
    """The lowest and the highest number."""
    ends_mean: tuple[str, str] = ("", "")
    """What these two numbers mean."""

    @property
    def has_field(self) -> bool:
        """Whether a number is written into a field, because it has no key of its own."""
        return self.ends is not None and not self._digits

    @property
    def buttons(self) -> list[AnswerButton]:
        """The answers that have a button; `unsure` is always the last."""
        if self.categories:
            found = [
                AnswerButton("category", name, name, str(at) if at <= MOST_DIGIT else None)
                for at, name in enumerate(self.categories, 1)
            ]
        elif self.ends is not None:
            found = [AnswerButton("value", str(each), str(each), str(each)) for each in self._digits]
        else:
            return [
                AnswerButton("verdict", "pass", "Pass", "1"),
                AnswerButton("verdict", "fail", "Fail", "2"),
                AnswerButton("verdict", "unsure", "Unsure", "3"),
            ]
        return [*found, AnswerButton("verdict", "unsure", "Unsure", "-")]

    @property
    def _digits(self) -> range:
        low, high = self.ends or (0.5, 0.5)
        is_small = low == int(low) and high == int(high) and 0 <= low < high <= MOST_DIGIT
        return range(int(low), int(high) + 1) if is_small else range(0)


VERDICTS = CriterionScale()
"""Pass, fail or unsure."""


def plan_of(store: Readable, configs: TopicState, criterion: str, since: datetime) -> Plan | None:
    """Returns the plan that measured the latest scores of a criterion; None if no config of the topic is known to have.

    Args:
        store: Has the scores.
        configs: What the topic `configs` says.
        criterion: The criterion.
        since: Earlier scores do not count.

    Raises:
        StoreError: the store cannot answer.
    """
    if not configs.by_digest and not configs.versions:
        return None
    rows = store.query(
        "SELECT config_digest FROM results WHERE metric = $metric AND occurred_at >= $since "
        "ORDER BY occurred_at DESC, result_id LIMIT 1",
        {"metric": criterion, "since": stored(since)},
    )
    digest = rows[0]["config_digest"] if rows else ""
    pushed = configs.by_digest.get(digest) or first_push(configs, digest)
    return None if pushed is None or pushed.config is None else _plan(json.dumps(pushed.config))


def scale_of(plan: Plan | None, criterion: str) -> CriterionScale:
    """Returns the scale of a criterion; verdicts if the plan is not known, or the criterion has no scale of its own."""
    name = full_name(criterion)
    metric = None if plan is None else next((each for each in plan.metrics if each.name == name), None)
    return VERDICTS if metric is None else _scale(metric)


def _scale(metric: Metric) -> CriterionScale:
    scorer = metric.scorer
    if isinstance(scorer, SessionRating):
        return CriterionScale(categories=tuple(scorer.categories))
    if not isinstance(scorer, PromptCriterion):
        return VERDICTS
    if isinstance(scorer.scale, CategoryScale):
        return CriterionScale(categories=tuple(scorer.scale.categories))
    if isinstance(scorer.scale, NumberScale):
        return CriterionScale(ends=scorer.scale.ends, ends_mean=(scorer.scale.lowest_means, scorer.scale.highest_means))
    return VERDICTS


@lru_cache(maxsize=16)
def _plan(document: str) -> Plan | None:
    try:
        return read_plan(document)
    except ConfigError:
        # Of another version of Traceweir, or with scorers that are not installed beside the dashboard.
        return None
