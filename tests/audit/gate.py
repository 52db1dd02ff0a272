"""Claims about `candidates` and `network`: candidates and decisions are equal to those recomputed from the log."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from tests.audit.committed import Document, Row
from tests.audit.evidence import Attempt, Evidence, Published, Version, accepted
from tests.support.ledger import canonical, home

CLOSE = 1e-5
"""Allowed difference between a novelty or value and its recomputed number."""
MEASURED = "source", "metric_digest", "judge", "threshold"
"""The fields of a score that a candidate carries if certificates are required."""
ABOUT = "criterion", "metric_digest", "judge", "threshold"
"""The fields of a certificate that say what it is about. A score calls the first of them `metric`."""
Verdict = tuple[object, object, tuple[object, ...] | None]
"""A status, the reason of NOT_EVALUATED, and the fields `MEASURED` of the score if certificates are required."""


def every_change_of_a_trace_is_one_candidate(e: Evidence) -> Iterator[str]:
    """Each attempt has, in order, one candidate per trace with changed content, verdict, config or app, and no other one.

    A pushed config can equal a config file, and then has its digest. To a worker with that file both are the same. To a
    worker with another file they are not, so that with several files a candidate with rules can come unchanged.

    With wrong clocks, a record of the near future can be in a session; by its time, the stage forgets what it has sent of
    the sessions before, and sends a trace without a change again.
    """
    pushed, is_one_file = _pushed_by_version(e), len(e.configs.files or ()) <= 1
    carried = {(each["trace"]["id"], _attempt(each)): each.get("gate_rules") is not None for _, each in e.candidates}
    expected: dict[str, list[tuple[Attempt, str]]] = defaultdict(list)
    for published in e.revisions.values():
        sent: dict[str, tuple[object, ...]] = {}
        has_rules: dict[str, object] = {}
        for each, attempt in _attempts(e, published):
            for trace in each.document["traces"]:
                content = canonical(trace)
                config = tuple(e.digests.get(each.version, ()))
                carries, before = carried.get((trace["id"], attempt)), has_rules.get(trace["id"], False)
                was_pushed = pushed.get(each.version)
                if was_pushed is not None and carries not in (None, was_pushed):
                    yield f"the candidate {trace['id']} of {attempt} has rules: {carries}; its config was pushed: {was_pushed}"
                rules: object = bool(was_pushed)
                if not was_pushed and not is_one_file:  # the audit cannot tell which file the worker had
                    rules = before if carries is None else carries and each.version
                has_rules[trace["id"]] = rules
                now = content, _required(e, attempt), config, rules, _app_name(each.document)
                if sent.get(trace["id"]) != now:
                    sent[trace["id"]] = now
                    expected[trace["id"]].append((attempt, content))
    found: dict[str, list[tuple[Attempt, str]]] = defaultdict(list)
    for _, candidate in e.candidates:
        found[candidate["trace"]["id"]].append((_attempt(candidate), canonical(candidate["trace"])))
    for trace_id in {**expected, **found}:
        if e.wrong_clocks:
            found[trace_id] = _without_repeated(found[trace_id], expected[trace_id])
        if found[trace_id] != expected[trace_id]:
            came, wanted = ([attempt for attempt, _ in each[trace_id]] for each in (found, expected))
            yield f"trace {trace_id} is candidates {came}, not {wanted}" + ", of other content" * (came == wanted)


def _attempts(e: Evidence, published: list[Published]) -> Iterator[tuple[Published, Attempt]]:
    """Yields the attempts at the revisions of a segment, in their order; a revision is not scored after the next one."""
    for each in published:
        if not e.poisonous(each.place[0]) and each.version not in e.superseded:
            for number in range(e.attempts(each.version)):
                yield each, (*each.version, number)


def _without_repeated(
    found: list[tuple[Attempt, str]], expected: list[tuple[Attempt, str]]
) -> list[tuple[Attempt, str]]:
    """Returns the candidates of a trace without those that repeat an earlier one of the same segment unexpectedly."""
    earlier: set[tuple[str, int, str]] = set()
    kept = []
    for attempt, content in found:
        name = *attempt[:2], content
        if (attempt, content) in expected or name not in earlier:
            kept.append((attempt, content))
        earlier.add(name)
    return kept


def _pushed_by_version(e: Evidence) -> dict[Version, bool]:
    """Returns whether the config of each revision was pushed. A revision whose config can also be a file is left out."""
    files, documents = e.configs.files or (), e.configs.documents
    found = {}
    for each in e.results:
        digest = each["config_digest"]
        if digest not in files or digest not in documents:
            found[each["session_id"], each["segment"], each["revision"]] = digest in documents
    return found


def candidates_are_in_their_scope(e: Evidence) -> Iterator[str]:
    """A scope has one partition and is named after the domain; a candidate carries the verdict of its session."""
    partitions: dict[str, set[int]] = defaultdict(set)
    for row, candidate in e.candidates:
        trace_id, scope = candidate["trace"]["id"], candidate["scope"]
        partitions[scope].add(row.partition)
        if not scope.startswith(candidate["trace"]["metadata"]["task_domain"].casefold()):
            yield f"candidate {trace_id} is in scope {scope}"
        required = _required(e, _attempt(candidate))
        verdicts = [(name, _carried(each)) for name, each in candidate["required"].items()]
        if sorted(verdicts) != sorted((name, each) for name, each in required if each is not None):
            yield f"candidate {trace_id} carries the verdicts {verdicts}, not {required}"
    yield from (f"scope {name} is in partitions {found}" for name, found in partitions.items() if len(found) > 1)


def every_decision_follows_from_the_log(e: Evidence) -> Iterator[str]:
    """Novelty, value and decision follow from the earlier candidates.

    A revised trace replaces its own vector in place.
    """
    rings: dict[str, dict[str, npt.NDArray[np.float64]]] = defaultdict(dict)
    for row, candidate in e.candidates:
        trace_id, ring = candidate["trace"]["id"], rings[candidate["scope"]]
        vector = np.frombuffer(base64.b64decode(candidate["embedding"]["data"]), "<f4").astype(np.float64)
        vector /= np.linalg.norm(vector)
        cosines = [float(vector @ other) for name, other in ring.items() if name != trace_id]
        novelty = 1 - max(cosines) if cosines else 0.5
        if trace_id not in ring and len(ring) == e.gate["cache_size"]:
            del ring[next(iter(ring))]
        ring[trace_id] = vector
        attempt = _attempt(candidate)
        valued, decision = (e.gate_scores.get((trace_id, *attempt[1:], metric)) for metric in ("trace_value", "gate"))
        if valued is None or decision is None:
            yield f"no decision on {trace_id} of {attempt}"
            continue
        value = _worth(candidate["trace"], novelty)
        if abs(valued["details"]["novelty"] - novelty) > CLOSE:
            yield f"{trace_id}: novelty {valued['details']['novelty']}, recomputed {novelty}"
        if abs(valued["value"] - value) > CLOSE:
            yield f"{trace_id}: value {valued['value']}, recomputed {value}"
        if (decision["details"]["partition"], decision["details"]["offset"]) != (row.partition, row.offset):
            yield f"{trace_id}: decided at {decision['details']}, not at {row[:2]}"
        gate = e.config_of(attempt[:3])["gate"]
        if abs(value - gate["threshold"]) > CLOSE and accepted(decision) != _accepts(e, gate, candidate, value):
            yield f"{trace_id}: {decision['rationale']} with a value of {value}"


def network_holds_what_was_accepted(e: Evidence) -> Iterator[str]:
    """The last record of each trace agrees with the last decision on it."""
    last = {row.key: row.value for row in _network(e)}
    for trace_id, (_, stands) in _decisions(e).items():
        if (last.get(trace_id.encode()) is not None) != stands:
            yield f"trace {trace_id} is {'not ' if stands else ''}on network in the end"


def network_says_it_once(e: Evidence) -> Iterator[str]:
    """Each acceptance has a record, and each withdrawal a tombstone, in the order of the decisions.

    A tombstone where nothing stands changes nothing: the gate sends one where it cannot know.
    """
    found: dict[str, list[Document | None]] = defaultdict(list)
    for row in _network(e):
        name = (row.key or b"").decode()
        if row.value is not None or found[name][-1:] not in ([], [None]):
            found[name].append(None if row.value is None else row.document)
        if row.partition != home(name) or (row.value is not None and row.document["id"] != name):
            yield f"network: a record under key {name} in partition {row.partition}"
    decisions = {trace_id: each[0] for trace_id, each in _decisions(e).items()}
    for name in {**found, **decisions}:
        expected = decisions.get(name, [])
        if found[name] != expected:
            times, wanted = len(found[name]), len(expected)
            yield f"network: trace {name} is there {times} times, not {wanted}, or otherwise than it was sent"


def _decisions(e: Evidence) -> dict[str, tuple[list[Document | None], bool]]:
    """Returns each trace's expected records on `network` (None: a tombstone), and whether it ends up published."""
    found: dict[str, tuple[list[Document | None], bool]] = {}
    for _, candidate in e.candidates:
        trace = candidate["trace"]
        place = trace["id"], *_attempt(candidate)[1:]
        valued, decision = (e.gate_scores.get((*place, metric)) for metric in ("trace_value", "gate"))
        if valued is None or decision is None:
            continue
        records, stands = found.get(trace["id"], ([], False))
        if accepted(decision):
            metadata = {name: content for name, content in trace["metadata"].items() if name != "session_id"}
            records.append({**trace, "metadata": {**metadata, "quality_score": valued["value"]}})
        elif stands:
            records.append(None)
        found[trace["id"]] = records, accepted(decision)
    return found


def _network(e: Evidence) -> list[Row]:
    return sorted(e.rows["network"], key=lambda row: row[:2])


def _required(e: Evidence, attempt: Attempt) -> list[tuple[str, Verdict | None]]:
    """Returns the metrics that the gate requires of a revision, and what an attempt has found of them."""
    gate = e.config_of(attempt[:3])["gate"]
    found: list[tuple[str, Verdict | None]] = []
    for name in gate["required"]:
        score = e.verdict_scores.get((attempt, name))
        if score is None:
            found.append((name, None))
        else:
            parts = tuple(score.get(part) for part in MEASURED) if gate.get("require_certified") else None
            found.append((name, (score["status"], score["not_evaluated_because"], parts)))
    return found


def _carried(verdict: Document) -> Verdict:
    """Returns what a candidate says of a metric, as `_required` does."""
    measured = verdict.get("measured")
    parts = None if measured is None else tuple(measured.get(part) for part in MEASURED)
    return verdict["status"], verdict.get("not_evaluated_because"), parts


def _app_name(session: Document) -> object:
    """Returns the last known app of the invocations, which a candidate has as one of its dimensions."""
    known = [
        event["app_name"] for event in session["events"] if event["type"] != "session.ended" and "app_name" in event
    ]
    return known[-1] if known else None


def is_certified(gate: Document, score: Document) -> bool:
    """Returns whether the gate of a config can rest on a score of a required criterion that PASSED."""
    if not gate.get("require_certified") or score.get("source") != "model":
        return True
    judged = score["metric"], score["metric_digest"], score.get("judge"), score["threshold"]
    return any(tuple(each[name] for name in ABOUT) == judged for each in gate.get("certificates", ()))


def _attempt(candidate: Document) -> Attempt:
    return candidate["session_id"], candidate["segment"], candidate["revision"], candidate["attempt"]


def _accepts(e: Evidence, gate: Document, candidate: Document, value: float) -> bool:
    metadata = candidate["trace"]["metadata"]
    # None if the session was scored by a config that was not its own.
    scores = [e.verdict_scores.get((_attempt(candidate), name)) for name in gate["required"]]
    return bool(
        value >= gate["threshold"]
        and metadata["visibility"] == "network"
        and metadata["privacy_level"] != "private"
        and all(each is not None and each["status"] == "PASSED" and is_certified(gate, each) for each in scores)
    )


def _worth(trace: Document, novelty: float) -> float:
    types = [step["type"] for step in trace["steps"]]
    tools = [step["tool"]["name"] for step in trace["steps"] if "tool" in step]
    success, recoveries = trace["metadata"]["success"], types.count("error_recovery")
    complexity = min(1.0, len(set(types)) / 8 + 0.3 * (recoveries > 0) + len(types) / 100)
    diversity = min(1.0, 3 * len(set(tools)) / len(types))
    confidence = trace["outcome"]["confidence"] * (1.0 if success else 0.3)
    value = 0.25 * complexity + 0.35 * novelty + 0.15 * diversity + 0.25 * confidence
    if types == ["thought"]:
        value = 0.1
    if recoveries >= 2 and success:
        value = min(1.0, value + 0.1)
    if len(set(tools)) == 1:
        value = max(0.0, value - 0.1)
    return float(min(1.0, max(0.0, value)))
