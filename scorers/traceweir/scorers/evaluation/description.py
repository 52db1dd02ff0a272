"""Says what the values of a metric are: which are better, and their unit."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from traceweir.scorers.base import Direction
from traceweir.scorers.evaluation.registry import UnusableMetric, scorer_class

_KEPT = 1_000


class Description(NamedTuple):
    """What the values of a metric are."""

    direction: Direction
    """Which values are better; `neutral`: none is better than another."""
    unit: str | None
    """The unit, such as `s` or `tokens`; None: the values have none, such as a share."""


_OF_TRACES = {"trace_value": Description("higher", None), "gate": Description("higher", None)}
"""The values that the gate compares and writes; they are no criteria, so the registry does not have them."""


@lru_cache(maxsize=_KEPT)
def description_of(metric: str) -> Description | None:
    """Returns the description of a metric by its scorer; None if no scorer of this name is installed here.

    A criterion of one's own is in no registry, and a plugin can be installed on other machines only.

    >>> description_of("max_duration"), description_of("tool_call_count_v1")
    (Description(direction='lower', unit='s'), Description(direction='neutral', unit='calls'))
    >>> description_of("our_tone") is None
    True
    """
    if metric in _OF_TRACES:
        return _OF_TRACES[metric]
    try:
        scorer = scorer_class(metric)
    except UnusableMetric:
        return None
    return Description(scorer.direction, scorer.unit)
