"""Says whether a rule can be watched: a rule names dimensions, which its schema does not know."""

from __future__ import annotations

from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.text import printable
from traceweir.streams.tools.results.selection import DIMENSIONS, LABEL, is_dimension


def rule_problem(rule: AlertRule) -> str | None:
    """Returns why a rule cannot be watched; None if it can."""
    if unknown := [name for name in rule.by if not is_dimension(name)]:
        names = ", ".join(printable(name, 100) for name in unknown)
        return f"by: {names}: no such dimension; there are {', '.join(DIMENSIONS)} and {LABEL}NAME"
    return None
