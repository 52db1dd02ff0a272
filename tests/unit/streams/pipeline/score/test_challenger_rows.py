"""The sessions that wait for a challenger, and what challengers have cost, take a limited amount of memory and of rows."""

from __future__ import annotations

import msgspec
import pytest

from traceweir.streams.pipeline.score import challenger_rows
from traceweir.streams.pipeline.score.challenger_rows import ChallengerRows, HeldBytes
from traceweir.streams.scoring.judges.budget import Paid
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.testing import Message


def note(rows: ChallengerRows, session: bytes, revision: int = 0, size: int = 4) -> bytes:
    """Lets a session of this size wait; returns its row key."""
    record = Message("sessions", 0, revision, 0, session, bytes(size))
    rows.note(record, ScoringResult(0, revision, 0, 0, [], [], {}, challenger="v2"))
    return next(row_key for row_key in rows.take_ready() if row_key[1:].startswith(session))


def test_sessions_beyond_the_bytes_of_a_process_wait_without_their_record() -> None:
    held_bytes = HeldBytes(10)
    first, second = ChallengerRows(held_bytes), ChallengerRows(held_bytes)
    keys = {session: note(rows, session) for session, rows in ((b"a", first), (b"b", second), (b"c", second))}
    assert first.held(keys[b"a"]) is not None
    assert second.held(keys[b"b"]) is not None
    assert (second.held(keys[b"c"]), len(second)) == (None, 2)


def test_a_session_that_ends_or_is_superseded_and_a_partition_that_moves_away_make_room() -> None:
    held_bytes = HeldBytes(10)
    rows = ChallengerRows(held_bytes)
    a, b = note(rows, b"a", size=10), note(rows, b"b", size=10)
    assert rows.held(b) is None
    rows.end(a)
    note(rows, b"b", revision=1, size=10)
    note(rows, b"b", revision=2, size=10)
    assert rows.held(b) is not None
    rows.forget_records()
    assert (rows.held(b), len(rows), held_bytes.take(11), held_bytes.take(10)) == (None, 1, False, True)


def test_the_challengers_that_have_paid_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(challenger_rows, "MAX_PAYERS", 2)
    rows = ChallengerRows(HeldBytes())
    for challenger in ("a", "b", "a", "c"):
        rows.pay(challenger, [Paid(1, 1, 0.5)])
    assert rows.paid() == [("a", [Paid(1, 2, 1.0)]), ("c", [Paid(1, 1, 0.5)])]
    restored = ChallengerRows(HeldBytes())
    restored.load({row_key: row for row_key, row in rows.rows() if row is not None})
    assert restored.paid() == rows.paid()


def test_the_cost_of_a_challenger_by_app_is_restored_and_without_apps_written_as_before() -> None:
    rows = ChallengerRows(HeldBytes())
    rows.pay("a", [Paid(1, 1, 0.5)])
    (before,) = dict(rows.rows()).values()
    rows.pay("a", [Paid(1, 1, 0.5), Paid(1, 1, 0.5, "apps.rail")])
    table = dict(rows.rows())

    restored = ChallengerRows(HeldBytes())
    restored.load({key: row for key, row in table.items() if row is not None})

    assert before == b"\x01" + msgspec.msgpack.encode([("a", [(1, 1, 0.5)])])
    assert restored.paid() == rows.paid() == [("a", [Paid(1, 2, 1.0), Paid(1, 1, 0.5, "apps.rail")])]
