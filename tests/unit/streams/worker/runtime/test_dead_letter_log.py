"""Tests the warnings about dead letters: place and first problem, no text that can harm a log, and not too many."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from traceweir.schemas.dead_letter import Reason
from traceweir.streams.base.stages.base import Output, dead_letter
from traceweir.streams.testing import Message
from traceweir.streams.worker.runtime.dead_letter_log import PROBLEM_CHARS, QUIET_S, DeadLetterLog

TOPIC = "traceweir.dead-letters"
COUNTS = {"assemble.dead_lettered.invalid": 1}


def letter(
    offset: int = 17, reason: Reason = "invalid", detail: str = "name: Field required; args: too long"
) -> Output:
    record = Message("traceweir.traces", 2, offset, 0, b"key", b'{"password": "hunter2"}')
    return dead_letter(TOPIC, "traceweir.traces", 2, record, "assemble", reason, detail)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def warnings(clock: Clock) -> DeadLetterLog:
    return DeadLetterLog(TOPIC, clock)


def test_a_warning_names_reason_place_and_first_problem_and_quotes_no_value(
    warnings: DeadLetterLog, caplog: pytest.LogCaptureFixture
) -> None:
    warnings.committed(COUNTS, [Output("traceweir.sessions", 2, b"s", b"{}"), letter()])
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        "dead letter: reason=invalid topic=traceweir.traces partition=2 offset=17 stage=assemble "
        "problem=name: Field required"
    )


@pytest.mark.parametrize("detail", ["one\n2026-01-01 ERROR forged: \x1b[31mred\u202e", "x" * 10_000])
def test_a_hostile_problem_stays_one_short_printable_line(
    detail: str, warnings: DeadLetterLog, caplog: pytest.LogCaptureFixture
) -> None:
    warnings.committed(COUNTS, [letter(detail=detail)])
    (message,) = caplog.messages
    assert message.isprintable()
    assert len(message.partition("problem=")[2]) <= PROBLEM_CHARS


def test_secrets_in_an_id_are_redacted_before_the_problem_is_shortened(
    warnings: DeadLetterLog, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-proj-Abcd1234Efgh5678Ijkl9012Mnop3456"
    warnings.committed(COUNTS, [letter(detail=f"session alice@example.com {'x' * (PROBLEM_CHARS - 50)} {key}")])
    (message,) = caplog.messages
    assert "problem=session [REDACTED:email] " in message
    assert key[:12] not in message


@pytest.mark.parametrize("reason", ["poison", "scoring_failed"])
def test_the_message_of_an_exception_is_not_logged_because_it_can_quote_the_record(
    reason: Reason, warnings: DeadLetterLog, caplog: pytest.LogCaptureFixture
) -> None:
    warnings.committed(COUNTS, [letter(reason=reason, detail="KeyError: 'hunter2'")])
    (message,) = caplog.messages
    assert message.endswith("problem=an exception, which `traceweir dlq show` shows")


def test_many_dead_letters_with_a_reason_are_one_line_in_ten_seconds_and_the_next_line_counts_them(
    warnings: DeadLetterLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def logged(letters: Sequence[Output]) -> list[str]:
        caplog.clear()
        warnings.committed(COUNTS, letters)
        return [message.partition("dead letter: ")[2] for message in caplog.messages]

    assert len(logged([letter(number) for number in range(100)])) == 1
    assert len(logged([letter(100, "late", "too late")])) == 1  # another reason has its own line
    clock.now = QUIET_S - 0.1
    assert logged([letter(101)]) == []
    clock.now = QUIET_S
    (line,) = logged([letter(102)])
    assert line.endswith(
        " offset=102 stage=assemble problem=name: Field required (100 more since the last line with this reason)"
    )
    clock.now = 2 * QUIET_S
    (line,) = logged([letter(103)])
    assert line.endswith("problem=name: Field required")


def test_outputs_of_a_checkpoint_without_dead_letters_are_not_searched(
    warnings: DeadLetterLog, caplog: pytest.LogCaptureFixture
) -> None:
    forged = Output("traceweir.strays", 0, b"k", b"v", [("traceweir.reason", b"invalid")])
    warnings.committed({"assemble.forwarded": 1}, [forged])
    warnings.committed(COUNTS, [forged])
    assert caplog.messages == []
