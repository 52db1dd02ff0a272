"""What waits keeps the order of its session, is due after growing pauses, and is bounded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.tools.export.waiting import FIRST_PAUSE_S, MAKE_ROOM_EVERY_S, MAX_PAUSE_S, WaitingScores
from traceweir.streams.tools.export.waiting_score import WaitingRow, WaitingScore

MODULE = "traceweir.streams.tools.export.waiting"


def score(session: str = "s", offset: int = 0, value: bytes = b"{}", since_s: float = 0.0) -> WaitingScore:
    return WaitingScore(0, offset, 1_000, session, value, since_s)


def pauses(waiting: WaitingScores, number: int) -> list[float]:
    found: list[float] = []
    now_s = 0.0
    for _ in range(number):
        waiting.failed((0, "s"), now_s, None)
        due_s = now_s
        while not waiting.due(due_s, 1):
            due_s += 1.0
        found.append(due_s - now_s)
        now_s = due_s
    return found


def test_the_pauses_of_a_session_double_to_an_hour() -> None:
    waiting = WaitingScores()
    waiting.add(score())
    found = pauses(waiting, 14)
    for number, pause_s in enumerate(found):
        least = min(FIRST_PAUSE_S * 2**number, MAX_PAUSE_S)
        assert least <= pause_s <= least * 1.1 + 1


def test_sessions_that_fail_together_are_not_all_due_together() -> None:
    waiting = WaitingScores()
    sessions = [f"s{number}" for number in range(100)]
    for session in sessions:
        waiting.add(score(session))
        waiting.failed((0, session), 0.0, None)
    due: list[int] = []
    for tenth in range(11):
        due.append(0)
        # Each that is taken lets more of them be sent at once.
        while taken := waiting.due(FIRST_PAUSE_S * (1 + tenth / 100), 1_000):
            due[-1] += len(taken)
            for each in taken:
                waiting.remove(each)
    assert sum(due) == 100
    assert max(due) < 30


def test_a_target_that_names_a_time_is_not_asked_before() -> None:
    waiting = WaitingScores()
    waiting.add(score())
    waiting.failed((0, "s"), 100.0, 600.0)
    assert waiting.due(699.0, 1) == []
    assert waiting.due(700.0, 1) == [score()]


def test_when_a_session_has_failed_no_score_of_it_is_due_and_other_sessions_are() -> None:
    waiting = WaitingScores()
    for session in ("a", "b"):
        for offset in (1, 2):
            waiting.add(score(session, offset))
    waiting.failed((0, "a"), 0.0, None)
    assert waiting.due(1.0, 10) == [score("b", 1), score("b", 2)]


def test_sessions_that_are_due_are_sent_in_turns(small: WaitingScores) -> None:
    """So that all connections of a target are in use; the session that is due for the longest comes first."""
    for number in range(10):
        small.add(score(f"s{number % 4}", number))
    small.failed((0, "s0"), 10.0, 10.0)
    assert [each.offset for each in small.due(20.0, 5)] == [1, 2, 3, 0, 5]
    assert [each.offset for each in small.due(20.0, 2)] == [1, 2]


def test_few_sessions_that_were_not_taken_are_sent_at_once_until_the_target_takes_them(small: WaitingScores) -> None:
    """So that several scores that a target never takes do not cost the batches of all others their time."""
    for number in range(6):
        small.add(score(f"s{number}", number))
    for number in range(5):
        small.failed((0, f"s{number}"), 0.0, 10.0 + number)

    def tried() -> list[int]:
        return [each.offset for each in small.due(1_000.0, 100)]

    assert tried() == [5, 0]
    small.failed((0, "s0"), 1_000.0, 600.0)
    assert tried() == [5, 1]
    small.remove(score("s1", 1))
    assert tried() == [5, 2, 3]
    small.remove(score("s2", 2))
    assert tried() == [5, 3, 4]
    small.failed((0, "s3"), 1_000.0, 600.0)
    assert tried() == [5, 4]


def test_a_session_that_was_served_waits_until_the_others_were(small: WaitingScores) -> None:
    for number in range(4):
        small.add(score("busy", number))
    for number in range(2):
        small.add(score(f"s{number}", 10 + number))
    small.remove(score("busy", 0))
    assert [each.offset for each in small.due(0.0, 2)] == [10, 11]


def test_the_next_score_of_a_session_is_due_at_once_when_the_first_one_is_gone() -> None:
    waiting = WaitingScores()
    waiting.add(score(offset=1))
    waiting.add(score(offset=2))
    waiting.failed((0, "s"), 0.0, 600.0)
    waiting.remove(score(offset=1))
    assert waiting.due(1.0, 10) == [score(offset=2)]
    assert waiting.holds((0, "s"))
    waiting.remove(score(offset=2))
    assert not waiting.holds((0, "s"))


def test_a_score_that_is_read_again_waits_once() -> None:
    waiting = WaitingScores()
    assert waiting.add(score())
    assert not waiting.add(score(since_s=5.0))
    assert len(waiting) == 1


def test_a_score_that_is_on_the_topic_alone_waits_once_too(small: WaitingScores) -> None:
    for offset in range(5):
        assert small.add(score(offset=offset))
    assert not small.add(score(offset=4, since_s=5.0))
    assert len(small) == 5


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> WaitingScores:
    """Has room for ten scores, or 1,000 bytes, and a session has two of the places."""
    for name, value in {"MAX_LOADED": 10, "MAX_LOADED_BYTES": 1_000, "SESSIONS_AT_LEAST": 5, "MAX_WAITING": 30}.items():
        monkeypatch.setattr(f"{MODULE}.{name}", value)
    return WaitingScores()


def row(at: int, of: WaitingScore) -> WaitingRow:
    return WaitingRow(of.place, at, of)


def load(kept: WaitingScores, topic: Sequence[WaitingRow | None], now_s: float = 0.0) -> int:
    """Loads a part of a topic, whose offsets are the indices; returns how many rows were read."""
    load = kept.begin_load(now_s)
    assert load is not None
    number = 0
    for each in topic[load.begin :]:
        number += 1
        if each is not None and not kept.load(load, each):
            kept.end_load(load, each.row_at + 1)
            return number
    kept.end_load(load, None)
    return number


@pytest.mark.parametrize("size", [1, 100])
def test_what_is_in_memory_is_bounded_in_number_and_in_bytes(small: WaitingScores, size: int) -> None:
    for number in range(29):
        small.add(score(f"s{number}", number, b"x" * size))
    assert len(small) == 29
    assert len(small.due(0.0, 100)) == small.loaded == 10
    assert not small.full
    small.add(score("s29", 29, b"x" * size))
    assert small.full


def test_a_session_of_which_much_waits_leaves_room_for_the_others(small: WaitingScores) -> None:
    for offset in range(20):
        small.add(score("hot", offset))
    small.add(score("other", 20))
    assert small.due(0.0, 100) == [score("hot", 0), score("other", 20), score("hot", 1)]


def test_what_is_on_the_topic_alone_holds_back_later_scores_of_its_session(small: WaitingScores) -> None:
    topic: list[WaitingRow | None] = [row(offset, score("s", offset)) for offset in range(4)]
    for offset in range(3):
        small.add(score("s", offset))
    for offset in range(2):
        small.remove(score("s", offset))
    assert small.holds((0, "s"))
    small.add(score("s", 3))
    assert small.due(0.0, 100) == []
    load(small, topic)
    assert small.due(0.0, 100) == [score("s", 2), score("s", 3)]


def test_a_session_keeps_its_pause_when_its_scores_are_loaded(small: WaitingScores) -> None:
    others = [score(f"s{number}", number) for number in range(10)]
    for each in [*others, score("last", 10)]:
        small.add(each)
    small.failed((0, "last"), 0.0, 600.0)
    for each in others:
        small.remove(each)
    assert small.begin_load(599.0) is None
    load(small, [row(at, each) for at, each in enumerate([*others, score("last", 10)])], 600.0)
    assert small.due(600.0, 10) == [score("last", 10)]


def test_a_session_whose_scores_are_gone_from_the_topic_waits_no_longer(small: WaitingScores) -> None:
    for offset in range(3):
        small.add(score("s", offset))
    for offset in range(2):
        small.remove(score("s", offset))
    load(small, [])
    assert not small.holds((0, "s"))
    assert (len(small), small.begin_load(0.0)) == (0, None)


def test_what_waits_is_loaded_when_half_of_the_memory_is_free(small: WaitingScores) -> None:
    scores = [score(f"s{number}", number) for number in range(12)]
    for each in scores:
        small.add(each)
    for each in scores[:4]:
        small.remove(each)
    assert small.begin_load(0.0) is None
    small.remove(scores[4])
    assert small.begin_load(0.0) is not None


def test_sessions_in_their_pauses_leave_room_for_a_session_that_is_due(small: WaitingScores) -> None:
    """Ten scores of five sessions fill the memory. Those of the session that is due last are on the topic alone first."""
    bad = [score(f"bad{number}", 2 * number + of) for number in range(5) for of in range(2)]
    topic = [row(at, each) for at, each in enumerate([*bad, score("new", 10)])]
    for each in topic:
        assert each.score is not None
        small.add(each.score, each.row_at)
    for number in range(5):
        if number < 3:
            assert small.begin_load(0.0) is None
        small.failed((0, f"bad{number}"), 0.0, 1_000.0 + number)
    load(small, topic)
    assert small.due(0.0, 100) == [score("new", 10)]
    assert len(small) == 11
    sent: list[WaitingScore] = []
    now_s = 2_000.0
    while len(small):
        now_s += MAKE_ROOM_EVERY_S
        if small.begin_load(now_s) is not None:
            load(small, topic, now_s)
        for taken in small.due(now_s, 100):
            small.remove(taken)
            sent.append(taken)
    assert sorted(sent, key=lambda each: each.offset) == [*bad, score("new", 10)]
    assert [each.offset % 2 for each in sent if each.key == "bad4"] == [0, 1]


def test_more_sessions_in_their_pauses_than_the_memory_holds_leave_room_once_a_minute(small: WaitingScores) -> None:
    scores = [score(f"s{number}", number) for number in range(25)]
    topic = [row(at, each) for at, each in enumerate(scores)]
    for each in scores:
        small.add(each)
    tried: set[str] = set()
    now_s = 0.0
    for _ in range(10):
        for each in small.due(now_s, 100):
            small.failed(each.session, now_s, 100_000.0)
            tried.add(each.key)
        if small.begin_load(now_s) is not None:
            load(small, topic, now_s)
            assert small.loaded > 0
            assert small.begin_load(now_s) is None
        now_s += MAKE_ROOM_EVERY_S
    assert tried == {each.key for each in scores}
    assert small.loaded <= 10


@pytest.mark.parametrize("sessions", [25, 1], ids=["a session each", "one session"])
def test_each_row_is_loaded_once_and_read_about_once(small: WaitingScores, sessions: int) -> None:
    """Ten are in memory, or two of the one session; half of the memory is free at each load."""
    scores = [score(f"s{offset % sessions}", offset) for offset in range(25)]
    topic = [row(at, each) for at, each in enumerate(scores)]
    for each in scores:
        small.add(each)
    loads = reads = taken = 0
    while len(small):
        if small.begin_load(0.0) is not None:
            loads += 1
            reads += load(small, topic)
        (due,) = small.due(0.0, 1)
        small.remove(due)
        taken += 1
    assert taken == 25
    assert loads <= (3 if sessions > 1 else 12)
    assert reads <= 25


def test_the_rows_of_a_session_that_has_enough_are_not_read_for_the_others(small: WaitingScores) -> None:
    hot = [score("hot", offset) for offset in range(15)]
    others = [score(f"s{at}", at) for at in range(15, 29)]
    topic = [row(at, each) for at, each in enumerate([*hot, *others])]
    for each in topic:
        assert each.score is not None
        small.add(each.score, each.row_at)
    for gone in others[:8]:
        small.remove(gone)
    assert load(small, topic) == 6
    assert small.due(0.0, 100) == [hot[0], *others[8:], hot[1]]


def test_a_score_that_waits_again_is_loaded_from_its_last_row(small: WaitingScores) -> None:
    """The first row of the score has ended and is not compacted yet; a later one was written by a replay."""
    first = score("s", 0)
    again = score("s", 0, since_s=99.0)
    topic = [
        row(0, first),
        WaitingRow(first.place, 1, None),
        *(row(at, score("s", at)) for at in (2, 3)),
        row(4, again),
    ]
    for at in (2, 3):
        small.add(score("s", at), at)
    small.add(again, 4)
    for at in (2, 3):
        small.remove(score("s", at))
    load(small, [*topic])
    assert small.due(0.0, 10) == [again]


Step = tuple[str, str]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["add", "take", "fail"]), st.sampled_from("abc")), max_size=120))
def test_all_that_waits_is_taken_once_in_the_order_of_its_session_whatever_is_in_memory(steps: Sequence[Step]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {"MAX_LOADED": 4, "SESSIONS_AT_LEAST": 2, "MAX_WAITING": 1_000}.items():
            patched.setattr(f"{MODULE}.{name}", value)
        kept = WaitingScores()
        topic: list[WaitingRow | None] = []
        taken: dict[str, list[int]] = {}

        def attempt(now_s: float, *, succeeds: bool = True) -> bool:
            if kept.begin_load(now_s) is not None:
                load(kept, topic, now_s)
            due = kept.due(now_s, 1)
            for each in due:
                if not succeeds:
                    kept.failed(each.session, now_s, None)
                    continue
                kept.remove(each)
                taken.setdefault(each.key, []).append(each.offset)
                topic.append(None)
            return bool(due) and succeeds

        waits = 0
        now_s = 0.0
        for offset, (kind, session) in enumerate(steps):
            now_s += MAKE_ROOM_EVERY_S / 2
            if kind == "add":
                kept.add(score(session, offset))
                topic.append(row(len(topic), score(session, offset)))
                waits += 1
            else:
                waits -= attempt(now_s, succeeds=kind == "take")
            assert len(kept) == waits
            assert kept.loaded <= 4
        for _ in range(waits):
            now_s += 2 * MAX_PAUSE_S
            assert attempt(now_s)
    assert not len(kept)
    for session in "abc":
        assert taken.get(session, []) == [at for at, step in enumerate(steps) if step == ("add", session)]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=40), st.integers(1, 9))
def test_what_is_due_is_a_beginning_of_each_session_in_its_order(added: list[tuple[str, int]], most: int) -> None:
    waiting = WaitingScores()
    order: dict[str, list[int]] = {}
    for session, offset in added:
        if waiting.add(score(session, offset)):
            order.setdefault(session, []).append(offset)
    due = waiting.due(0.0, most)
    assert len(due) == min(most, len(waiting))
    for session, offsets in order.items():
        found = [each.offset for each in due if each.key == session]
        assert found == offsets[: len(found)]
