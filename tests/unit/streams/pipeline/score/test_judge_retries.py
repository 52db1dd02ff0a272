"""Tests sessions that wait for a judge: when a retry is due, and how rows of version 1 are read."""

from __future__ import annotations

import pytest

from traceweir.schemas.judge_config import RetryLater
from traceweir.streams.pipeline.score.judge_retries import AT_ONCE, PAUSE_S, JudgeRetries, PendingRetry
from traceweir.streams.pipeline.score.session_header import segment_of, session_of
from traceweir.streams.scoring.sessions.result import ScoringResult

NOW_S = 1_767_225_600
LAST_RECORD_MS = 1_767_225_500_000
CONFIG = RetryLater(after_s=900, attempts=3)
VERSION_1 = {
    b"ra" + bytes(4): bytes.fromhex("019502cf0000019b76d92160909407cf0000019b76e863a00203cf0000019b76d92160"),
    b"rb" + bytes((0, 0, 0, 1)): bytes.fromhex("019500cf0000019b76d921609100c0cf0000019b76d92160"),
    b"rc" + bytes((0, 0, 0, 1)): bytes.fromhex(
        "019500cf0000019b76d9216091009409cf0000019b76f7a5e00102cf0000019b76d92160"
    ),
}
"""A session that waits, a session that was retried successfully, and a session that waits after a successful retry."""


def retries(config: RetryLater | None = CONFIG) -> JudgeRetries:
    found = JudgeRetries(config)
    found.take_due(NOW_S)
    return found


def result(revision: int = 0, unanswered: int = 1) -> ScoringResult:
    return ScoringResult(0, revision, 0, LAST_RECORD_MS, [], [], {}, unanswered=unanswered)


def restarted(before: JudgeRetries) -> JudgeRetries:
    after = JudgeRetries(CONFIG)
    after.load({key: row for key, row in before.rows() if row is not None})
    return after


def test_a_retry_is_due_once_after_its_time_also_after_a_restart() -> None:
    before = retries()
    assert before.note(b"s", 7, result(revision=2))
    for each in (before, restarted(before)):
        assert each.take_due(NOW_S + 899) == []
        [row_key] = each.take_due(NOW_S + 900)
        assert (session_of(row_key), segment_of(row_key)) == (b"s", 0)
        assert each.get(row_key) == PendingRetry(7, 2, 0, LAST_RECORD_MS, (NOW_S + 900) * 1000, 1, 3)
        assert each.take_due(NOW_S + 10_000) == []


def test_a_retry_that_a_fast_clock_has_planned_waits_for_the_interval_only() -> None:
    before = retries()
    before.take_due(NOW_S + 7_200)
    before.note(b"s", 7, result())
    after = restarted(before)
    assert after.take_due(NOW_S) == []
    assert after.take_due(NOW_S + 899) == []
    again = restarted(after)
    assert len(again.take_due(NOW_S + 900)) == len(after.take_due(NOW_S + 900)) == 1


def test_each_retry_uses_an_attempt_until_none_is_left_and_published_retries_count() -> None:
    waiting = retries()
    waiting.note(b"s", 7, result(unanswered=5))
    found = []
    for number, published in enumerate((True, False, True), start=1):
        [row_key] = waiting.take_due(NOW_S + 900 * number)
        waiting.retried(row_key, 4, published=published)
        found.append(waiting.get(row_key))
    assert [each and (each.attempt, each.left) for each in found] == [(1, 2), (1, 1), None]
    assert waiting.rows() == [(row_key, None)]


def test_a_retry_that_could_not_start_is_due_again_after_a_pause() -> None:
    waiting = retries()
    waiting.note(b"s", 7, result())
    [row_key] = waiting.take_due(NOW_S + 900)
    waiting.put_back(row_key)
    assert waiting.take_due(NOW_S + 900 + PAUSE_S - 1) == []
    assert waiting.take_due(NOW_S + 900 + PAUSE_S) == [row_key]
    waiting.note(b"s", 8, result(revision=1))
    waiting.put_back(row_key)
    assert waiting.take_due(NOW_S + 900 + PAUSE_S + 899) == []
    assert waiting.take_due(NOW_S + 900 + PAUSE_S + 900) == [row_key]


def test_the_number_of_concurrent_retries_is_limited() -> None:
    waiting = retries()
    for number in range(AT_ONCE + 1):
        waiting.note(b"%d" % number, number, result())
    taken = waiting.take_due(NOW_S + 900)
    assert (len(taken), waiting.take_due(NOW_S + 900)) == (AT_ONCE, [])
    waiting.give_up(taken[0])
    assert len(waiting.take_due(NOW_S + 900)) == 1


def test_a_restart_keeps_the_order_in_which_sessions_were_added() -> None:
    config = RetryLater(after_s=900, max_sessions=2)
    before = JudgeRetries(config)
    before.note(b"z", 1, result())
    before.note(b"a", 2, result())
    after = JudgeRetries(config)
    after.load(dict(sorted((key, row) for key, row in before.rows() if row is not None)))
    after.note(b"m", 3, result())
    assert after.get(b"rz" + bytes(4)) is None
    assert after.get(b"ra" + bytes(4)) is not None


def test_waiting_rows_of_version_1_are_retried_unless_a_retry_has_its_own_revision() -> None:
    waiting = retries()
    waiting.load(VERSION_1)
    assert waiting.take_due(NOW_S + 10_000) == [b"ra" + bytes(4)]
    assert waiting.get(b"ra" + bytes(4)) == PendingRetry(7, 2, 0, LAST_RECORD_MS, (NOW_S + 900) * 1000, 2, 3)
    assert sorted(waiting.rows()) == [(key, None) for key in list(VERSION_1)[1:]]


def test_without_a_config_every_row_is_deleted() -> None:
    before = retries()
    before.note(b"s", 7, result())
    rows = {key: row for key, row in before.rows() if row is not None}
    after = retries(None)
    after.load(rows)
    assert (after.rows(), after.take_due(NOW_S + 10_000)) == ([(key, None) for key in rows], [])


def test_a_row_of_a_later_version_is_refused() -> None:
    with pytest.raises(ValueError, match="has the format 3; this version reads the formats 1 and 2"):
        retries().load({b"rs" + bytes(4): b"\x03"})
