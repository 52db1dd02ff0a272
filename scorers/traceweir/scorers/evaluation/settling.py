"""Reads how long a judged criterion waits for a later revision of a session."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.scorers.base import Scorer
from traceweir.scorers.evaluation.config_problems import shown

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
