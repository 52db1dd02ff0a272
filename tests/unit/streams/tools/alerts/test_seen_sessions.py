"""Sessions that have counted are known today and tomorrow, within a bound, and after a restart."""

from __future__ import annotations

import numpy as np

from traceweir.streams.tools.alerts.seen_sessions import SeenSessions, session_digests


def digests(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(numbers, np.uint64)


def known(seen: SeenSessions, *numbers: int) -> list[bool]:
    found: list[bool] = seen.contains(digests(*numbers)).tolist()
    return found


def test_a_day_is_forgotten_after_the_next_one() -> None:
    seen = SeenSessions()
    seen.add(1, digests(5))
    seen.add(2, digests(6))
    assert known(seen, 5, 6, 7) == [True, True, False]
    seen.add(3, digests(7))
    assert known(seen, 5, 6, 7) == [False, True, True]


def test_those_that_counted_first_are_forgotten_beyond_the_bound() -> None:
    seen = SeenSessions(most=2)
    for number in (1, 2, 3):
        seen.add(1, digests(number))
        list(seen.changes())
    assert known(seen, 1, 2, 3) == [False, True, True]


def test_rows_hold_all_that_is_known_and_forgotten_rows_are_removed() -> None:
    rows: dict[int, bytes] = {}
    seen = SeenSessions()
    for day in (1, 1, 2, 3):
        seen.add(day, digests(10 + day))
        for number, row in seen.changes():
            if row is None:
                del rows[number]
            else:
                rows[number] = row
        again = SeenSessions()
        again.load(rows)
        assert known(again, 11, 12, 13) == known(seen, 11, 12, 13)
    assert len(rows) == 2
    again.add(4, digests(14))
    assert dict(again.changes()).keys() == {2, 4}


def test_a_digest_depends_on_the_stream_the_day_and_the_session() -> None:
    assert (
        len({each for salt in (b"a", b"b") for day in (1, 2) for each in session_digests(salt, day, "xy").tolist()})
        == 8
    )
