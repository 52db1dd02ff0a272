"""Compares the committed records of a load of spans with a reading of the same requests without Kafka."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from pydantic import JsonValue
from tests.audit import claims
from tests.audit.committed import CHANGELOG, SPAN_INPUTS, CommittedRecords, Document
from tests.audit.comparable import comparable
from tests.audit.evidence import letter_of
from tests.support.collect import ordered
from tests.support.late_spans import turns
from tests.support.ledger import PARTITIONS
from tests.support.span_ledger import SpanLedger, documents_by_session

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.pipeline.collect.span_rows import HEADER_KEY, TraceHeader
from traceweir.streams.testing import Flow

CONFIG: dict[str, JsonValue] = {
    "criteria": {"tool_call_count_v1": {}, "inference_call_count_v1": {}, "completeness": 0.5}
}


def late_traces(committed: CommittedRecords) -> set[str]:
    """Returns the ids of the traces that were published several times, because spans came after a publication."""
    found = set()
    begin = b"collect/" + HEADER_KEY
    for row in committed.rows[CHANGELOG]:
        if row.value and row.key and row.key.startswith(begin) and TraceHeader.unpack(row.value).publications > 1:
            found.add(row.key.removeprefix(begin).hex())
    return found


def faults(ledger: SpanLedger, committed: CommittedRecords, late: Collection[str]) -> claims.Faults:
    """Returns a sentence for each difference to the reading without Kafka, by heading and claim.

    The documents of `late` traces depend on the spans that had come at their publication. Of these traces, no document
    may be there twice, and the events that count in the end tell what the reading without Kafka tells; the other claims
    leave their sessions out.
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
    document_ids = Counter(  # a reasoning trace that late spans have changed is there under its id again
        each.get("event_id") or (_text(each) if trace_of(each) in late else each["id"]) for each in all_published
    )
    wanted = Counter(map(_text, ordered(expected)))
    all_results = [row.document for row in rows["results"]]
    results = [each for each in all_results if each["session_id"] not in late_sessions]
    scores, wanted_scores = _last_scores(results), _last_scores(asyncio.run(scores_without_kafka(expected)))
    ids = Counter((each["result_id"], each["revision"], each["attempt"]) for each in all_results)
    letters = Counter(
        (each.topic, each.row.key, each.row.value or b"", each.reason) for each in map(letter_of, rows["dead-letters"])
    )
    refused = Counter((each.topic, each.key, each.value, each.reason) for each in ledger.refused)
    counts = committed.counts()["collect"]
    equations = {
        "published = traces + reopened": (counts["published"], counts["traces"] + counts["reopened"]),
        "traces as sent": (counts["traces"], len(ledger.traces)),
        "spans and logs as sent": (counts["spans"] + counts["logs"], ledger.sent["joined"]),
        "dead-lettered as sent": (
            sum(number for name, number in counts.items() if name.startswith("dead_lettered.")),
            len(ledger.refused),
        ),
        "consumed = requests + forwarded": (counts["consumed"], sum(len(rows[topic]) for topic in SPAN_INPUTS)),
    }
    found: claims.Faults = {
        claims.LOST: {
            "every_document_is_published": [f"lost: {text}" for text in (wanted - published).elements()],
            "every_refused_record_is_a_dead_letter": [f"no letter: {each}" for each in (refused - letters).elements()],
            "every_score_is_there": [f"no score: {key}" for key in wanted_scores.keys() - scores.keys()],
        },
        claims.DOUBLED: {
            "no_other_document_is_published": [f"not expected: {text}" for text in (published - wanted).elements()],
            "no_document_is_doubled": [f"{name} is there {n} times" for name, n in document_ids.items() if n > 1],
            "no_result_is_doubled": [f"result {key} is there {n} times" for key, n in ids.items() if n > 1],
            "nothing_else_is_a_dead_letter": [f"dead letter: {each}" for each in (letters - refused).elements()],
        },
        claims.WRONG: {
            "sessions_are_complete": list(_wrong_sessions(expected, committed, late_sessions)),
            "late_spans_give_what_all_spans_give": [
                f"trace {name}: {one} != {other}"
                for name in late
                if (one := _invocations(name, all_published)) != (other := _invocations(name, all_expected))
            ],
        },
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


def _invocations(trace: str, documents: Iterable[Document]) -> list[str]:
    """Returns the invocations of a trace by the events that count, in whatever session they are."""
    events = [each for each in documents if "event_id" in each and trace_of(each) == trace]
    return sorted(str(turn.invocation) for found in turns(events).values() for turn in found)


def _wrong_sessions(expected: list[Document], committed: CommittedRecords, without: Collection[str]) -> Iterable[str]:
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
