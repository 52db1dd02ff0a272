"""Counts what the worker must make of the records that were sent, without a worker, a stage or a scorer.

A session is made so that every score and decision is known: see `sessions`. Tests compare the counts with a `Flow`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from traceweir.schemas.base import JsonObject
from traceweir.streams.cli.demo.sessions import DUPLICATE, JOINED, Emission, Expected, Sketch

CONFIG: JsonObject = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"},
        "response_match_score": 0.8,
    },
    "gate": {"required": ["tool_trajectory_avg_score"]},
}
"""The evaluation config of the demo. The mean of a session meets these thresholds only if all of its turns do."""
_MISSES: Mapping[str, Expected] = {
    "response_match_score": "other_words",
    "tool_trajectory_avg_score": "tool_missing",
}
"""Which reference makes a turn miss a criterion. The last criterion is the one that the gate requires."""
_UNKNOWN = "NOT_EVALUATED missing_input"

Counts = Mapping[str, int]
"""Counts by name; the name states what is counted."""

_MEANINGS = {
    "records": "traces and events that the agents sent",
    "duplicates": "records that were sent twice, on purpose; each counts once",
    "forwarded": "records on a wrong partition, on purpose; the worker forwards them to the home of their session",
    "sessions": "sessions that were joined and closed",
    "closed: session.ended": "sessions whose agent said that they ended",
    "closed: idle": "sessions that just stopped, and closed after a pause",
    "candidates": "traces of sessions, for the gate",
    "decisions: accepted": "traces that are worth sharing",
    "decisions: rejected": "traces that are not shared, for the reasons below",
    "network": "traces that were published, without secrets",
    "rejected: below_threshold": "their trace value is below 0.75: short, failed, or near an earlier trace",
    "rejected: visibility": "their agent does not want them shared",
    "rejected: privacy": "they are private",
    "dead letters: empty": "records without a value, on purpose",
    "dead letters: not_json": "records that are no JSON, on purpose",
    "dead letters: not_an_object": "JSON that is no object, on purpose",
    "dead letters: invalid": "JSON that is no trace and no event, on purpose",
    "dead letters: future_timestamp": "records from a clock a year ahead, on purpose",
    "dead letters: trace_id_conflict": "a second session with the id of another session's trace, on purpose",
    "rejected: criterion_failed:tool_trajectory_avg_score": "tool_trajectory_avg_score of their session FAILED",
    "scores: trace_value FAILED": "traces below the threshold of the gate",
    "scores: trace_value PASSED": "traces that met it",
}
_ENDINGS = {
    " PASSED": "scores that met their threshold",
    " FAILED": "scores below their threshold: an agent that did or said something else than was expected",
    f" {_UNKNOWN}": "nothing was expected of these, so there is nothing to compare with",
    ":missing_input": "a required criterion has no value",
}


def expected_counts(emitted: Iterable[Emission], outcomes: Mapping[str, Counts]) -> Counts:
    """Returns the counts that the worker must produce for these records, which are those of whole sessions.

    Args:
        emitted: The records.
        outcomes: The outcome of each session, by id.
    """
    counts: Counter[str] = Counter()
    sessions = set()
    for one in emitted:
        counts["records"] += 1
        counts["forwarded"] += one.misrouted
        if one.fate == JOINED:
            sessions.add(one.session)
        else:
            counts["duplicates" if one.fate == DUPLICATE else f"dead letters: {one.fate}"] += 1
    for session in sessions:
        counts.update(outcomes[session])
    return +counts


def outcome_of(sketch: Sketch) -> Counts:
    """Returns the counts of a session, whatever sessions are beside it."""
    counts = Counter({"sessions": 1})
    counts["closed: session.ended" if sketch.ends and sketch.expected else "closed: idle"] += 1
    session = ""
    # A session of a trace alone has the turn of this trace, of which nothing is expected.
    expected = sketch.expected or ("nothing",)
    for metric, miss in _MISSES.items():
        turns = [_UNKNOWN if each == "nothing" else "FAILED" if each == miss else "PASSED" for each in expected]
        session = next((each for each in ("FAILED", "PASSED") if each in turns), _UNKNOWN)
        counts.update(f"scores: {metric} {status}" for status in (*turns, session))
    if sketch.quality is None:
        return counts
    counts["candidates"] += 1
    if sketch.repeats == "trace id":
        counts["dead letters: trace_id_conflict"] += 1
        return counts
    is_low = sketch.quality not in ("strong", "twin") or sketch.repeats == "trace"
    reasons = ["below_threshold"] if is_low else []
    reasons += ["visibility"] if sketch.visibility != "network" else []
    reasons += ["privacy"] if sketch.privacy == "private" else []
    reasons += ["criterion_failed:tool_trajectory_avg_score"] if session == "FAILED" else []
    reasons += ["criterion_not_evaluated:tool_trajectory_avg_score:missing_input"] if session == _UNKNOWN else []
    counts[f"scores: trace_value {'FAILED' if is_low else 'PASSED'}"] += 1
    counts.update(f"rejected: {reason}" for reason in reasons)
    counts["decisions: rejected" if reasons else "decisions: accepted"] += 1
    counts["network"] += not reasons
    return +counts


def meaning_of(count: str) -> str:
    """Returns what a count means, and why it is not 0 although all went as it should; empty for an unknown count.

    >>> meaning_of("duplicates")
    'records that were sent twice, on purpose; each counts once'
    """
    return _MEANINGS.get(count) or next((text for end, text in _ENDINGS.items() if count.endswith(end)), "")
