"""A look reads while somebody looks, seldomer if it takes long, and keeps what it has read last."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import pytest
from tests.support.scoring import NOW

from traceweir.streams.board.dashboard.repeated_look import LookPace, RepeatedLook


class Reading:
    """Gives one answer after the other, each after some seconds of a clock."""

    def __init__(self, *answers: str | Exception, takes_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.takes_s = takes_s
        self.is_watched = True
        self.answers = [*answers]
        self.read_at_s: list[float] = []

    async def __call__(self, now: datetime) -> str:
        assert now == NOW
        self.read_at_s.append(self.now_s)
        self.now_s += self.takes_s
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def look(self, every_s: float, first_after_s: float = 0.0) -> RepeatedLook[str]:
        pace = LookPace(every_s, first_after_s, lambda: self.is_watched)
        return RepeatedLook("the log", self, "nothing", with_problem, pace, lambda: NOW, lambda: self.now_s)


def with_problem(known: str, problem: str) -> str:
    return f"{known.partition(' but ')[0]} but {problem}"


@pytest.mark.parametrize(
    ("watched_from_s", "takes_s", "expected"),
    [(0, 0, [2, 62, 122]), (61, 0, [62, 122]), (1_000, 0, []), (0, 5, [2, 107])],
    ids=["always", "later", "never", "slow"],
)
async def test_it_reads_once_a_minute_while_somebody_looks_and_less_often_if_it_takes_long(
    watched_from_s: int, takes_s: int, expected: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading("a", "b", "c", takes_s=takes_s)
    reading.is_watched = watched_from_s == 0

    async def sleep(seconds: float) -> None:
        reading.now_s += seconds
        reading.is_watched = reading.now_s >= watched_from_s
        if reading.now_s > 130:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await reading.look(60, 2).run()
    assert reading.read_at_s == expected


async def test_a_failure_keeps_what_was_read_and_is_logged_once_until_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    gone = OSError("it is gone\x1b")
    reading = Reading("first", gone, gone, "second", gone, KeyError("x"))
    look = reading.look(60)
    found = []
    for _ in range(6):
        await look.look()
        found.append(look.known)
    said = "it is gone\\x1b"
    kept = f"first but {said}"
    assert found == ["first", kept, kept, "second", f"second but {said}", "second but KeyError('x')"]
    warning = f"the log cannot be read now: {said}; trying again"
    assert caplog.messages == [warning, warning, "the log cannot be read now: KeyError('x'); trying again"]


async def test_a_look_that_fails_is_not_repeated_at_once() -> None:
    reading = Reading(OSError("gone"), "a")
    look = reading.look(60)
    assert look.is_due
    await look.look()
    reading.now_s += 59
    assert not look.is_due
    reading.now_s += 1
    assert look.is_due
