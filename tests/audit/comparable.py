"""Leaves out what can differ between two scores of the same session, so that they can be compared."""

from __future__ import annotations

import re

from tests.audit.committed import Document

LATER = {"evaluated_at", "cost", "revision", "segment_opened_at"}
"""Fields that can differ: the lateness and the order of records decide them, but not the content of the last revision."""
BY_ORDER = {"novelty", "nearest", "novelty_missing"}
"""The parts of a trace's value that depend on the order of the candidates of several sessions."""

_PREFIX = re.compile(r"(?<=the dead letter of )\S+\.(?=\w)")
"""The prefix of the topic in the place of a refused record."""


def comparable(score: Document, *, has_time: bool) -> Document:
    """Returns a score without the fields that depend on the order of the records.

    Args:
        score: The score.
        has_time: Whether `occurred_at` is the same in every order.
    """
    kept = {name: content for name, content in score.items() if name not in LATER}
    # The time of a trace's value is the time of the revision that changed the trace last.
    if not has_time or score["metric"] == "trace_value":
        del kept["occurred_at"]
    # The topics of two runs have different prefixes.
    kept["rationale"] = _PREFIX.sub("", score["rationale"])
    if score["metric"] == "trace_value":
        kept["details"] = {name: content for name, content in score["details"].items() if name not in BY_ORDER}
        for name in ("value", "status", "rationale"):
            del kept[name]
    return kept
