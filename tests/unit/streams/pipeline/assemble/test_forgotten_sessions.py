"""Forgotten sessions: the remembered ones are found, and of the others the time of the last close remains."""

from __future__ import annotations

import pytest

from traceweir.streams.pipeline.assemble import forgotten_sessions
from traceweir.streams.pipeline.assemble.forgotten_sessions import CHUNK_IDS, ForgottenSessions


def name(number: int) -> bytes:
    return b"session %d" % number


def known(sessions: ForgottenSessions, numbers: range, timestamp: int) -> list[int]:
    return [number for number in numbers if sessions.can_have(name(number), timestamp)]


class Table(dict[bytes, bytes]):
    """The rows of a partition."""

    def cut(self, sessions: ForgottenSessions) -> int:
        """Writes the changed rows, and returns their number."""
        rows = sessions.rows()
        for key, row in rows:
            self.pop(key, None)
            if row is not None:
                self[key] = row
        return len(rows)

    def loaded(self, most: int, *, knows_all: bool = True) -> ForgottenSessions:
        sessions = ForgottenSessions(most)
        sessions.load(self, knows_all=knows_all)
        return sessions


@pytest.mark.parametrize("recent", [10, 100_000])
@pytest.mark.parametrize("every", [1, 7, 1_000])
def test_each_remembered_session_is_found_and_no_other_also_after_a_restart(
    recent: int, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgotten_sessions, "RECENT_IDS", recent)
    sessions, table = ForgottenSessions(1_000), Table()
    for number in range(300):
        sessions.add(name(number), number)
        if number % every == 0:
            table.cut(sessions)
    table.cut(sessions)

    for each in (sessions, table.loaded(1_000)):
        assert known(each, range(600), 1) == [*range(300)]
    assert len(table) == -(-300 // CHUNK_IDS)


def test_beyond_the_most_the_last_close_of_the_dropped_sessions_remains() -> None:
    sessions, table = ForgottenSessions(CHUNK_IDS), Table()
    for number in range(CHUNK_IDS + 1):
        sessions.add(name(number), 1_000 + number)
        table.cut(sessions)

    last_dropped = 1_000 + CHUNK_IDS - 1
    for each in (sessions, table.loaded(CHUNK_IDS)):
        assert each.can_have(b"unknown", last_dropped)
        assert not each.can_have(b"unknown", last_dropped + 1)
        assert each.can_have(name(CHUNK_IDS), last_dropped + 1)
    assert len(table) == 1


def test_a_partition_without_rows_has_forgotten_nothing_and_says_so_once() -> None:
    table = Table()
    sessions = table.loaded(10)
    sessions.note_time(5_000)

    assert not sessions.can_have(b"unknown", 1)
    assert (table.cut(sessions), table.cut(sessions)) == (1, 0)
    assert not table.loaded(10).can_have(b"unknown", 1)


def test_rows_of_an_earlier_version_can_have_forgotten_everything_until_now() -> None:
    table = Table({b"#": b"{}"})
    sessions = table.loaded(10)

    assert sessions.can_have(b"unknown", 10**15)
    assert table.cut(sessions) == 0  # a row would say that nothing was forgotten
    sessions.note_time(5_000)
    sessions.note_time(9_000)
    assert sessions.can_have(b"unknown", 5_000)
    assert not sessions.can_have(b"unknown", 5_001)
    table.cut(sessions)
    assert table.loaded(10).can_have(b"unknown", 5_000)
    assert not table.loaded(10).can_have(b"unknown", 5_001)


def test_an_earlier_version_between_two_workers_can_have_forgotten_everything_until_now() -> None:
    table = Table()
    sessions = table.loaded(10)
    sessions.add(name(1), 1_000)
    table.cut(sessions)

    sessions = table.loaded(10, knows_all=False)
    sessions.note_time(5_000)
    table.cut(sessions)
    for each in (sessions, table.loaded(10)):
        assert each.can_have(b"unknown", 5_000)
        assert not each.can_have(b"unknown", 5_001)
        assert each.can_have(name(1), 5_001)


def test_rows_of_a_newer_format_are_refused() -> None:
    table = Table()
    table.cut(ForgottenSessions(10))
    (key,) = table
    table[key] = b"\2" + table[key][1:]

    with pytest.raises(ValueError, match="row of forgotten sessions of format 2; this version reads 1"):
        table.loaded(10)
