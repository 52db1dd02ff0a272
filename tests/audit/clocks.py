"""What must come of the records if clocks of workers are wrong by hours: a verdict by time is replayed, and undone by that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from tests.audit import claims
from tests.audit.committed import CommittedRecords, Row
from tests.audit.evidence import Claim, Evidence, Letter, letter_of, replay_mark
from tests.audit.replays import BY_TIME
from tests.audit.sessions import life_of
from tests.support.ledger import PARTITIONS, Ledger, Refused, canonical, home, home_of_refused

from traceweir.streams.pipeline.assemble.refusals import REFUSED_SESSION

INPUTS = ("traces", "invocations", "strays")


def account(ledger: Ledger, committed: CommittedRecords) -> None:
    """Replaces what the ledger says of dead letters and of counts by what the inputs make necessary.

    A record that no stage can use is a dead letter for its own reason, or because its timestamp was in the future of a
    worker whose clock was behind; its replay is judged anew. Any other record can be a dead letter by time, and is
    joined, a duplicate or forwarded otherwise. The ledger cannot know which: that depends on the clock that a worker had.
    """
    unusable = {(each.topic, each.value): each.reason for each in ledger.refused if each.reason not in BY_TIME}
    verdicts = {
        (each.topic, each.partition, each.offset): each.reason for each in _letters(committed.rows["dead-letters"])
    }
    ledger.refused = []
    ledger.sent["forwarded"] = accepted = 0
    records = set()
    for topic in INPUTS:
        for row in committed.rows[topic]:
            if REFUSED_SESSION in dict(row.headers):
                continue
            verdict, value = verdicts.get((topic, row.partition, row.offset)), row.value or b""
            reason = unusable.get((topic, value))
            if reason is not None:
                found = verdict if verdict == "future_timestamp" else reason
                _refuse(ledger, Refused(topic, row.key, value, found), row.partition)
                continue
            if verdict in BY_TIME:
                _refuse(ledger, Refused(topic, row.key, value, verdict), row.partition)
                continue
            session = _session_of(ledger, row)
            if topic != "strays" and row.partition % PARTITIONS != home(session):
                ledger.sent["forwarded"] += 1
                continue
            accepted += 1
            if session not in ledger.events:  # a record that was to be refused by its time, which counts at most once
                ledger.events[session] = {canonical(row.document)}
            records.add((session, canonical(row.document), dict(row.headers).get("ce_id")))
    # A worker whose clock was ahead has forgotten sessions, which begin again with the next copy of a record.
    begun_again = max(0, committed.counts()["assemble"]["joined"] - len(records)) if _set_backs(committed) else 0
    ledger.sent["joined"] = len(records) + begun_again
    ledger.sent["duplicate"] = accepted - ledger.sent["joined"]


def no_right_clock_refuses_a_record(committed: CommittedRecords, before: int) -> Iterator[str]:
    """After all clocks are right and all watermarks too, no replayed record is a dead letter by its time again.

    Args:
        committed: What was committed.
        before: Number of records in `dead-letters` before the last replay.
    """
    for letter in _letters(committed.rows["dead-letters"][before:]):
        if letter.reason in BY_TIME:
            yield f"{letter.topic} {letter.partition}:{letter.offset} is {letter.reason}: {letter.detail}"


def a_session_begins_again_only_where_it_was_forgotten(e: Evidence) -> Iterator[str]:
    """A life of a session after the first one needs a partition whose watermark was set back as often."""
    set_backs = _set_backs(e.committed)
    for name, segment in e.last:
        if life_of(segment) > set_backs.get(home(name), 0):
            yield f"session {name} has the segment {segment}; its partition was set back {set_backs.get(home(name), 0)} times"


def _set_backs(committed: CommittedRecords) -> Mapping[int, int]:
    """Returns how often the watermark of each partition was set back, without those that never were."""
    rows = committed.last_rows(b"assemble/w")
    found: dict[int, int] = defaultdict(int)
    for (partition, _), value in rows.items():
        found[partition] += Row(partition, 0, None, value, [], 0).document.get("set_backs", 0)
    return {partition: times for partition, times in found.items() if times}


def _session_of(ledger: Ledger, row: Row) -> str:
    document = row.document
    return str(document["session_id"]) if "session_id" in document else ledger.session_of[document["id"]]


def _refuse(ledger: Ledger, record: Refused, partition: int) -> None:
    ledger.refused.append(record)
    ledger.sent["forwarded"] += partition % PARTITIONS != home_of_refused(partition, record)


def _letters(rows: Collection[Row]) -> Iterator[Letter]:
    return (letter_of(row) for row in rows if replay_mark(row) is None)


CLAIMS: Mapping[str, tuple[Claim, ...]] = {claims.DOUBLED: (a_session_begins_again_only_where_it_was_forgotten,)}
"""Claims that hold if clocks of workers were wrong."""
