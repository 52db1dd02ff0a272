"""Defines what a session of a list must have, beside its time and its dimensions, and turns it into a condition of SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from traceweir.schemas.score import GATE
from traceweir.streams.board.store.selection import Selection

TRACE_VALUE = "trace_value"
"""The metric that the gate compares with its threshold; it is no criterion."""
IS_CRITERION = f"metric NOT IN ('{GATE}', '{TRACE_VALUE}')"
NO_CAUSE = "none"
"""Selects results without a value and without a cause."""
_EQUAL = {
    "status": "status",
    "reason": "not_evaluated_because",
    "user_id": "user_id",
    "config_digest": "config_digest",
}
"""The column that is equal to a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a session must have; None: anything.

    One result must meet all conditions about results, except `gate_reason`, which another result can meet.
    """

    status: str | None = None
    """A result of this status, of the selected metric if there is one."""
    reason: str | None = None
    """A result without a value for this reason."""
    cause: str | None = None
    """A result without a value for this cause, or `NO_CAUSE` for one without a cause."""
    least: float | None = None
    """A result of at least this value, of the selected metric if there is one."""
    most: float | None = None
    """A result of at most this value, of the selected metric if there is one."""
    user_id: str | None = None
    """A result of this user, as results name users."""
    config_digest: str | None = None
    """A result by this config."""
    label: str | None = None
    """A result with this label, as `NAME=VALUE`."""
    rationale: str | None = None
    """A result whose rationale contains this text, in any case."""
    gate_reason: str | None = None
    """A trace that the gate rejected for this reason."""
    text: str | None = None
    """An id or a record that contains this text, in any case."""
    tool: str | None = None
    """A call of the tool with this name."""
    tool_error: str | None = None
    """A call of the tool with this name that failed."""

    @property
    def are_of_results(self) -> bool:
        """Whether a condition is about results."""
        names = (*_EQUAL, "cause", "least", "most", "label", "rationale", "gate_reason")
        return any(getattr(self, name) is not None for name in names)

    @property
    def are_of_records(self) -> bool:
        """Whether a condition is about the record of a session, which has to be read for it."""
        return any(each is not None for each in (self.text, self.tool, self.tool_error))

    def where(self, selection: Selection) -> tuple[str, dict[str, Any]]:
        """Returns the condition of SQL for results of a selection that meet the conditions about results."""
        where, parameters = selection.where("occurred_at")
        conditions = [where]
        for name, column in _EQUAL.items():
            if (value := getattr(self, name)) is not None:
                conditions.append(f"{column} = ${name}")
                parameters[name] = value
        for name, operator in (("least", ">="), ("most", "<=")):
            if (bound := getattr(self, name)) is not None:
                conditions.append(f"value {operator} ${name}")
                parameters[name] = bound
        if self.status is not None and selection.metric is None:
            # A trace that is not worth sharing has not failed a criterion.
            conditions.append(IS_CRITERION)
        if self.cause == NO_CAUSE:
            conditions.append("status = 'NOT_EVALUATED' AND cause IS NULL")
        elif self.cause is not None:
            conditions.append("cause = $cause")
            parameters["cause"] = self.cause
        if self.label is not None:
            conditions.append("contains(labels, $label)")
            parameters["label"] = _member(self.label)
        if self.rationale is not None:
            conditions.append("contains(lower(rationale), $rationale)")
            parameters["rationale"] = self.rationale.lower()
        if self.gate_reason is not None:
            conditions.append(
                f"(key, segment) IN (SELECT key, segment FROM results WHERE metric = '{GATE}' AND status = 'FAILED' "
                "AND regexp_matches(details, $gate_reason) AND occurred_at >= $range_since AND occurred_at < $until)"
            )
            parameters |= {"gate_reason": _among_reasons(self.gate_reason), "range_since": selection.span["since"]}
        return " AND ".join(conditions), parameters


def labels_of(text: str | None) -> list[str]:
    """Returns the labels of a result, each as a condition names it.

    >>> labels_of('{"tier": "gold"}'), labels_of(None), labels_of("no JSON")
    (['tier=gold'], [], [])
    """
    try:
        found = orjson.loads(text) if text else None
    except ValueError:
        return []
    return [f"{name}={value}" for name, value in found.items()] if isinstance(found, Mapping) else []


def as_json(text: str) -> str:
    """Returns a text as it is in a document of JSON."""
    return orjson.dumps(text).decode()


def _member(label: str) -> str:
    """Returns a label as the columns of results have it, which are JSON without spaces."""
    name, _, value = label.partition("=")
    return f"{as_json(name)}:{as_json(value)}"


def _among_reasons(reason: str) -> str:
    """Returns the regular expression of the details of a decision with this reason."""
    return r'"reasons":\[[^\]]*' + re.escape(as_json(reason))
