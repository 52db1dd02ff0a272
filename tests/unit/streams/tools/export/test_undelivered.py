"""What is written about a score that a target has not taken, and how often the topic of what waits is read."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import Topics, export_waiting_key
from traceweir.streams.tools.export.answers import Later, Refused
from traceweir.streams.tools.export.not_taken import NotTaken
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.source import scores_of
from traceweir.streams.tools.export.undelivered import Settled, Undelivered
from traceweir.streams.tools.export.waiting_topic import WaitingTopic
from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

WAITING = "traceweir.streams.tools.export.waiting"
MEMORY = 20
"""The scores that are in memory at most in these tests."""


def found(offset: int, session: str = "s") -> FoundScore:
    score = make_score(session)
    return FoundScore(1_000, 0, offset, score, score.wire())


class Topic:
    """Stands for the readers of `export-waiting`, on which each score of a list waits; counts what is read there."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self.values = values
        self.opened = self.reads = 0

    async def __aenter__(self) -> Topic:
        self.opened += 1
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def records(self, begins: Mapping[int, int] | None = None) -> AsyncIterator[Any]:
        for at in range((begins or {0: 0})[0], len(self.values)):
            self.reads += 1
            key = export_waiting_key("hook", at, 1_000)
            yield SimpleNamespace(partition=0, offset=at, key=key, value=self.values[at], timestamp=5_000, headers=[])

    async def following(self, trouble: Callable[[str], None]) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield


class CountedScore:
    """Counts the records that are validated whole."""

    validated = 0

    @classmethod
    def model_validate_json(cls, value: bytes) -> Score:
        cls.validated += 1
        return Score.model_validate_json(value)


def undelivered_on(topic: Topic) -> Undelivered[FoundScore]:
    waiting = WaitingTopic(Settings(), "hook", "session_id", reader=lambda *_, **__: cast("BoundedReader", topic))
    return Undelivered(Settings(), scores_of(Topics.of()), waiting, ProblemLog("results", lambda: 0.0), lambda: NOW)


async def taken_over(monkeypatch: pytest.MonkeyPatch, topic: Topic) -> Undelivered[FoundScore]:
    monkeypatch.setattr(f"{WAITING}.MAX_LOADED", MEMORY)
    undelivered = undelivered_on(topic)
    await undelivered.take_over({0})
    return undelivered


@pytest.mark.parametrize(("sessions", "loads"), [(400, 39), (1, 199)], ids=["a session each", "one session"])
async def test_after_an_outage_each_row_is_loaded_once_and_validated_when_it_is_sent(
    sessions: int, loads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 400 scores 20 are in memory, or two of the one session; each load brings half of that, or two."""
    topic = Topic([make_score(f"s{offset % sessions}").wire() for offset in range(400)])
    undelivered = await taken_over(monkeypatch, topic)
    monkeypatch.setattr("traceweir.streams.tools.export.source.Score", CountedScore)
    CountedScore.validated = 0
    sent: list[int] = []
    while len(undelivered):
        if (load := undelivered.begin_load()) is not None:
            await undelivered.load(load)
        due = undelivered.due(1)
        sent += [each.offset for each in due]
        undelivered.settle_due(due, [])
    await undelivered.close()
    assert sent == list(range(400))
    assert topic.opened <= 1 + loads
    assert topic.reads <= 2 * 400
    assert CountedScore.validated == 400


async def test_a_score_that_is_read_again_keeps_the_time_at_which_it_began_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without transactions a crash can leave the rows on the topic, and the offset of the group before their scores."""
    number = 2 * MEMORY
    undelivered = await taken_over(monkeypatch, Topic([found(offset).value for offset in range(number)]))
    assert undelivered.settle_new([], [found(offset) for offset in range(number)]) == Settled([], Counter())
    assert len(undelivered) == number
    await undelivered.close()


async def test_a_row_that_is_no_score_is_left_out_and_the_next_one_of_its_session_is_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    undelivered = await taken_over(monkeypatch, Topic([b'{"session_id": "s"}', found(1).value]))
    assert undelivered.due(1) == []
    assert [each.offset for each in undelivered.due(1)] == [1]
    assert "results[0] offset 0 is no score" in caplog.text
    await undelivered.close()


@pytest.mark.parametrize("answers", [[], [Later("busy")], [Refused("bad")], [Later("busy"), Refused("bad")]])
def test_nothing_is_written_about_scores_that_have_moved_while_they_were_sent(
    answers: Sequence[Later | Refused],
) -> None:
    undelivered = undelivered_on(Topic([]))
    undelivered.settle_new([], [found(1), found(2)])
    due = undelivered.due(10)
    undelivered.forget()
    not_taken = [NotTaken(each, answer) for each, answer in zip(due, answers, strict=False)]
    assert undelivered.settle_due(due, not_taken) == Settled([], Counter())
    assert len(due) == 2


async def test_partitions_that_move_while_what_waits_is_read_leave_nothing() -> None:
    """What is read after the move is of another process, also that a score waits no longer."""
    moved: list[Undelivered[FoundScore]] = []

    class Moving(Topic):
        async def records(self, begins: Mapping[int, int] | None = None) -> AsyncIterator[Any]:
            for at, (key_at, value) in enumerate([(0, self.values[0]), (0, None), (1, self.values[1])]):
                if at == 1:
                    moved[0].forget()
                key = export_waiting_key("hook", key_at, 1_000)
                yield SimpleNamespace(partition=0, offset=at, key=key, value=value, timestamp=5_000, headers=[])

    topic = Moving([found(at).value for at in range(2)])
    moved.append(undelivered_on(topic))
    await moved[0].take_over({0})
    assert len(moved[0]) == 0
    await moved[0].close()
