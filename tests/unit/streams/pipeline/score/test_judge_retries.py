"""Tests sessions that wait for a judge: when a retry is due, and how rows of version 1 are read."""

from __future__ import annotations

import msgspec
import pytest

from traceweir.schemas.judge_config import RetryLater
from traceweir.streams.pipeline.score.judge_retries import AT_ONCE, MAX_SETTLING, PAUSE_S, JudgeRetries
from traceweir.streams.pipeline.score.pending_retry import PendingRetry
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
    found.take_due(NOW_S, 0)
    return found


def result(revision: int = 0, unanswered: int = 1) -> ScoringResult:
    return ScoringResult(0, revision, 0, LAST_RECORD_MS, [], [], {}, unanswered=unanswered)


def restarted(before: JudgeRetries) -> JudgeRetries:
    after = JudgeRetries(CONFIG)
    after.load({key: row for key, row in before.rows() if row is not None})
    return after


def test_a_retry_is_due_once_after_its_time_also_after_a_restart() -> None:
    before = retries()
    assert before.note(b"s", 7, LAST_RECORD_MS, result(revision=2))
    for each in (before, restarted(before)):
        assert each.take_due(NOW_S + 899, 0) == []
        [row_key] = each.take_due(NOW_S + 900, 0)
        assert (session_of(row_key), segment_of(row_key)) == (b"s", 0)
        assert each.get(row_key) == PendingRetry(7, 2, 0, LAST_RECORD_MS, (NOW_S + 900) * 1000, 1, 3)
        assert each.take_due(NOW_S + 10_000, 0) == []


def test_a_retry_that_a_fast_clock_has_planned_waits_for_the_interval_only() -> None:
    before = retries()
    before.take_due(NOW_S + 7_200, 0)
    before.note(b"s", 7, LAST_RECORD_MS, result())
    after = restarted(before)
    assert after.take_due(NOW_S, 0) == []
    assert after.take_due(NOW_S + 899, 0) == []
    again = restarted(after)
    assert len(again.take_due(NOW_S + 900, 0)) == len(after.take_due(NOW_S + 900, 0)) == 1


def test_each_retry_uses_an_attempt_until_none_is_left_and_published_retries_count() -> None:
    waiting = retries()
    waiting.note(b"s", 7, LAST_RECORD_MS, result(unanswered=5))
    found = []
    for number, published in enumerate((True, False, True), start=1):
        [row_key] = waiting.take_due(NOW_S + 900 * number, 0)
        waiting.retried(row_key, 4, published=published)
        found.append(waiting.get(row_key))
    assert [each and (each.attempt, each.left) for each in found] == [(1, 2), (1, 1), None]
    assert waiting.rows() == [(row_key, None)]


def test_a_retry_that_could_not_start_is_due_again_after_a_pause() -> None:
    waiting = retries()
    waiting.note(b"s", 7, LAST_RECORD_MS, result())
    [row_key] = waiting.take_due(NOW_S + 900, 0)
    waiting.put_back(row_key)
    assert waiting.take_due(NOW_S + 900 + PAUSE_S - 1, 0) == []
    assert waiting.take_due(NOW_S + 900 + PAUSE_S, 0) == [row_key]
    waiting.note(b"s", 8, LAST_RECORD_MS, result(revision=1))
    waiting.put_back(row_key)
    assert waiting.take_due(NOW_S + 900 + PAUSE_S + 899, 0) == []
    assert waiting.take_due(NOW_S + 900 + PAUSE_S + 900, 0) == [row_key]


def test_the_number_of_concurrent_retries_is_limited() -> None:
    waiting = retries()
    for number in range(AT_ONCE + 1):
        waiting.note(b"%d" % number, number, LAST_RECORD_MS, result())
    taken = waiting.take_due(NOW_S + 900, 0)
    assert (len(taken), waiting.take_due(NOW_S + 900, 0)) == (AT_ONCE, [])
    waiting.give_up(taken[0])
    assert len(waiting.take_due(NOW_S + 900, 0)) == 1


def test_a_restart_keeps_the_order_in_which_sessions_were_added() -> None:
    config = RetryLater(after_s=900, max_sessions=2)
    before = JudgeRetries(config)
    before.note(b"z", 1, LAST_RECORD_MS, result())
    before.note(b"a", 2, LAST_RECORD_MS, result())
    after = JudgeRetries(config)
    after.load(dict(sorted((key, row) for key, row in before.rows() if row is not None)))
    after.note(b"m", 3, LAST_RECORD_MS, result())
    assert after.get(b"rz" + bytes(4)) is None
    assert after.get(b"ra" + bytes(4)) is not None


def test_waiting_rows_of_version_1_are_retried_unless_a_retry_has_its_own_revision() -> None:
    waiting = retries()
    waiting.load(VERSION_1)
    assert waiting.take_due(NOW_S + 10_000, 0) == [b"ra" + bytes(4)]
    assert waiting.get(b"ra" + bytes(4)) == PendingRetry(7, 2, 0, LAST_RECORD_MS, (NOW_S + 900) * 1000, 2, 3)
    assert sorted(waiting.rows()) == [(key, None) for key in list(VERSION_1)[1:]]


def test_without_a_config_every_row_is_deleted() -> None:
    before = retries()
    before.note(b"s", 7, LAST_RECORD_MS, result())
    rows = {key: row for key, row in before.rows() if row is not None}
    after = retries(None)
    after.load(rows)
    assert (after.rows(), after.take_due(NOW_S + 10_000, 0)) == ([(key, None) for key in rows], [])


def test_a_row_of_a_later_version_is_refused() -> None:
    with pytest.raises(ValueError, match="has the format 3; this version reads the formats 1 and 2"):
        retries().load({b"rs" + bytes(4): b"\x03"})


def settling(seconds: float = 60, revision: int = 0) -> ScoringResult:
    return ScoringResult(0, revision, 0, LAST_RECORD_MS, [], [], {}, settle_s=seconds)


def test_a_session_settles_by_the_watermark_from_its_close_on_also_after_a_restart() -> None:
    before = retries(None)
    closed_ms = (NOW_S - 20) * 1000
    assert before.note(b"s", 7, closed_ms, settling())
    after = JudgeRetries(None)
    after.load({key: row for key, row in before.rows() if row is not None})
    for each in (before, after):
        assert each.take_due(NOW_S + 10_000, closed_ms + 59_999) == []
        assert each.settling == 1
        assert len(each.take_due(NOW_S + 10_000, closed_ms + 60_000)) == 1


def test_a_close_that_a_fast_clock_has_written_prolongs_no_wait() -> None:
    waiting = retries(None)
    waiting.note(b"s", 7, (NOW_S + 7_200) * 1000, settling())
    assert len(waiting.take_due(NOW_S + 60, (NOW_S + 60) * 1000)) == 1
    waiting.take_due(NOW_S + 7_200, 0)
    waiting.note(b"t", 8, (NOW_S + 7_200) * 1000, settling())
    after = JudgeRetries(None)
    after.load({key: row for key, row in waiting.rows() if row is not None and key.startswith(b"rt")})
    assert after.take_due(NOW_S, NOW_S * 1000) == []
    assert len(after.take_due(NOW_S + 60, (NOW_S + 60) * 1000)) == 1


def test_a_wait_uses_no_retry_and_an_outage_after_it_is_retried_by_the_clock() -> None:
    waiting = retries()
    waiting.note(b"s", 7, NOW_S * 1000, settling())
    [row_key] = waiting.take_due(NOW_S + 60, (NOW_S + 60) * 1000)
    waiting.retried(row_key, 1, published=True)
    found = waiting.get(row_key)
    assert found is not None
    assert (found.attempt, found.left, found.settle_ms, waiting.settling) == (1, CONFIG.attempts, 0, 0)
    assert waiting.take_due(NOW_S + 60 + 899, (NOW_S + 60 + 899) * 1000) == []
    assert waiting.take_due(NOW_S + 60 + 900, 0) == [row_key]


def test_a_session_that_could_not_be_read_after_its_wait_is_due_again_after_a_pause() -> None:
    waiting = retries(None)
    waiting.note(b"s", 7, NOW_S * 1000, settling())
    [row_key] = waiting.take_due(NOW_S + 60, (NOW_S + 60) * 1000)
    waiting.put_back(row_key)
    assert waiting.take_due(NOW_S + 60 + PAUSE_S - 1, (NOW_S + 10_000) * 1000) == []
    assert waiting.take_due(NOW_S + 60 + PAUSE_S, 0) == [row_key]
    # A later revision begins its own wait meanwhile.
    waiting.note(b"s", 8, (NOW_S + 70) * 1000, settling(revision=1))
    waiting.put_back(row_key)
    assert waiting.take_due(NOW_S + 10_000, (NOW_S + 129) * 1000) == []
    assert waiting.take_due(NOW_S + 10_000, (NOW_S + 130) * 1000) == [row_key]


def test_a_later_revision_without_a_wait_ends_the_wait() -> None:
    waiting = retries(None)
    waiting.note(b"s", 7, NOW_S * 1000, settling())
    assert not waiting.note(b"s", 8, NOW_S * 1000, result(revision=1))
    assert (len(waiting), waiting.settling, waiting.take_due(NOW_S + 100, (NOW_S + 100) * 1000)) == (0, 0, [])


def test_a_row_without_the_wait_is_that_of_an_outage() -> None:
    row = b"\x02" + msgspec.msgpack.encode([7, 2, 0, LAST_RECORD_MS, (NOW_S + 900) * 1000, 1, 3])
    waiting = retries()
    waiting.load({b"rs" + bytes(4): row})
    assert waiting.get(b"rs" + bytes(4)) == PendingRetry(7, 2, 0, LAST_RECORD_MS, (NOW_S + 900) * 1000, 1, 3, 0)


def test_beyond_the_maximum_the_oldest_session_that_settles_is_due_now_and_none_that_waits_for_a_judge_is_dropped() -> (
    None
):
    waiting = retries(RetryLater(after_s=900, max_sessions=2))
    waiting.note(b"b", 1, NOW_S * 1000, result())
    for offset, name in enumerate((b"a", b"c", b"d"), start=2):
        waiting.note(name, offset, NOW_S * 1000, settling())

    assert (len(waiting), waiting.dropped, waiting.settling) == (4, 0, 3)
    assert [*map(session_of, waiting.take_due(NOW_S, 0))] == [b"a"]


def test_beyond_the_maximum_the_oldest_session_that_waits_for_a_judge_is_dropped() -> None:
    waiting = retries(RetryLater(after_s=900, max_sessions=2))
    waiting.note(b"s", 0, NOW_S * 1000, settling())
    for number in range(3):
        waiting.note(b"%d" % number, number + 1, NOW_S * 1000, result())

    assert (len(waiting), waiting.dropped, waiting.settling) == (3, 1, 1)
    assert waiting.get(b"r0" + bytes(4)) is None


@pytest.mark.parametrize("restarts", [False, True])
def test_a_restart_drops_no_session_that_would_not_be_dropped_without_it(restarts: bool) -> None:
    config = RetryLater(after_s=900, max_sessions=2)
    waiting = retries(config)
    for offset in range(1, 5):
        waiting.note(b"s%d" % offset, offset, NOW_S * 1000, settling())
    # A replay: the session with the lowest offset is noted last.
    waiting.note(b"w", 0, NOW_S * 1000, result())
    if restarts:
        rows = {key: row for key, row in waiting.rows() if row is not None}
        waiting = retries(config)
        waiting.load(rows)
    waiting.note(b"s5", 5, NOW_S * 1000, settling())

    assert (len(waiting), waiting.dropped) == (6, 0)
    assert waiting.get(b"rw" + bytes(4)) is not None


def test_a_session_that_is_due_early_stays_so_after_a_restart_and_a_later_revision_waits_again() -> None:
    config = RetryLater(after_s=900, max_sessions=1)
    before = retries(config)
    before.take_due(NOW_S, NOW_S * 1000)
    for name, offset in ((b"a", 1), (b"b", 2)):
        before.note(name, offset, NOW_S * 1000, settling())
    after = JudgeRetries(config)
    after.load({key: row for key, row in before.rows() if row is not None})
    assert [*map(session_of, after.take_due(NOW_S, NOW_S * 1000))] == [b"a"]

    before.note(b"a", 3, NOW_S * 1000, settling(revision=1))
    assert [*map(session_of, before.take_due(NOW_S, NOW_S * 1000))] == [b"b"]
    assert (before.dropped, len(before)) == (0, 2)


@pytest.mark.slow
def test_sessions_that_are_due_early_and_are_not_taken_are_bounded_too() -> None:
    waiting = retries(RetryLater(after_s=900, max_sessions=1))
    for number in range(MAX_SETTLING + 3):
        waiting.note(b"%d" % number, number, NOW_S * 1000, settling())
    assert (len(waiting), waiting.dropped) == (MAX_SETTLING + 1, 2)
    assert [waiting.get(b"r%d" % number + bytes(4)) is None for number in range(3)] == [True, True, False]
