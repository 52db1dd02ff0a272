"""Runs one round whose input are OTLP requests, and compares the outputs with those of a reading without Kafka."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from pydantic import JsonValue
from tests.audit import claims
from tests.audit.committed import CHANGELOG, SPAN_INPUTS, Committed, Document
from tests.chaos.crew import Crew
from tests.chaos.load import Load
from tests.chaos.outcome import Outcome
from tests.chaos.phases import delete_topics, make_topics, rest, run_load, size_of
from tests.chaos.scenario import Scenario
from tests.chaos.small_disk import SmallDisk
from tests.chaos.span_ledger import SpanLedger, documents_by_session
from tests.chaos.undisturbed import comparable
from tests.support.collect import ordered
from tests.support.kafka_cluster import KafkaCluster
from tests.support.ledger import PARTITIONS
from tests.support.workers import Fleet

from traceweir.scorers.embedding import HashingEmbedder
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.collect.span_rows import HEADER_KEY, TraceHeader
from traceweir.streams.stages.partitioner import partition_of
from traceweir.streams.testing import Flow

SENDING_SHARE = 0.35
"""Requests are sent in this share of the time of the faults. In the rest of the time the traces are published."""
GRACE_SHARE = 0.55
"""How long a trace waits for its spans, as a share of the time of the faults.

A partition must be without a worker for a shorter time, so that no span comes after its trace was published.
"""
VARIABLES = {"TRACEWEIR_GRACE_S": "240", "TRACEWEIR_GUARD_S": "900"}
CONFIG: dict[str, JsonValue] = {
    "criteria": {"tool_call_count_v1": {}, "inference_call_count_v1": {}, "completeness": 0.5}
}
_REQUESTS_SHARE = 0.25
"""Requests a second as a share of the scenario's rate: a request holds about six spans."""


class TooSlowError(RuntimeError):
    """Records waited for a worker for so long that most traces were published without some of their spans."""


class SpansCommitted(Committed):
    """The committed records of a round of spans, and how long records waited for the stage collect."""

    def __init__(self, bootstrap_servers: str, prefix: str, *applications: str) -> None:
        super().__init__(bootstrap_servers, prefix, *applications, spans=True)
        self.longest_wait_s = 0.0
        """The longest time from the arrival of a record to the checkpoint with it, in seconds."""
        self._waiting: deque[tuple[float, int]] = deque()

    def read(self, seconds: float) -> int:
        """Reads on for a time; returns the number of records."""
        count = super().read(seconds)
        now, consumed = time.monotonic(), self.counts()["collect"]["consumed"]
        arrived = sum(len(self.rows[topic]) for topic in SPAN_INPUTS)
        if not self._waiting or arrived > self._waiting[-1][1]:
            self._waiting.append((now, arrived))
        while self._waiting and self._waiting[0][1] <= consumed:
            self._waiting.popleft()
        if self._waiting:
            self.longest_wait_s = max(self.longest_wait_s, now - self._waiting[0][0])
        return count

    def late_traces(self) -> set[str]:
        """Returns the ids of the traces that were published several times, because spans came after a publication."""
        found = set()
        begin = b"collect/" + HEADER_KEY
        for row in self.rows[CHANGELOG]:
            if row.value and row.key and row.key.startswith(begin) and TraceHeader.unpack(row.value).publications > 1:
                found.add(row.key.removeprefix(begin).hex())
        return found


def play_spans(
    scenario: Scenario,
    bootstrap_servers: str,
    cluster: KafkaCluster | None,
    folder: Path,
    report_phase: Callable[[str], object] = lambda phase: None,
) -> Outcome:
    """Runs a round on its own topics, which are deleted afterwards. The arguments are those of `round.play`.

    Raises:
        TooSlowError: The machine was too busy for the round, and spans came after their trace was published.
    """
    trace_grace_s = scenario.load_s * GRACE_SHARE
    started = time.monotonic()
    prefix = f"chaos-{scenario.seed}-{os.urandom(3).hex()}."
    ledger = SpanLedger(scenario.seed)
    config = folder / "config.json"
    config.write_text(json.dumps(CONFIG))
    names = {f"TRACEWEIR_{topic.upper()}_TOPIC": prefix + topic for topic in ("otlp_spans", "otlp_logs")}
    with ExitStack() as stack:
        applications = make_topics(bootstrap_servers, prefix, scenario)
        stack.callback(delete_topics, bootstrap_servers, prefix)
        disk = stack.enter_context(SmallDisk(folder / "disk")) if scenario.small_disk else None
        committed = SpansCommitted(bootstrap_servers, prefix, *applications)
        stack.enter_context(committed)
        waits = dict.fromkeys(("TRACEWEIR_TRACE_GRACE_S", "TRACEWEIR_TRACE_IDLE_S"), f"{trace_grace_s:g}")
        variables = {**VARIABLES, **names, **waits}
        fleet = stack.enter_context(Fleet(bootstrap_servers, prefix, folder, config, variables=variables))
        load = Load(ledger, bootstrap_servers, prefix, round(scenario.rate * _REQUESTS_SHARE), idempotent=True)
        crew = Crew(fleet, scenario, cluster, disk)
        stack.callback(crew.release)
        pause_s = run_load(load, crew, committed, report_phase, is_warm=lambda: True, sending_share=SENDING_SHARE)
        rest(load, crew, committed, report_phase, once=True, patience_s=trace_grace_s + 60)
        if cluster is not None:
            cluster.wait()
        report_phase("reading the spans without Kafka")
        crew.counters["stage raises"] = sum(worker.stumbles for worker in fleet.started)
        state_bytes = max(size_of(worker.state_dir) for worker in fleet.started)
        fleet.end()
        late = committed.late_traces()
        if len(late) > len(ledger.traces) / 2:
            raise TooSlowError(
                f"{len(late)} of {len(ledger.traces)} traces were published before all their spans had come: records waited "
                f"up to {committed.longest_wait_s:.0f} s for a worker, and a trace waits {trace_grace_s:g} s for its spans; "
                "take a longer load or a machine that is less busy"
            )
        found = faults(ledger, committed, late)
        if late and committed.longest_wait_s < trace_grace_s / 2:
            found.setdefault(claims.WRONG, {})["traces_wait_for_their_spans"] = sorted(late)
        return Outcome(
            scenario=scenario,
            faults=crew.counters,
            ends=crew.ends,
            sent=Counter({**ledger.sent, "records": load.sent, "late traces": len(late)}),
            dead_lettered=len(committed.rows["dead-letters"]),
            committed={topic: len(rows) for topic, rows in committed.rows.items()},
            found=found,
            longest_pause_s=pause_s,
            state_bytes=state_bytes,
            took_s=time.monotonic() - started,
        )


def faults(ledger: SpanLedger, committed: Committed, late: Collection[str]) -> claims.Faults:
    """Returns a sentence for each difference to the reading without Kafka, by heading and claim.

    The documents of `late` traces depend on the spans that had come at their publication. Of these traces, no document
    may be there twice; the other claims leave their sessions out.
    """
    rows = committed.rows
    all_published = [row.document for topic in ("invocations", "traces") for row in rows[topic]]
    all_expected = ledger.documents()
    late_sessions = {
        session for session, each in documents_by_session([*all_published, *all_expected]) if trace_of(each) in late
    }
    expected = [each for session, each in documents_by_session(all_expected) if session not in late_sessions]
    published = Counter(
        _text(each) for session, each in documents_by_session(all_published) if session not in late_sessions
    )
    document_ids = Counter(each.get("event_id") or each["id"] for each in all_published)
    wanted = Counter(map(_text, ordered(expected)))
    all_results = [row.document for row in rows["results"]]
    results = [each for each in all_results if each["session_id"] not in late_sessions]
    scores, wanted_scores = _last_scores(results), _last_scores(asyncio.run(scores_without_kafka(expected)))
    ids = Counter((each["result_id"], each["revision"], each["attempt"]) for each in all_results)
    counts = committed.counts()["collect"]
    equations = {
        "published = traces + reopened": (counts["published"], counts["traces"] + counts["reopened"]),
        "traces as sent": (counts["traces"], len(ledger.traces)),
        "spans and logs as sent": (counts["spans"] + counts["logs"], ledger.sent["joined"]),
        "consumed = requests + forwarded": (counts["consumed"], sum(len(rows[topic]) for topic in SPAN_INPUTS)),
    }
    found: claims.Faults = {
        claims.LOST: {
            "every_document_is_published": [f"lost: {text}" for text in (wanted - published).elements()],
            "every_score_is_there": [f"no score: {key}" for key in wanted_scores.keys() - scores.keys()],
        },
        claims.DOUBLED: {
            "no_other_document_is_published": [f"not expected: {text}" for text in (published - wanted).elements()],
            "no_document_is_doubled": [f"{name} is there {n} times" for name, n in document_ids.items() if n > 1],
            "no_result_is_doubled": [f"result {key} is there {n} times" for key, n in ids.items() if n > 1],
            "nothing_is_a_dead_letter": [f"dead letter: {row.headers}" for row in rows["dead-letters"]],
        },
        claims.WRONG: {"sessions_are_complete": list(_wrong_sessions(expected, committed, late_sessions))},
        claims.DIFFERENT: {
            "scores_equal_those_of_the_documents": [
                f"score {key}: {scores[key]} != {wanted_scores.get(key)}"
                for key in scores
                if scores[key] != wanted_scores.get(key)
            ]
        },
        claims.UNCOUNTED: {
            "counters_add_up": [f"{name}: {one}, {other}" for name, (one, other) in equations.items() if one != other],
            "nothing_is_left_unread": committed.unread(),
        },
    }
    held = {heading: {claim: each for claim, each in group.items() if each} for heading, group in found.items()}
    return {heading: group for heading, group in held.items() if group}


async def scores_without_kafka(documents: Iterable[Document]) -> list[Document]:
    """Returns the scores of documents that are joined, scored and gated in this process."""
    flow = Flow(read_plan(CONFIG), embedder=HashingEmbedder(), partitions=PARTITIONS)
    flow.pass_time(10 * 365 * 86_400)  # after the times of all documents
    for session, document in documents_by_session(list(documents)):
        topic = flow.topics.invocations if "session_id" in document else flow.topics.traces
        key = session.encode()
        flow.send(topic, document, key, partition=partition_of(key, PARTITIONS))
    await flow.finish()
    return flow.results()


def _wrong_sessions(expected: list[Document], committed: Committed, without: Collection[str]) -> Iterable[str]:
    """Yields a sentence for each session whose last revision does not hold exactly its documents."""
    wanted: dict[str, set[str]] = {}
    for session, document in documents_by_session(expected):
        wanted.setdefault(session, set()).add(document.get("event_id") or document["id"])
    last: dict[str, Document] = {}
    for each in committed.sessions():
        if each["session_id"] in without:
            continue
        if each["segment"]:
            yield f"{each['session_id']} has the segment {each['segment']}"
        before = last.setdefault(each["session_id"], each)
        if each["revision"] > before["revision"]:
            last[each["session_id"]] = each
    held: Mapping[str, set[str]] = {
        name: {event["event_id"] for event in each["events"]} | {trace["id"] for trace in each["traces"]}
        for name, each in last.items()
    }
    for name in wanted.keys() | held.keys():
        if (has := held.get(name, set())) != (needs := wanted.get(name, set())):
            yield f"{name}: lacks {sorted(needs - has)}, has also {sorted(has - needs)}"


def _last_scores(results: Iterable[Document]) -> dict[str, str]:
    """Returns the last score of each id without the fields that depend on time and on the order of other sessions."""
    last: dict[str, Document] = {}
    for each in sorted(results, key=lambda each: (int(each["revision"]), int(each["attempt"]))):
        if each["metric"] != "gate":
            last[each["result_id"]] = each
    return {key: _text(comparable(each, has_time=False)) for key, each in last.items()}


def trace_of(document: Document) -> str:
    """Returns the id of the trace from which a document was read; its id contains the trace's."""
    found = re.search("[0-9a-f]{32}", document.get("event_id") or document["id"])
    return found.group() if found else ""


def _text(document: Document) -> str:
    return json.dumps(document, sort_keys=True)
