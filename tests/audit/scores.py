"""Claims about `results`: every measurement of every revision has exactly one score, and the score is correct."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator

from tests.audit.committed import Document
from tests.audit.evidence import Evidence, Version

TRAJECTORY = "tool_trajectory_avg_score"
UNSTEADY = "unsteady"
DEFAULTS = ("match_type", "'EXACT'"), ("require_certified", "False")
"""Options that say what a metric does without them."""
NOT_EVALUATED = {"raises": "error", "returns-rubbish": "error", "is-no-number": "error", "hangs": "timeout"}
"""The reason for which the unsteady scorer has no value, by the session's mark."""


def every_result_is_there(e: Evidence) -> Iterator[str]:
    """Every metric of each revision has its score, and each candidate has the scores of the gate.

    Without transactions a revision can be published twice; one copy can then supersede the other.
    """
    found = _found(e)
    yield from (f"missing: {result}" for result in _expected(e) if not found[result])


def no_result_is_doubled(e: Evidence) -> Iterator[str]:
    """An id, a revision and an attempt identify one result, and every result belongs to an existing revision."""
    ids = Counter((found["result_id"], found["revision"], found["attempt"]) for found in e.results)
    yield from (f"result {result} is there {times} times" for result, times in ids.items() if times > 1)
    yield from (f"of nothing: {result}" for result in (_found(e) - _expected(e)))


def an_id_stands_for_one_subject(e: Evidence) -> Iterator[str]:
    """All revisions of a score by the same options have the same id, and no other score has that id."""
    ids: dict[tuple[object, ...], str] = {}
    subjects: dict[str, tuple[object, ...]] = {}
    for found in e.results:
        subject = _subject(e, found)
        if ids.setdefault(subject, found["result_id"]) != found["result_id"]:
            yield f"{subject} has two ids"
        if subjects.setdefault(found["result_id"], subject) != subject:
            yield f"{found['result_id']} stands for {subject} and {subjects[found['result_id']]}"


def trajectories_are_right(e: Evidence) -> Iterator[str]:
    """Each value is equal to the value recomputed from the events of the revision.

    There is none if a refused record can have had a call of the invocation.
    """
    expected: dict[tuple[object, ...], float | None] = {}
    for each in e.scored():
        values = []
        for name, (calls, reference) in invocations(each.document).items():
            lacks_calls = any(
                record.get("invocation_id") in {None, name} and record.get("type") in {None, "tool.called"}
                for record in _refused(each.document)
            )
            value = None if reference is None or lacks_calls else float(calls == reference)
            expected[*each.version, name] = value
            values.append(value)
        known = [value for value in values if value is not None]
        expected[*each.version, None] = sum(known) / len(known) if known else None
    for found in e.results:
        if found["metric"] == TRAJECTORY:
            place = found["session_id"], found["segment"], found["revision"], found["invocation_id"]
            value = expected.get(place)
            if found["value"] != value and (None in (found["value"], value) or abs(found["value"] - value) > 1e-12):
                yield f"{place}: trajectory {found['value']}, not {value}"


def failures_cost_their_own_score(e: Evidence) -> Iterator[str]:
    """The unsteady scorer's result has the value that it returned, or the reason why there is no value."""
    for found in e.results:
        if found["metric"] == UNSTEADY:
            name = found["session_id"]
            because = NOT_EVALUATED.get(name.partition("~")[2])
            value = None if because else (zlib.crc32(name.encode()) % 101) / 100
            if (found["value"], found["not_evaluated_because"]) != (value, because):
                yield f"{name}: {found['value']}, {found['not_evaluated_because']}, not {value}, {because}"


def invocations(session: Document) -> dict[str, tuple[list[Document], list[Document] | None]]:
    """Returns the called tools and the expected tools, by invocation, also of those that only refused records name."""
    calls: dict[str, list[Document]] = {}
    expected: dict[str, list[Document]] = {}
    for event in session["events"]:
        if event["type"] == "session.ended":
            continue
        name = event["invocation_id"]
        calls.setdefault(name, [])
        if event["type"] == "tool.called":
            calls[name].append({"name": event["name"], "args": event["args"]})
        if "reference" in event:
            expected[name] = event["reference"]["tool_uses"]
    if not calls and session["traces"]:
        return {trace["id"]: ([], None) for trace in session["traces"]}
    for record in _refused(session):
        if (name := record.get("invocation_id")) is not None:
            calls.setdefault(name, [])
    return {name: (called, expected.get(name)) for name, called in calls.items()}


def _refused(session: Document) -> list[Document]:
    """Returns the refused records of a session that have not come back."""
    come = {event.get("event_id") for event in session["events"]} - {None}
    return [record for record in session.get("refused", ()) if record.get("event_id") not in come]


def _expected(e: Evidence) -> Counter[tuple[object, ...]]:
    expected: Counter[tuple[object, ...]] = Counter()
    for each in e.scored():
        criteria = e.config_of(each.version)["criteria"]
        for metric in criteria:
            if metric != UNSTEADY:
                expected.update((*each.version, "invocation", name, metric) for name in invocations(each.document))
            expected[*each.version, "session", None, metric] += 1
    for _, candidate in e.candidates:
        version = candidate["session_id"], candidate["segment"], candidate["revision"]
        trace = candidate["trace"]["id"], candidate["attempt"]
        for metric in ("trace_value", "gate"):
            expected[*version, "trace", trace, metric] += 1
    return expected


def _found(e: Evidence) -> Counter[tuple[object, ...]]:
    """Counts the scores of the first attempts, and the gate's scores of all attempts."""
    return Counter(
        (*_version(r), r["level"], (r["trace_id"], r["attempt"]) if _is_gates(r) else r["invocation_id"], r["metric"])
        for r in e.results
        if (r["attempt"] == 0 or _is_gates(r)) and not (r["metric"] in e.optional and e.is_by_file(_version(r)))
    )


def _is_gates(r: Document) -> bool:
    return bool(r["level"] == "trace")


def _subject(e: Evidence, r: Document) -> tuple[object, ...]:
    """Returns what a score measures: with other options of its metric, a score is another one."""
    config = e.config_of(_version(r))
    criterion = config["gate"] if r["metric"] == "gate" else config["criteria"].get(r["metric"])
    options = criterion.items() if isinstance(criterion, dict) else ()
    # A decision by other certificates has the same id, as one by another threshold has.
    given = [(name, repr(option)) for name, option in options if name not in {"threshold", "certificates"}]
    # Written or not, the default of these options is the same.
    way = tuple(each for each in given if each not in DEFAULTS)
    return r["session_id"], r["segment"], r["level"], r["invocation_id"] or r["trace_id"], r["metric"], way


def _version(r: Document) -> Version:
    return r["session_id"], r["segment"], r["revision"]
