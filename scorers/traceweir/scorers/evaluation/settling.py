"""Reads how long a judged criterion waits for a later revision of a session, and names what the wait costs."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from traceweir.schemas.judge_config import VerdictCache
from traceweir.schemas.text import printable
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import short_name
from traceweir.scorers.evaluation.config_problems import shown
from traceweir.scorers.evaluation.metric import Metric

LONGEST_S = 7 * 86_400
"""Longest wait in seconds: the session must still be on its topic afterwards."""


def settle_s_of(name: str, value: JsonValue, problems: list[str]) -> float:
    """Returns the option `settle_s` of a criterion in seconds; if it is invalid, appends the reason to `problems`."""
    if isinstance(value, bool | str | dict | list) or value is None or not 0 <= value <= LONGEST_S:
        problems.append(f"{name}.settle_s: must be a number of seconds from 0 to {LONGEST_S}, not {shown(value)}")
        return 0.0
    return float(value)


def needless_wait(name: str, settle_s: float, scorer: Scorer | None) -> list[str]:
    """Returns the problem of a wait before a criterion that asks no judge; nothing if it is not known whether it asks."""
    if not settle_s or scorer is None or scorer.judged:
        return []
    return [f"{name}.settle_s: {name} asks no judge, so that a wait saves nothing; remove the option"]


def asked_twice(rounds: Sequence[Sequence[Metric]], cache: VerdictCache) -> list[str]:
    """Returns a sentence for each criterion whose judge is asked again after the wait of another one, with the way out.

    The attempt after a wait takes the verdicts of criteria that do not wait from the store, if they are still there.

    Args:
        rounds: The metrics of the plan, each after those that decide whether it is measured.
        cache: How long verdicts are stored, and how many.
    """
    longest = max((metric for metrics in rounds for metric in metrics), key=lambda each: each.settle_s, default=None)
    if longest is None or not longest.settle_s:
        return []
    if cache.max_verdicts == 0:
        cause = "judge.cache.max_verdicts is 0, so that no verdict is stored"
    elif cache.max_age_s < longest.settle_s:
        waits = f"{printable(short_name(longest.name))} waits {longest.settle_s:g} s"
        cause = f"judge.cache.max_age_s is {cache.max_age_s:g}, and {waits}"
    else:
        return []
    waiting: set[str] = set()
    found = []
    for metric in (metric for metrics in rounds for metric in metrics):
        when = metric.when
        if metric.settle_s or (
            when is not None and when.otherwise == 0 and all(each.metric in waiting for each in when.any)
        ):
            waiting.add(metric.name)
        elif metric.scorer is not None and metric.scorer.judged:
            name = printable(short_name(metric.name))
            found.append(
                f"{name} does not wait, and is asked and paid twice: {cause}; raise it, or give {name} a settle_s"
            )
    return found
