"""Runs one round whose input are OTLP requests, and compares the outputs with those of a reading without Kafka."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from pydantic import JsonValue
from tests.audit import claims
from tests.audit.committed import SPAN_INPUTS, Committed, Document
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


def play_spans(
    scenario: Scenario,
    bootstrap_servers: str,
    cluster: KafkaCluster | None,
    folder: Path,
    report_phase: Callable[[str], object] = lambda phase: None,
) -> Outcome:
    """Runs a round on its own topics, which are deleted afterwards. The arguments are those of `round.play`."""
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
        committed = stack.enter_context(Committed(bootstrap_servers, prefix, *applications, spans=True))
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
        found = faults(ledger, committed)
        return Outcome(
            scenario=scenario,
            faults=crew.counters,
            ends=crew.ends,
            sent=Counter({**ledger.sent, "records": load.sent}),
            dead_lettered=len(committed.rows["dead-letters"]),
            committed={topic: len(rows) for topic, rows in committed.rows.items()},
            found=found,
            longest_pause_s=pause_s,
            state_bytes=state_bytes,
            took_s=time.monotonic() - started,
        )


def faults(ledger: SpanLedger, committed: Committed) -> claims.Faults:
    """Returns a sentence for each difference to the reading without Kafka, by heading and claim."""
    rows = committed.rows
    expected = ledger.documents()
    published = Counter(_text(row.document) for topic in ("invocations", "traces") for row in rows[topic])
    wanted = Counter(map(_text, ordered(expected)))
    results = [row.document for row in rows["results"]]
    scores, wanted_scores = _last_scores(results), _last_scores(asyncio.run(scores_without_kafka(expected)))
    ids = Counter((each["result_id"], each["revision"], each["attempt"]) for each in results)
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
            "no_result_is_doubled": [f"result {key} is there {n} times" for key, n in ids.items() if n > 1],
            "nothing_is_a_dead_letter": [f"dead letter: {row.headers}" for row in rows["dead-letters"]],
        },
        claims.WRONG: {"sessions_are_complete": list(_wrong_sessions(expected, committed))},
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


def _wrong_sessions(expected: list[Document], committed: Committed) -> Iterable[str]:
    """Yields a sentence for each session whose last revision does not hold exactly its documents."""
    wanted: dict[str, set[str]] = {}
    for session, document in documents_by_session(expected):
        wanted.setdefault(session, set()).add(document.get("event_id") or document["id"])
    last: dict[str, Document] = {}
    for each in committed.sessions():
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


def _text(document: Document) -> str:
    return json.dumps(document, sort_keys=True)
