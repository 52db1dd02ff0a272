"""A time on 1 January 1970 in UTC is unknown, whatever its time zone; all others are known."""

from __future__ import annotations

from datetime import datetime

import pytest

from traceweir.schemas.times import known_time


@pytest.mark.parametrize("text", ["1969-12-31T19:00:00-05:00", "1970-01-01T00:00:00Z", "1970-01-02T08:59:59+09:00"])
def test_a_time_on_the_first_day_is_unknown(text: str) -> None:
    assert known_time(datetime.fromisoformat(text)) is None


@pytest.mark.parametrize("text", ["1969-12-31T18:59:59-05:00", "1970-01-02T09:00:00+09:00", "2026-01-01T00:00:00Z"])
def test_a_time_on_another_day_is_known(text: str) -> None:
    assert known_time(datetime.fromisoformat(text)) == datetime.fromisoformat(text)
