"""Claims about replays of dead letters: each record comes back once, and only with a mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tests.audit import claims
from tests.audit.committed import CONFIGS, CommittedRecords, Row
from tests.audit.evidence import Claim, Evidence, replay_mark
from tests.support.ledger import PARTITIONS, Ledger, Refused, canonical, home, home_of_refused

BY_TIME = {"late", "future_timestamp"}
"""Reasons that a record no longer has when it is replayed, because its timestamp is that of the replay."""


def account(ledger: Ledger, committed: CommittedRecords) -> None:
    """Adds what must come of the replayed records to the ledger: the same dead letter again, or an event of a session."""
    reasons = {
        f"{row.partition}:{row.offset}": dict(row.headers)["traceweir.reason"].decode()
        for row in committed.rows["dead-letters"]
        if replay_mark(row) is None
    }
    for topic, row, letter in _replayed(committed):
        reason = reasons[letter]
        if reason not in BY_TIME:
            refused = Refused(topic, row.key, row.value or b"", reason)
            ledger.refused.append(refused)
            ledger.sent["forwarded"] += row.partition % PARTITIONS != home_of_refused(row.partition, refused)
            continue
        session = str(row.document["session_id"])
        if session in ledger.events:
            ledger.sent["duplicate"] += 1
        else:
            ledger.events[session] = {canonical(row.document)}
            ledger.sent["joined"] += 1
        ledger.sent["forwarded"] += row.partition % PARTITIONS != home(session)


def each_letter_is_replayed_once(e: Evidence) -> Iterator[str]:
    """No dead letter is sent twice, and a dead letter is marked if and only if it was sent."""
    sent = Counter(letter for _, _, letter in _replayed(e.committed))
    marks = Counter(mark for row in e.rows["dead-letters"] if (mark := replay_mark(row)) is not None)
    yield from (f"dead letter {letter} is replayed {times} times" for letter, times in sent.items() if times > 1)
    yield from (f"dead letter {letter} is marked {times} times" for letter, times in marks.items() if times > 1)
    yield from (f"dead letter {letter} is replayed without a mark" for letter in sent.keys() - marks.keys())
    yield from (f"dead letter {letter} is marked and was not replayed" for letter in marks.keys() - sent.keys())


def the_last_replay_leaves_none(e: Evidence) -> Iterator[str]:
    """Each dead letter that was there at the last replay is marked; the replayed records can become new ones."""
    marks = {mark for row in e.rows["dead-letters"] if (mark := replay_mark(row)) is not None}
    for letter in e.letters:
        name = f"{letter.row.partition}:{letter.row.offset}"
        if letter.topic == CONFIGS:
            continue  # `traceweir config push` writes that topic
        if name not in marks and not any(header == "traceweir.replay" for header, _ in letter.row.headers):
            yield f"dead letter {name} ({letter.reason}) was not replayed"


def _replayed(committed: CommittedRecords) -> Iterator[tuple[str, Row, str]]:
    """Yields the topic, the record and the dead letter of each record that a replay has sent."""
    for topic in ("traces", "invocations"):
        for row in committed.rows[topic]:
            for name, content in row.headers:
                if name == "traceweir.replay":
                    yield topic, row, content.decode()


CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    claims.DOUBLED: (each_letter_is_replayed_once,),
    claims.LOST: (the_last_replay_leaves_none,),
}
"""Claims that hold on Apache Kafka if a last replay succeeded."""
