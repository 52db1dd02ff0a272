"""Sends the same records to one worker without faults, and compares the scores of the two runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from confluent_kafka import Producer
from tests.audit.committed import CommittedRecords, Document
from tests.audit.comparable import comparable
from tests.support.ledger import Ledger

from traceweir.streams.worker.kafka.client_options import IDEMPOTENT


def copy_inputs(committed: CommittedRecords, bootstrap_servers: str, prefix: str) -> int:
    """Copies the agents' records to the topics under another prefix; returns their number.

    Bytes, timestamps, partitions and order stay the same.
    """
    producer = Producer({**IDEMPOTENT, "bootstrap.servers": bootstrap_servers, "linger.ms": 5})
    count = 0
    for topic in ("traces", "invocations"):
        for row in committed.rows[topic]:
            producer.produce(
                prefix + topic, row.value, row.key, row.partition, timestamp=row.timestamp, headers=row.headers
            )
            producer.poll(0)
            count += 1
    if left := producer.flush(60):
        raise RuntimeError(f"{left} of {count} records could not be copied")
    return count


def differences(
    ledger: Ledger, disturbed: CommittedRecords, undisturbed: CommittedRecords, *, without: Collection[str]
) -> Iterator[str]:
    """Returns one sentence for each score whose last revision differs, or that only one of the two runs has.

    A killed node can delay the event of an earlier segment until the event joins the later segment (see
    `records_are_in_their_segment`); in order this event is its own segment. Such sessions are left out, and those of
    `without`.
    """
    late, in_order = _segments(disturbed), _segments(undisturbed)
    held_up = {name for name in ledger.before if {late.get(name), in_order.get(name)} == {0, 1}}
    left_out = held_up.union(without)
    ours, theirs = _last(ledger, disturbed, left_out), _last(ledger, undisturbed, left_out)
    for result_id in {**ours, **theirs}:
        one, other = ours.get(result_id), theirs.get(result_id)
        if one != other:
            yield f"score {result_id}: {_unlike(one, other)}"


def _segments(committed: CommittedRecords) -> Mapping[str, int]:
    """Returns the number of the last segment, by session."""
    last: dict[str, int] = {}
    for row in committed.rows["sessions"]:
        each = row.document
        last[each["session_id"]] = max(last.get(each["session_id"], 0), each["segment"])
    return last


def _last(ledger: Ledger, committed: CommittedRecords, without: Collection[str]) -> Mapping[str, Document]:
    """Returns the scores of the last revision of each segment, by id.

    For a trace's value this is the last score, because the last revision can leave the trace unchanged.

    Scores that only an earlier revision has are left out: a revision with a trace and without events has a score for
    the invocation that is derived from the trace.
    """
    found = [
        each
        for each in (row.document for row in committed.rows["results"])
        if each["metric"] != "gate" and each["session_id"] in ledger.events and each["session_id"] not in without
    ]
    revisions: dict[tuple[str, int], int] = {}
    for each in found:
        place = each["session_id"], each["segment"]
        revisions[place] = max(revisions.get(place, 0), each["revision"])
    last: dict[str, Document] = {}
    for each in sorted(found, key=lambda each: (int(each["revision"]), int(each["attempt"]))):
        if each["level"] == "trace" or each["revision"] == revisions[each["session_id"], each["segment"]]:
            last[each["result_id"]] = each
    return {
        result_id: comparable(each, has_time=each["session_id"] not in ledger.doubled)
        for result_id, each in last.items()
    }


def _unlike(one: Document | None, other: Document | None) -> str:
    if one is None or other is None:
        there: Any = one or other
        return f"only {'undisturbed' if one is None else 'disturbed'}: {there['session_id']}, {there['metric']}"
    names = [name for name in one if one[name] != other.get(name)]
    return f"{one['session_id']}, {one['metric']}: " + "; ".join(
        f"{name} is {one[name]!r} disturbed, {other.get(name)!r} undisturbed" for name in names
    )
