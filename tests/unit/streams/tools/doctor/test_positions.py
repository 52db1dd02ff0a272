"""Stored offsets are compared with the logs as a takeover does, and each input that does not fit has one sentence."""

from __future__ import annotations

from aiokafka import TopicPartition

from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.positions import TakeoverCheck, check_positions, compare
from traceweir.streams.tools.doctor.stored_offsets import Stored

IDS = {"events": "cluster/new", "traces": "cluster/traces"}


def compared(
    *partitions: Stored, begins: dict[str, int] | None = None, ends: dict[str, int] | None = None
) -> TakeoverCheck:
    """Compares with logs from `begins` (0) to `ends` (100), which are the same for all partitions."""
    places = [TopicPartition(topic, number) for number, each in enumerate(partitions) for topic in each.offsets]
    return compare(
        dict(enumerate(partitions)),
        {place: (begins or {}).get(place.topic, 0) for place in places},
        {place: (ends or {}).get(place.topic, 100) for place in places},
        IDS,
    )


def stored(ids: dict[str, str] | None = None, *, is_whole: bool = True, **offsets: int) -> Stored:
    return Stored(offsets, IDS if ids is None else ids, is_whole)


def test_offsets_within_the_same_logs_fit() -> None:
    found = compared(stored(events=7, traces=100), stored(events=0))

    assert found == TakeoverCheck(compared=3)
    assert list(check_positions(found)) == [Finding("positions", "ok", "the stored offsets fit the logs of the inputs")]


def test_an_input_that_was_created_again_is_read_from_its_beginning_although_its_log_is_longer_now() -> None:
    former = {"events": "cluster/former", "traces": "cluster/traces"}
    found = compared(stored(former, events=7, traces=9), stored(former, events=3), stored(events=3))

    (sentence,) = found.changed
    assert sentence == (
        "events was deleted and created again since a worker last read it: a worker reads it from its beginning (partitions 0, 1)"
    )
    assert list(check_positions(found)) == [Finding("positions", "warning", sentence)]


def test_records_that_were_removed_unread_are_counted() -> None:
    found = compared(stored(events=7), stored(events=2), stored(events=9), begins={"events": 10})

    (sentence,) = found.lost
    assert sentence.startswith("11 offsets of events were removed before a worker read them (partitions 0, 1): ")
    assert sentence.endswith("a worker reads on after them")
    assert [finding.state for finding in check_positions(found)] == ["failure"]


def test_a_log_that_ends_before_the_stored_offset_is_named_with_what_a_worker_does() -> None:
    found = compared(stored(events=101), stored({}, traces=101))

    lost, again = found.changed
    assert lost == (
        "events ends before the stored offset, because the log has lost records that were read: a worker reads on from its "
        "end (partition 0)"
    )
    assert again == (
        "traces ends before the stored offset, so it was created again: a worker reads it from its beginning (partition 1)"
    )


def test_a_log_without_records_that_has_lost_records_is_not_taken_for_a_new_one() -> None:
    found = compared(stored(events=9), begins={"events": 5}, ends={"events": 5})

    (sentence,) = found.changed
    assert "the log has lost records that were read" in sentence


def test_offsets_of_another_cluster_let_no_worker_start() -> None:
    found = compared(stored({"events": "other/new"}, events=7), stored({"events": "other/new"}, events=7))

    (sentence,) = found.refused
    assert sentence.startswith("the state of events/0 belongs to another cluster (other; this one is cluster)")
    assert [finding.state for finding in check_positions(found)] == ["failure"]


def test_a_changelog_that_was_not_read_far_enough_is_named_beside_what_was_found() -> None:
    found = compared(stored({}, events=7, is_whole=False), stored(events=1), begins={"events": 10})

    assert len(found.lost) == 1
    (sentence,) = found.unchecked
    assert sentence.endswith("an input which was created again can be overlooked (partition 0)")
    assert [finding.state for finding in check_positions(found)] == ["failure", "not checked"]


def test_before_the_first_checkpoint_there_is_nothing_to_compare() -> None:
    assert list(check_positions(compared(Stored({}, {}, is_whole=True)))) == [
        Finding("positions", "not checked", "no worker has stored offsets yet")
    ]


def test_the_offset_of_an_added_partition_is_compared_with_its_own_log() -> None:
    places = {TopicPartition("events", number): 0 for number in (0, 1, 3)}
    added = Stored({"events": 7, "events/3": 9}, {"events": "cluster/new", "events/3": "cluster/former"}, is_whole=True)
    found = compare({0: stored(events=7), 1: added}, places, dict.fromkeys(places, 100), IDS)
    assert (found.compared, [sentence[-13:] for sentence in found.changed]) == (3, ["(partition 3)"])
