"""Says what each count of the demo's closing table means, and why it is not 0 although all went as it should."""

from __future__ import annotations

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
}
_OF_STATUS = {
    "PASSED": "scores that met their threshold",
    "FAILED": "scores below their threshold: an agent that did or said something else than was expected",
    "NOT_EVALUATED missing_input": "nothing was expected of these, so there is nothing to compare with",
}


def meaning_of(count: str) -> str:
    """Returns what a count means; empty for a count that this version does not know.

    >>> meaning_of("duplicates")
    'records that were sent twice, on purpose; each counts once'
    >>> meaning_of("scores: trace_value FAILED")
    'traces below the threshold of the gate'
    """
    if count in _MEANINGS:
        return _MEANINGS[count]
    kind, _, rest = count.partition(": ")
    if kind == "rejected":
        metric = rest.removeprefix("criterion_failed:")
        return f"{metric} of their session FAILED" if metric != rest else "a required criterion has no value"
    if kind != "scores":
        return ""
    metric, _, status = rest.partition(" ")
    if metric == "trace_value":
        return "traces below the threshold of the gate" if status == "FAILED" else "traces that met it"
    return _OF_STATUS.get(status, "")
