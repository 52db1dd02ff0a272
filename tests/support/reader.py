"""Reads what was committed, and holds it against a ledger. Shares no code with the worker: plain JSON, numpy and a consumer.

Every check returns sentences, one a fault; none means that the claim holds.
"""

from __future__ import annotations

import base64
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.ledger import PARTITIONS, Ledger, canonical, home

Document = dict[str, Any]

CLOSE = 1e-5
"""How far a novelty or value may lie from the one recomputed here."""

TOPICS = ("traces", "invocations", "strays", "sessions", "candidates", "results", "network", "dead-letters")
STAGES = ("assemble", "score", "gate")


class Row(NamedTuple):
    """A committed record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]

    @property
    def document(self) -> Document:
        """The value, which must be a JSON object."""
        found: Document = json.loads(self.value or b"")
        return found


class Committed:
    """All that `read_committed` shows of an application's topics, as far as it was read."""

    def __init__(self, bootstrap_servers: str, prefix: str, application: str) -> None:
        self._servers, self._application = bootstrap_servers, application
        self._names = {f"{prefix}{topic}": topic for topic in TOPICS} | {f"{application}-state-changelog": "changelog"}
        self.rows: dict[str, list[Row]] = {topic: [] for topic in self._names.values()}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "reader-of-tests",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.assign(
            [TopicPartition(name, number, OFFSET_BEGINNING) for name in self._names for number in range(PARTITIONS)]
        )

    def __enter__(self) -> Committed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def read(self, seconds: float) -> int:
        """Read on for so long. Returns how many records there were."""
        until, count = time.monotonic() + seconds, 0
        while (left := until - time.monotonic()) > 0:
            for message in self._consumer.consume(5_000, min(0.5, left)):
                if message.error():
                    raise RuntimeError(message.error())
                count += 1
                row = Row(
                    message.partition(), message.offset(), message.key(), message.value(), message.headers() or []
                )
                self.rows[self._names[message.topic()]].append(row)
        return count

    def unread(self) -> list[str]:
        """Inputs in which there is a committed record above the group's committed offset."""
        asked = ConsumerGroupTopicPartitions(self._application)
        client = AdminClient({"bootstrap.servers": self._servers})
        answer = client.list_consumer_group_offsets([asked])[self._application].result()
        offsets = {(self._names[place.topic], place.partition): place.offset for place in answer.topic_partitions}
        return [
            f"{topic}[{partition}]: committed {offsets.get((topic, partition))}, last record {last}"
            for topic in ("traces", "invocations", "strays", "sessions", "candidates")
            for partition, last in self._last_offsets(topic).items()
            if offsets.get((topic, partition), -1) <= last
        ]

    def counts(self) -> dict[str, Counter[str]]:
        """By stage, what the stage counted, over all partitions."""
        last: dict[tuple[str, int], Document] = {}
        for row in self.rows["changelog"]:
            for stage in STAGES:
                if row.key == f"{stage}/#".encode():
                    last[stage, row.partition] = row.document
        total: dict[str, Counter[str]] = {stage: Counter() for stage in STAGES}
        for (stage, _), counted in last.items():
            total[stage].update(counted)
        return total

    def sessions(self) -> Iterator[Document]:
        """The closed segments."""
        return (row.document for row in self.rows["sessions"])

    def _last_offsets(self, topic: str) -> dict[int, int]:
        last: dict[int, int] = {}
        for row in self.rows[topic]:
            last[row.partition] = row.offset
        return last


class Audit:
    """A ledger and what was committed, side by side."""

    def __init__(self, ledger: Ledger, committed: Committed, config: Document) -> None:
        self._ledger, self._committed, self._rows = ledger, committed, committed.rows
        self._gate = config["gate"]
        self._sessions = [row.document for row in self._rows["sessions"]]
        self._results = [row.document for row in self._rows["results"]]
        self._candidates = [(row, row.document) for row in sorted(self._rows["candidates"], key=lambda row: row[:2])]
        self._said: dict[tuple[str, str], Document] = {
            (found["trace_id"], found["metric"]): found for found in self._results if found["level"] == "trace"
        }

    def faults(self) -> dict[str, list[str]]:
        """By claim, what contradicts it; only claims that do not hold."""
        claims: tuple[Callable[[], Iterator[str]], ...] = (
            self.every_record_is_in_one_closed_session,
            self.segments_are_whole,
            self.every_result_is_there_once,
            self.trajectories_are_right,
            self.every_trace_is_one_candidate,
            self.every_decision_follows_from_the_log,
            self.network_is_what_was_accepted,
            self.dead_letters_are_the_garbage,
            self.strays_were_forwarded_once,
            self.coverage_adds_up,
            self.nothing_is_left_unread,
        )
        found = {claim.__name__: list(claim()) for claim in claims}
        return {claim: sentences for claim, sentences in found.items() if sentences}

    def every_record_is_in_one_closed_session(self) -> Iterator[str]:
        events: dict[str, Counter[str]] = defaultdict(Counter)
        traces: Counter[str] = Counter()
        for session in self._sessions:
            name = session["session_id"]
            if name not in self._ledger.events:
                yield f"session {name} was never sent"
            events[name].update(canonical(event) for event in session["events"])
            for trace in session["traces"]:
                traces[trace["id"]] += 1
                if trace != self._ledger.traces.get(trace["id"]):
                    yield f"trace {trace['id']} differs from what was sent"
                if self._ledger.session_of.get(trace["id"]) != name:
                    yield f"trace {trace['id']} is in session {name}"
        for name, sent in self._ledger.events.items():
            for event in sent - set(events[name]):
                yield f"session {name}: lost {event}"
            for event in set(events[name]) - sent:
                yield f"session {name}: never sent {event}"
            for event, times in events[name].items():
                if times > 1:
                    yield f"session {name}: {times} times {event}"
        for trace_id in self._ledger.traces:
            if traces[trace_id] != 1:
                yield f"trace {trace_id} is in {traces[trace_id]} sessions"

    def segments_are_whole(self) -> Iterator[str]:
        segments: dict[str, list[int]] = defaultdict(list)
        for row, session in zip(self._rows["sessions"], self._sessions, strict=True):
            name = session["session_id"]
            segments[name].append(session["segment"])
            if row.partition != home(name) or row.key != name.encode():
                yield f"session {name} is under key {row.key!r} in partition {row.partition}"
            moments = [event["occurred_at"] for event in session["events"]]
            if any(earlier > later for earlier, later in pairwise(moments)):
                yield f"session {name}: events out of order"
            ended = any(event["type"] == "session.ended" for event in session["events"])
            if session["closed_because"] != ("session.ended" if ended else "idle"):
                yield f"session {name} was closed because of {session['closed_because']}"
        for name, numbers in segments.items():
            if sorted(numbers) != list(range(len(numbers))):
                yield f"session {name} has segments {numbers}"

    def every_result_is_there_once(self) -> Iterator[str]:
        ids = Counter((found["result_id"], found["revision"]) for found in self._results)
        yield from (f"result {result} is there {times} times" for result, times in ids.items() if times > 1)
        expected: Counter[tuple[object, ...]] = Counter()
        for session in self._sessions:
            place = session["session_id"], session["segment"]
            for name in _invocations(session):
                expected[*place, "invocation", name, "tool_trajectory_avg_score"] += 1
            expected[*place, "session", None, "tool_trajectory_avg_score"] += 1
            for trace in session["traces"]:
                expected[*place, "trace", trace["id"], "trace_value"] += 1
                expected[*place, "trace", trace["id"], "gate"] += 1
        found = Counter(
            (r["session_id"], r["segment"], r["level"], r["invocation_id"] or r["trace_id"], r["metric"])
            for r in self._results
        )
        yield from (f"missing: {result}" for result in (expected - found))
        yield from (f"of nothing: {result}" for result in (found - expected))

    def trajectories_are_right(self) -> Iterator[str]:
        expected: dict[tuple[str, int, str | None], float | None] = {}
        for session in self._sessions:
            place, values = (session["session_id"], session["segment"]), []
            for name, (calls, reference) in _invocations(session).items():
                value = None if reference is None else float(calls == reference)
                expected[*place, name] = value
                values.append(value)
            known = [value for value in values if value is not None]
            expected[*place, None] = sum(known) / len(known) if known else None
        for found in self._results:
            if found["metric"] == "tool_trajectory_avg_score":
                place = found["session_id"], found["segment"], found["invocation_id"]
                value = expected.get(place)
                if found["value"] != value and (None in (found["value"], value) or abs(found["value"] - value) > 1e-12):
                    yield f"{place}: trajectory {found['value']}, not {value}"

    def every_trace_is_one_candidate(self) -> Iterator[str]:
        times = Counter(candidate["trace"]["id"] for _, candidate in self._candidates)
        for trace_id in self._ledger.traces:
            if times[trace_id] != 1:
                yield f"trace {trace_id} is {times[trace_id]} candidates"
        partitions: dict[str, set[int]] = defaultdict(set)
        verdicts = {
            (found["session_id"], found["segment"]): found["status"]
            for found in self._results
            if found["level"] == "session"
        }
        for row, candidate in self._candidates:
            trace_id, scope = candidate["trace"]["id"], candidate["scope"]
            partitions[scope].add(row.partition)
            sent = self._ledger.traces.get(trace_id)
            if candidate["trace"] != sent:
                yield f"candidate {trace_id} differs from the trace that was sent"
                continue
            if not scope.startswith(sent["metadata"]["task_domain"].casefold()):
                yield f"candidate {trace_id} is in scope {scope}"
            verdict = verdicts.get((candidate["session_id"], candidate["segment"]))
            if candidate["required"]["tool_trajectory_avg_score"]["status"] != verdict:
                yield f"candidate {trace_id} carries another verdict than {verdict}"
        yield from (f"scope {name} is in partitions {found}" for name, found in partitions.items() if len(found) > 1)

    def every_decision_follows_from_the_log(self) -> Iterator[str]:
        rings: dict[str, list[npt.NDArray[np.float64]]] = defaultdict(list)
        for row, candidate in self._candidates:
            trace_id, ring = candidate["trace"]["id"], rings[candidate["scope"]]
            novelty = 0.5
            vector = np.frombuffer(base64.b64decode(candidate["embedding"]["data"]), "<f4").astype(np.float64)
            vector /= np.linalg.norm(vector)
            if ring:
                novelty = 1 - max(float(vector @ other) for other in ring[-self._gate["cache_size"] :])
            ring.append(vector)
            said, decision = self._said.get((trace_id, "trace_value")), self._said.get((trace_id, "gate"))
            if said is None or decision is None:
                yield f"no decision on {trace_id}"
                continue
            value = _worth(candidate["trace"], novelty)
            if abs(said["details"]["novelty"] - novelty) > CLOSE:
                yield f"{trace_id}: novelty {said['details']['novelty']}, recomputed {novelty}"
            if abs(said["value"] - value) > CLOSE:
                yield f"{trace_id}: value {said['value']}, recomputed {value}"
            if (decision["details"]["partition"], decision["details"]["offset"]) != (row.partition, row.offset):
                yield f"{trace_id}: decided at {decision['details']}, not at {row[:2]}"
            if abs(value - self._gate["threshold"]) > CLOSE and _accepted(decision) != self._accepts(candidate, value):
                yield f"{trace_id}: {decision['rationale']} with a value of {value}"

    def network_is_what_was_accepted(self) -> Iterator[str]:
        published: dict[str, list[Document]] = defaultdict(list)
        for row in self._rows["network"]:
            if row.value is None:
                yield f"network: trace {row.key!r} was taken back"
                continue
            document = row.document
            published[document["id"]].append(document)
            if row.key != document["id"].encode() or row.partition != home(document["id"]):
                yield f"network: trace {document['id']} is under key {row.key!r} in partition {row.partition}"
        accepted = {trace for (trace, metric), said in self._said.items() if metric == "gate" and _accepted(said)}
        yield from (f"published without being accepted: {trace}" for trace in set(published) - accepted)
        yield from (f"accepted and not published: {trace}" for trace in accepted - set(published))
        for trace_id, documents in published.items():
            if len(documents) > 1:
                yield f"published {len(documents)} times: {trace_id}"
            sent, said = self._ledger.traces.get(trace_id), self._said.get((trace_id, "trace_value"))
            if sent is None or said is None:
                yield f"published without a trace or a value: {trace_id}"
                continue
            metadata = {name: content for name, content in sent["metadata"].items() if name != "session_id"}
            if documents[0] != {**sent, "metadata": {**metadata, "quality_score": said["value"]}}:
                yield f"published otherwise than it was sent: {documents[0]}"

    def dead_letters_are_the_garbage(self) -> Iterator[str]:
        expected = Counter((topic, key, value, reason) for topic, key, value, reason in self._ledger.refused)
        found: Counter[tuple[str, bytes | None, bytes, str]] = Counter()
        for row in self._rows["dead-letters"]:
            about = {name: content.decode() for name, content in row.headers}
            topic = about["tracegate.topic"].rpartition(".")[2]
            found[topic, row.key, row.value or b"", about["tracegate.reason"]] += 1
            if int(about["tracegate.partition"]) != row.partition or not about["tracegate.detail"]:
                yield f"dead letter {about} in partition {row.partition}"
        yield from (f"no dead letter: {record}" for record in (expected - found).elements())
        yield from (f"unexpected dead letter: {record}" for record in (found - expected).elements())

    def strays_were_forwarded_once(self) -> Iterator[str]:
        if len(self._rows["strays"]) != self._ledger.sent["forwarded"]:
            yield f"{len(self._rows['strays'])} strays, {self._ledger.sent['forwarded']} sent astray"

    def coverage_adds_up(self) -> Iterator[str]:
        counts, sent, rows = self._committed.counts(), self._ledger.sent, self._rows
        assemble, score, gate = (counts[stage] for stage in STAGES)
        accepted = sum(_accepted(found) for found in self._results if found["metric"] == "gate")
        equations = {
            "consumed = traces + invocations + strays": (
                assemble["consumed"],
                sum(len(rows[topic]) for topic in ("traces", "invocations", "strays")),
            ),
            "consumed = joined + duplicate + forwarded + dead-lettered": (
                assemble["consumed"],
                assemble["joined"] + assemble["duplicate"] + assemble["forwarded"] + _dead(assemble),
            ),
            "joined as sent": (assemble["joined"], sent["joined"]),
            "duplicates as sent": (assemble["duplicate"], sent["duplicate"]),
            "forwarded as sent": (assemble["forwarded"], sent["forwarded"]),
            "dead-lettered as sent": (_dead(assemble), len(self._ledger.refused)),
            "opened = closed": (assemble["opened"], assemble["closed"]),
            "closed = sessions": (assemble["closed"], len(rows["sessions"])),
            "closed = scored": (assemble["closed"], score["scored"]),
            "no session or candidate dead-lettered": (_dead(score) + _dead(gate), 0),
            "scores = results but those of the gate": (
                sum(number for name, number in score.items() if name.startswith("scores.")),
                sum(found["level"] != "trace" for found in self._results),
            ),
            "candidates = traces": (score["candidates"], len(self._ledger.traces)),
            "candidates = seen": (score["candidates"], gate["consumed"]),
            "seen = accepted + rejected": (gate["consumed"], gate["accepted"] + gate["rejected"]),
            "accepted as decided": (gate["accepted"], accepted),
        }
        yield from (f"{name}: {left}, {right}" for name, (left, right) in equations.items() if left != right)

    def nothing_is_left_unread(self) -> Iterator[str]:
        yield from self._committed.unread()

    def _accepts(self, candidate: Document, value: float) -> bool:
        metadata = candidate["trace"]["metadata"]
        return bool(
            value >= self._gate["threshold"]
            and metadata["visibility"] == "network"
            and metadata["privacy_level"] != "private"
            and all(candidate["required"][name]["status"] == "PASSED" for name in self._gate["required"])
        )


def _invocations(session: Document) -> dict[str, tuple[list[Document], list[Document] | None]]:
    """By invocation, the tools called and the tools expected."""
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
    if not calls:
        return {trace["id"]: ([], None) for trace in session["traces"]}
    return {name: (called, expected.get(name)) for name, called in calls.items()}


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


def _accepted(decision: Document) -> bool:
    return bool(decision["details"]["decision"] == "accepted")


def _dead(counted: Counter[str]) -> int:
    return sum(number for name, number in counted.items() if name.startswith("dead_lettered."))
