"""Reads from an address which sessions a list has, and in which order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

from traceweir.schemas.score import GATE, Cause, NotEvaluated, ReportedStatus
from traceweir.streams.board.dashboard.page.answers import one_of
from traceweir.streams.board.dashboard.page.filters import FilterError
from traceweir.streams.board.store.conditions import NO_CAUSE, TRACE_VALUE, Conditions
from traceweir.streams.board.store.paging import OF_METRIC, Order, Place, place_of

STATUSES = get_args(ReportedStatus)
REASONS = get_args(NotEvaluated)
CAUSES = (*get_args(Cause), NO_CAUSE)
ORDERS: tuple[Order, ...] = get_args(Order)
PAGE_LENGTHS = (50, 200, 500)
CONDITION_LABELS: Mapping[str, str] = {
    "user_id": "user",
    "config_digest": "config digest",
    "label": "label",
    "gate_reason": "gate reason",
    "tool": "tool",
    "tool_error": "tool error",
}
"""What the page calls the conditions that have no field in its form."""
FACET_LABELS: Mapping[str, str] = {
    "metric": "metric",
    "cause": "cause",
    "app_name": "app",
    "agent_version": "agent version",
    "judge": "judge",
    **CONDITION_LABELS,
}
"""What the page calls the facets."""
_CHOICES = {"status": STATUSES, "reason": REASONS, "cause": CAUSES}
_NAMES = tuple(field.name for field in fields(Conditions))


@dataclass(frozen=True)
class ListedBy:
    """What the address of a list says beside the time range and the dimensions."""

    conditions: Conditions
    order: Order
    limit: int
    parameters: Mapping[str, str]
    """The parameters that say so."""


def listed_by(given: Mapping[str, str]) -> ListedBy:
    """Returns what the parameters of an address select.

    Raises:
        FilterError: a parameter is out of its range.
    """
    found: dict[str, Any] = {name: given[name] for name in _NAMES if name in given}
    for name, choices in _CHOICES.items():
        if name in found:
            found[name] = one_of(given, name, choices)
    for name in ("least", "most"):
        if name in found:
            found[name] = _number(name, given[name])
    if "=" not in given.get("label", "="):
        raise FilterError("label is not of the form NAME=VALUE")
    order: Order = one_of(given, "order", ORDERS) or ORDERS[0]  # type: ignore[assignment]
    if order in OF_METRIC and "metric" not in given:
        raise FilterError(f"order {order} is that of the values of a metric: name a metric")
    limit = int(one_of(given, "limit", tuple(map(str, PAGE_LENGTHS))) or PAGE_LENGTHS[0])
    names = (*_NAMES, "order", "limit")
    return ListedBy(Conditions(**found), order, limit, {name: given[name] for name in names if name in given})


def position_of(text: str | None, order: Order) -> Place | None:
    """Returns the place in a list that an address contains; None if it contains none.

    Raises:
        FilterError: the text is no place of a list in this order.
    """
    try:
        return place_of(text, order) if text else None
    except ValueError as error:
        raise FilterError(f"older_than: {error}") from None


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FilterError(f"{name} is not a number")
    return value


def can_fail(parameters: Mapping[str, object]) -> bool:
    """Returns whether a failed result of a criterion can meet the parameters of a list.

    >>> can_fail({"user_id": "a", "status": None}), can_fail({"cause": "judge_unavailable"}), can_fail({"metric": "gate"})
    (True, False, False)
    """
    return (
        parameters.get("status") in (None, "FAILED")
        and parameters.get("reason") is None
        and parameters.get("cause") is None
        and parameters.get("metric") not in (GATE, TRACE_VALUE)
    )
