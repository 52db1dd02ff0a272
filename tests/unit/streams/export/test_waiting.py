"""What waits keeps the order of its session, is due after growing pauses, and is bounded."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.export.waiting import FIRST_PAUSE_S, MAX_PAUSE_S, MAX_WAITING, Waiting, WaitingScore


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


@pytest.mark.parametrize(("number", "size"), [(MAX_WAITING, 1), (32, 1_000_000)])
def test_what_waits_is_bounded_in_number_and_in_bytes(number: int, size: int) -> None:
    waiting = Waiting()
    for offset in range(number):
        assert not waiting.full
        waiting.add(score(offset=offset, value=b"x" * size))
    assert waiting.full
    waiting.remove(score(offset=0, value=b"x" * size))
    assert not waiting.full


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
