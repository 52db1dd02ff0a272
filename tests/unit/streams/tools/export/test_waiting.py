"""What waits keeps the order of its session, is due after growing pauses, and is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.tools.export.waiting import FIRST_PAUSE_S, MAX_PAUSE_S, Waiting, WaitingScore

MODULE = "traceweir.streams.tools.export.waiting"


def score(session: str = "s", offset: int = 0, value: bytes = b"{}", since_s: float = 0.0) -> WaitingScore:
    return WaitingScore(0, offset, 1_000, session, value, since_s)


def pauses(waiting: Waiting, number: int) -> list[float]:
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
    waiting = Waiting()
    waiting.add(score())
    found = pauses(waiting, 14)
    for number, pause_s in enumerate(found):
        least = min(FIRST_PAUSE_S * 2**number, MAX_PAUSE_S)
        assert least <= pause_s <= least * 1.1 + 1


def test_sessions_that_fail_together_are_not_all_due_together() -> None:
    waiting = Waiting()
    sessions = [f"s{number}" for number in range(100)]
    for session in sessions:
        waiting.add(score(session))
        waiting.failed((0, session), 0.0, None)
    due = [len(waiting.due(FIRST_PAUSE_S * (1 + tenth / 100), 1_000)) for tenth in range(11)]
    assert due[0] < 10
    assert due[-1] == 100
    assert max(later - earlier for earlier, later in pairwise(due)) < 30


def test_a_target_that_names_a_time_is_not_asked_before() -> None:
    waiting = Waiting()
    waiting.add(score())
    waiting.failed((0, "s"), 100.0, 600.0)
    assert waiting.due(699.0, 1) == []
    assert waiting.due(700.0, 1) == [score()]


def test_when_a_session_has_failed_no_score_of_it_is_due_and_other_sessions_are() -> None:
    waiting = Waiting()
    for session in ("a", "b"):
        for offset in (1, 2):
            waiting.add(score(session, offset))
    waiting.failed((0, "a"), 0.0, None)
    assert waiting.due(1.0, 10) == [score("b", 1), score("b", 2)]


def test_the_next_score_of_a_session_is_due_at_once_when_the_first_one_is_gone() -> None:
    waiting = Waiting()
    waiting.add(score(offset=1))
    waiting.add(score(offset=2))
    waiting.failed((0, "s"), 0.0, 600.0)
    waiting.remove(score(offset=1))
    assert waiting.due(1.0, 10) == [score(offset=2)]
    assert waiting.holds((0, "s"))
    waiting.remove(score(offset=2))
    assert not waiting.holds((0, "s"))


def test_a_score_that_is_read_again_waits_once() -> None:
    waiting = Waiting()
    assert waiting.add(score())
    assert not waiting.add(score(since_s=5.0))
    assert len(waiting) == 1


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    """Has room for ten scores, or 1,000 bytes, and a session has two of the places."""
    for name, value in {"MAX_LOADED": 10, "MAX_LOADED_BYTES": 1_000, "SESSIONS_AT_LEAST": 5, "MAX_WAITING": 30}.items():
        monkeypatch.setattr(f"{MODULE}.{name}", value)
    return Waiting()


def load(kept: Waiting, topic: Iterable[WaitingScore]) -> None:
    kept.begin_load()
    for each in topic:
        kept.add(each)
    kept.end_load()


@pytest.mark.parametrize("size", [1, 100])
def test_what_is_in_memory_is_bounded_in_number_and_in_bytes(small: Waiting, size: int) -> None:
    for number in range(29):
        small.add(score(f"s{number}", number, b"x" * size))
    assert len(small) == 29
    assert len(small.due(0.0, 100)) == 10
    assert not small.full
    small.add(score("s29", 29, b"x" * size))
    assert small.full


def test_a_session_of_which_much_waits_leaves_room_for_the_others(small: Waiting) -> None:
    for offset in range(20):
        small.add(score("hot", offset))
    small.add(score("other", 20))
    assert small.due(0.0, 100) == [score("hot", 0), score("hot", 1), score("other", 20)]


def test_what_is_on_the_topic_alone_holds_back_later_scores_of_its_session(small: Waiting) -> None:
    topic = [score("s", offset) for offset in range(3)]
    for each in topic:
        small.add(each)
    for each in topic[:2]:
        small.remove(each)
        topic.remove(each)
    assert small.holds((0, "s"))
    small.add(score("s", 3))
    assert small.due(0.0, 100) == []
    assert small.can_load
    load(small, [*topic, score("s", 3)])
    assert small.due(0.0, 100) == [score("s", 2), score("s", 3)]


def test_a_session_keeps_its_pause_when_its_scores_are_loaded(small: Waiting) -> None:
    others = [score(f"s{number}", number) for number in range(10)]
    for each in [*others, score("last", 10)]:
        small.add(each)
    small.failed((0, "last"), 0.0, 600.0)
    for each in others:
        small.remove(each)
    load(small, [score("last", 10)])
    assert small.due(599.0, 10) == []
    assert small.due(600.0, 10) == [score("last", 10)]


def test_a_session_whose_scores_are_gone_from_the_topic_waits_no_longer(small: Waiting) -> None:
    for offset in range(3):
        small.add(score("s", offset))
    for offset in range(2):
        small.remove(score("s", offset))
    load(small, [])
    assert not small.holds((0, "s"))
    assert (len(small), small.can_load) == (0, False)


Step = tuple[str, str]


@given(st.lists(st.tuples(st.sampled_from(["add", "take"]), st.sampled_from("abc")), max_size=120))
def test_all_that_waits_is_taken_once_in_the_order_of_its_session_whatever_is_in_memory(steps: Sequence[Step]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {"MAX_LOADED": 4, "SESSIONS_AT_LEAST": 2, "MAX_WAITING": 1_000}.items():
            patched.setattr(f"{MODULE}.{name}", value)
        kept, topic = Waiting(), dict[int, WaitingScore]()
        taken: dict[str, list[int]] = {}

        def take() -> bool:
            if kept.can_load:
                load(kept, topic.values())
            due = kept.due(0.0, 1)
            for each in due:
                kept.remove(each)
                taken.setdefault(each.session_id, []).append(topic.pop(each.offset).offset)
            return bool(due)

        for offset, (kind, session) in enumerate(steps):
            if kind == "take":
                take()
            else:
                topic[offset] = score(session, offset)
                kept.add(topic[offset])
            assert len(kept) == len(topic)
            assert len(kept.due(0.0, 1_000)) <= 4
        while take():
            pass
    assert not topic
    for session in "abc":
        assert taken.get(session, []) == [at for at, step in enumerate(steps) if step == ("add", session)]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=40), st.integers(1, 9))
def test_what_is_due_is_a_beginning_of_each_session_in_its_order(added: list[tuple[str, int]], most: int) -> None:
    waiting = Waiting()
    order: dict[str, list[int]] = {}
    for session, offset in added:
        if waiting.add(score(session, offset)):
            order.setdefault(session, []).append(offset)
    due = waiting.due(0.0, most)
    assert len(due) == min(most, len(waiting))
    for session, offsets in order.items():
        found = [each.offset for each in due if each.session_id == session]
        assert found == offsets[: len(found)]
