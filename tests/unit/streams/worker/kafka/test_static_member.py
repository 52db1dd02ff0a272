"""Tests that a process finds out whether another one is the static member that it should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from traceweir.streams.worker.kafka.consumer_group import GroupMember
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.static_member import MARGIN_S, InstanceTakenError, StaticMember

MINE, OTHER = GroupMember("a", "worker-0", "/10.0.0.1"), GroupMember("b", "worker-0", "/10.0.0.2")
SESSION_TIMEOUT_S = 10.0


class Clock:
    """A time that moves while somebody waits."""

    def __init__(self) -> None:
        self.s = 0.0

    def now(self) -> float:
        return self.s

    def wait(self, seconds: float) -> None:
        self.s += seconds


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """Returns the note of a predecessor, which was the member `a`."""
    StaticMember("worker-0", tmp_path / "member", list).joined("a")
    return tmp_path / "member"


def waited_s(note: Path, *answers: list[GroupMember]) -> float:
    """Returns how long a process waits; the last answer of the group stays."""
    clock, left = Clock(), list(answers)
    member = StaticMember("worker-0", note, lambda: left.pop(0) if len(left) > 1 else left[0])
    member.require_place(SESSION_TIMEOUT_S, clock.now, clock.wait)
    return clock.s


@pytest.mark.parametrize(
    "found",
    [
        [],
        [MINE],
        [OTHER._replace(instance_id="worker-1")],
        [OTHER._replace(instance_id=None)],
    ],
    ids=["nobody", "its predecessor", "another name", "a dynamic member"],
)
def test_a_process_takes_its_place_at_once_unless_another_has_it(note: Path, found: list[GroupMember]) -> None:
    assert waited_s(note, found) == 0


def test_a_process_waits_until_kafka_has_expelled_a_dead_member_with_another_state_directory(note: Path) -> None:
    assert 0 < waited_s(note, [OTHER], [OTHER], []) < SESSION_TIMEOUT_S


def test_a_process_with_a_new_state_directory_has_no_predecessor(tmp_path: Path) -> None:
    assert waited_s(tmp_path / "member", [MINE], []) > 0


def test_a_process_ends_if_another_keeps_its_place_for_longer_than_a_dead_one_could(note: Path) -> None:
    with pytest.raises(
        InstanceTakenError, match=r"same TRACEWEIR_GROUP_INSTANCE_ID \('worker-0'\).* from /10\.0\.0\.2"
    ):
        waited_s(note, [MINE._replace(instance_id="worker-1"), OTHER])


def test_the_wait_ends_after_the_session_timeout(note: Path) -> None:
    clock = Clock()
    with pytest.raises(InstanceTakenError):
        StaticMember("worker-0", note, lambda: [OTHER]).require_place(SESSION_TIMEOUT_S, clock.now, clock.wait)
    assert SESSION_TIMEOUT_S < clock.s <= SESSION_TIMEOUT_S + MARGIN_S


def test_a_start_asks_again_while_no_broker_answers(note: Path) -> None:
    clock = Clock()

    def members() -> list[GroupMember]:
        if clock.s < SESSION_TIMEOUT_S:
            raise KafkaUnreachableError("not yet")
        return [MINE]

    StaticMember("worker-0", note, members).require_place(SESSION_TIMEOUT_S, clock.now, clock.wait)
    assert clock.s == SESSION_TIMEOUT_S


def test_only_another_process_in_its_place_is_a_successor(note: Path) -> None:
    found = [MINE]
    member = StaticMember("worker-0", note, lambda: found)
    assert member.successor() is None
    found[:] = []
    assert member.successor() is None
    found[:] = [OTHER]
    assert isinstance(member.successor(), InstanceTakenError)
    member.joined("b")
    assert member.successor() is None


def test_a_process_without_an_answer_joins_its_group_again(note: Path) -> None:
    def unreachable() -> list[GroupMember]:
        raise KafkaUnreachableError("no broker")

    assert StaticMember("worker-0", note, unreachable).successor() is None
