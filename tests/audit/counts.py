"""Claims about counts, dead letters and forwarded records: no record disappears."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.audit.committed import STAGES
from tests.audit.evidence import Evidence, accepted
from tests.support.ledger import Refused, home_of_refused


def garbage_is_a_dead_letter(e: Evidence) -> Iterator[str]:
    """Each unusable record becomes a dead letter, unchanged, and so does each session that cannot be scored."""
    expected, found = _expected_letters(e), _found_letters(e)
    yield from (f"no dead letter: {record}" for record in (expected - found).elements())


def nothing_else_is_a_dead_letter(e: Evidence) -> Iterator[str]:
    """Each dead letter is written once, by the worker of its record's partition, or by that of its session's home."""
    expected, found = _expected_letters(e), _found_letters(e)
    yield from (f"unexpected dead letter: {record}" for record in (found - expected).elements())
    for letter in e.letters:
        record = Refused(letter.topic, letter.row.key, letter.row.value or b"", letter.reason)
        if home_of_refused(letter.partition, record) != letter.row.partition or not letter.detail:
            yield f"dead letter {letter} in partition {letter.row.partition}"


def strays_were_forwarded_once(e: Evidence) -> Iterator[str]:
    """As many records, and dead letters of them, are forwarded as were sent to a wrong partition."""
    if len(e.rows["strays"]) != e.ledger.sent["forwarded"]:
        yield f"{len(e.rows['strays'])} strays, {e.ledger.sent['forwarded']} sent to a wrong partition"


def coverage_adds_up(e: Evidence) -> Iterator[str]:
    """The coverage equations hold over all partitions when no record is in flight."""
    counts, sent, rows = e.committed.counts(), e.ledger.sent, e.rows
    assemble, score, gate = (counts[stage] for stage in STAGES)
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
        "dead-lettered as sent": (_dead(assemble), len(e.ledger.refused)),
        "opened + reopened = closed": (assemble["opened"] + assemble["reopened"], assemble["closed"]),
        "opened = segments": (assemble["opened"], len(e.last)),
        "closed = sessions": (assemble["closed"], len(rows["sessions"])),
        "closed = scored + superseded + dead-lettered": (
            assemble["closed"],
            score["scored"] + score["superseded"] + _dead(score),
        ),
        "superseded = unanswered": (score["superseded"], len(e.superseded)),
        "dead-lettered = poisonous": (
            _dead(score),
            sum(e.poisonous(each.place[0]) and each.version not in e.superseded for each in e.sessions),
        ),
        "no candidate dead-lettered": (_dead(gate), 0),
        "scores = results but those of the gate": (
            sum(number for name, number in score.items() if name.startswith("scores.")),
            sum(found["level"] != "trace" for found in e.results),
        ),
        "candidates + unchanged = traces of the revisions": (
            score["candidates"] + score["unchanged"],
            sum(len(each.document["traces"]) * e.attempts(each.version) for each in e.scored()),
        ),
        "retried = later attempts": (score["retried"], sum(e.attempts(each.version) - 1 for each in e.scored())),
        "candidates = sent": (score["candidates"], len(rows["candidates"])),
        "candidates = seen": (score["candidates"], gate["consumed"]),
        "seen = accepted + rejected": (gate["consumed"], gate["accepted"] + gate["rejected"]),
        "accepted as decided": (
            gate["accepted"],
            sum(accepted(found) for found in e.results if found["metric"] == "gate"),
        ),
    }
    yield from (f"{name}: {left}, {right}" for name, (left, right) in equations.items() if left != right)


def nothing_is_left_unread(e: Evidence) -> Iterator[str]:
    """The groups' offsets are at the end of their inputs."""
    yield from e.committed.unread()


def _expected_letters(e: Evidence) -> Counter[tuple[str, bytes | None, bytes, str]]:
    expected = Counter((topic, key, value, reason) for topic, key, value, reason in e.ledger.refused)
    for each in e.sessions:
        if e.poisonous(each.place[0]):
            expected["sessions", each.row.key, each.row.value or b"", "poison"] += 1
    expected.update(("configs", key, value or b"", "invalid") for key, value in e.refused_configs)
    return expected


def _found_letters(e: Evidence) -> Counter[tuple[str, bytes | None, bytes, str]]:
    return Counter((letter.topic, letter.row.key, letter.row.value or b"", letter.reason) for letter in e.letters)


def _dead(counted: Counter[str]) -> int:
    return sum(number for name, number in counted.items() if name.startswith("dead_lettered."))
