"""An open transaction has an age from the moment at which the last stable offset stands still."""

from __future__ import annotations

from aiokafka import TopicPartition

from traceweir.streams.base.stages.base import End
from traceweir.streams.worker.runtime.open_transactions import OpenTransactions

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def held(stable: int, at: float) -> End:
    return End(stable, stable, at, held_back=True)


def test_the_age_grows_while_the_stable_offset_stands_still() -> None:
    noted = OpenTransactions()
    for at in (100.0, 110.0, 145.0):
        noted.note({A0: held(7, at)})
    assert noted.ages_s() == {"a": 45.0}


def test_a_stable_offset_that_moves_has_no_age() -> None:
    noted = OpenTransactions()
    for stable, at in enumerate((100.0, 110.0, 145.0)):
        noted.note({A0: held(stable, at)})
    assert noted.ages_s() == {"a": 0.0}


def test_the_age_ends_with_the_transaction() -> None:
    noted = OpenTransactions()
    noted.note({A0: held(7, 100.0)})
    noted.note({A0: End(9, 9, 160.0)})
    assert noted.ages_s() == {"a": 0.0}
    noted.note({A0: held(9, 170.0)})
    assert noted.ages_s() == {"a": 0.0}


def test_a_topic_has_the_age_of_its_oldest_partition() -> None:
    noted = OpenTransactions()
    noted.note({A0: held(7, 100.0), A1: End(3, 3, 100.0), B0: End(3, 3, 100.0)})
    noted.note({A0: held(7, 130.0), A1: held(3, 130.0), B0: End(3, 3, 130.0)})
    assert noted.ages_s() == {"a": 30.0, "b": 0.0}


def test_a_partition_that_moved_away_is_forgotten() -> None:
    noted = OpenTransactions()
    noted.note({A0: held(7, 100.0)})
    noted.note({})
    assert noted.ages_s() == {}
    noted.note({A0: held(7, 200.0)})
    assert noted.ages_s() == {"a": 0.0}
