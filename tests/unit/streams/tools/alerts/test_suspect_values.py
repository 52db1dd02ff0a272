"""A value is suspected when it is new, and when it comes back after a day in which others took its place."""

from __future__ import annotations

import msgspec
import pytest
from tests.support.results import make_score

from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.alerts.suspect_values import MOST_LABELS, MOST_VALUES, SuspectRow, SuspectValues
from traceweir.streams.tools.alerts.watched_scores import SUSPECTS, suspects_of


def of(**changes: object) -> tuple[str | None, ...]:
    """Returns what is noted of a score without other values."""
    blank: dict[str, object] = dict.fromkeys(("judge", "model", "metric_digest", "agent_version"))
    return suspects_of(make_score().model_copy(update=blank | changes))


class Stream:
    """Notes scores, minute by minute."""

    def __init__(self) -> None:
        self.values = SuspectValues()
        self.last = 0

    def have(self, minute: int, **changes: object) -> None:
        self.values.note(minute, [of(**changes)], self.last)
        self.last = minute

    def came(self, field: str, earliest: int = 0) -> list[tuple[str, int]]:
        return [(each.value, each.minute) for each in self.values.within(earliest, 10**9) if each.field == field]


def test_a_value_comes_with_its_first_score_and_not_with_the_next_ones() -> None:
    stream = Stream()
    for minute in (5, 6, 5 + 3 * DAY):
        stream.have(minute, agent_version="1")
    assert stream.came("agent_version") == [("1", 5)]


def test_a_version_that_is_rolled_back_to_comes_again() -> None:
    stream = Stream()
    stream.have(5, agent_version="1")
    for hour in range(1, 30):
        stream.have(hour * 60, agent_version="2")
    stream.have(30 * 60, agent_version="1")
    assert sorted(stream.came("agent_version")) == [("1", 30 * 60), ("2", 60)]


def test_a_version_that_shares_the_day_with_another_does_not_come_again() -> None:
    stream = Stream()
    for hour in range(100):
        stream.have(hour * 60, agent_version=str(hour % 2))
    assert stream.came("agent_version") == [("0", 0), ("1", 60)]


def test_after_a_weekend_without_scores_nothing_comes_again() -> None:
    stream = Stream()
    stream.have(5, agent_version="1")
    stream.have(5 + 3 * DAY, agent_version="1")
    assert stream.came("agent_version") == [("1", 5)]


@pytest.mark.parametrize("field", ["metric_digest", "cause"])
def test_how_a_metric_is_measured_and_why_it_is_not_are_suspects(field: str) -> None:
    stream = Stream()
    stream.have(5)
    stream.have(6, **{field: "new"})
    assert stream.came(field) == [("new", 6)]


def test_a_label_of_any_name_is_a_suspect() -> None:
    stream = Stream()
    stream.have(5, labels={"prompt": "v1", "team": "a"})
    stream.have(6, labels={"prompt": "v2", "team": "a"})
    assert stream.came("labels.prompt", earliest=6) == [("v2", 6)]
    assert stream.came("labels.team", earliest=6) == []


def test_a_field_with_too_many_values_is_no_suspect_and_nobody_knows_when_it_came() -> None:
    stream = Stream()
    for number in range(MOST_VALUES + 1):
        stream.have(number, model=f"m{number}", labels={"request": f"r{number}"})
    assert stream.came("model") == stream.came("labels.request") == []
    assert stream.values.unknown == ["model"]


def test_only_the_first_names_of_labels_are_kept() -> None:
    stream = Stream()
    for number in range(2 * MOST_LABELS):
        stream.have(number, labels={f"name{number}": "x"})
    assert sorted(each for each in stream.values.row() if each.startswith("labels.")) == [
        f"labels.name{number}" for number in range(MOST_LABELS)
    ]


def test_the_row_restores_all_and_is_bounded() -> None:
    """The docstring states both sizes."""
    long = {f"n{number}": "l" * 250 for number in range(8)}
    stream = Stream()
    for number in range(MOST_VALUES):
        values = dict.fromkeys(SUSPECTS, f"{number:03}" + "v" * 250)
        stream.have(number, labels={name: f"{number:03}{text}" for name, text in long.items()}, **values)
    row = msgspec.msgpack.encode(stream.values.row())
    assert 150_000 < len(row) < 210_000
    assert SuspectValues(msgspec.msgpack.decode(row, type=SuspectRow)).row() == stream.values.row()
    usual = Stream()
    for number in range(3):
        usual.have(number, model="gpt-5.2-mini", agent_version=f"1.{number}", labels={"prompt": f"v{number}"})
    assert len(msgspec.msgpack.encode(usual.values.row())) < 1_000
