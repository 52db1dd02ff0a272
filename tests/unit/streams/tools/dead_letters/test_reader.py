"""Tests dead letters: their wire format, their selection, the marks of replayed dead letters, and replayed records."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from traceweir.schemas.dead_letter import KEPT_BYTES, DeadLetter, is_replay, marked
from traceweir.streams.base.topics import Topics
from traceweir.streams.tools.dead_letters.reader import DeadLetterFilter, FoundDeadLetter, LetterId, Marks
from traceweir.streams.tools.dead_letters.replay import NotReplayable, resend

TOPICS = Topics.of("acme.")
LETTER = DeadLetter(
    reason="late",
    detail="too late",
    stage="assemble",
    topic=TOPICS.traces,
    partition=2,
    offset=17,
    key=b"\xffkey",
    value=b"\xff\x00value",
    headers=[("traceparent", b"00"), ("binary", b"\xff\x00"), ("none", None)],  # type: ignore[list-item]
    timestamp=1_000,
)


def found(letter: DeadLetter = LETTER, at: int = 5_000, *, replayed: bool = False, **changes: Any) -> FoundDeadLetter:
    return FoundDeadLetter(LetterId(2, 40), at, replace(letter, **changes), replayed)


# --- wire format


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"value": None, "key": None, "headers": []},
        {"origin": TOPICS.traces, "topic": TOPICS.strays},
        {"replay_of": "2:17"},
        {"left_out": 70_000, "key": None, "headers": []},
        {"timestamp": None},
    ],
    ids=str,
)
def test_a_dead_letter_reads_back_unchanged(changes: dict[str, Any]) -> None:
    letter = replace(LETTER, **changes)
    assert DeadLetter.read(letter.key, letter.wire_value(), letter.wire_headers()) == letter


def test_a_record_with_a_forged_mark_becomes_an_ordinary_dead_letter() -> None:
    letter = replace(LETTER, headers=[("traceweir.replayed", b"2:3"), ("traceweir.reason", b"mine")])
    assert marked(letter.wire_headers()) is None
    assert DeadLetter.read(b"", b"", letter.wire_headers()).reason == "late"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("traceweir.replayed", b"2:3")],
        [*LETTER.wire_headers(), ("traceweir.offset", b"x")],
        [*LETTER.wire_headers(), ("traceweir.offset", None)],
        [*LETTER.wire_headers(), ("traceweir.detail", b"\xff")],
    ],
    ids=["nothing", "a mark", "no number", "no value", "no UTF-8"],
)
def test_a_record_that_is_not_a_dead_letter_is_rejected_with_the_reason(headers: list[tuple[str, bytes]]) -> None:
    with pytest.raises(ValueError, match=r"not a dead letter|invalid literal|can't decode"):
        DeadLetter.read(b"k", b"v", headers)


# --- selection


@pytest.mark.parametrize("text", ["", "2", "2:", ":17", "2:-1", "a:b", "2:17:1", " 2:17", "٢:17", f"2:{'9' * 20}"])
def test_an_invalid_id_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="for example 2:17"):
        LetterId.parse(text)


def test_an_overlong_id_is_cut_in_the_message() -> None:
    with pytest.raises(ValueError, match="for example 2:17") as raised:
        LetterId.parse("2:" + "x" * 100_000)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("wanted", "selected"),
    [
        (DeadLetterFilter(), True),
        (DeadLetterFilter(ids=frozenset({LetterId(2, 40)})), True),
        (DeadLetterFilter(ids=frozenset({LetterId(2, 41)})), False),
        (DeadLetterFilter(reasons=frozenset({"late", "empty"})), True),
        (DeadLetterFilter(reasons=frozenset({"empty"})), False),
        (DeadLetterFilter(stages=frozenset({"assemble"})), True),
        (DeadLetterFilter(stages=frozenset({"gate"})), False),
        (DeadLetterFilter(topics=frozenset({TOPICS.traces})), True),
        (DeadLetterFilter(topics=frozenset({TOPICS.strays})), False),
        (DeadLetterFilter(since=5_000), True),
        (DeadLetterFilter(since=5_001), False),
        (DeadLetterFilter(until=5_001), True),
        (DeadLetterFilter(until=5_000), False),
        (DeadLetterFilter(reasons=frozenset({"late"}), until=5_000), False),
    ],
)
def test_a_dead_letter_is_selected_if_it_matches_every_filter(wanted: DeadLetterFilter, selected: bool) -> None:
    assert wanted.matches(found()) is selected


# --- marks


def test_a_mark_applies_to_an_earlier_record_of_the_same_partition() -> None:
    marks = Marks(100, 120)
    for number, name in [(110, "3:100"), (110, "3:109"), (119, "3:118")]:
        marks.add(name, SimpleNamespace(partition=3, offset=number))
    assert [offset for offset in range(100, 120) if offset in marks] == [100, 109, 118]


@pytest.mark.parametrize("name", ["2:105", "3:110", "3:111", "3:99", "3:500", "nonsense", "3:-1", ""])
def test_an_invalid_mark_is_ignored(name: str) -> None:
    marks = Marks(100, 120)
    marks.add(name, SimpleNamespace(partition=3, offset=110))
    assert not any(offset in marks for offset in range(100, 120))


# --- replay


def test_a_replayed_record_is_unchanged_except_for_its_headers_and_its_timestamp() -> None:
    output = resend(found(), TOPICS, 4)

    assert output[:4] == (TOPICS.traces, 2, b"\xffkey", b"\xff\x00value")
    place = ("traceweir.first_place", b"acme.traces-2@17")
    more = [("traceweir.replay", b"2:40"), place, ("traceweir.timestamp", b"1000")]
    assert list(output.headers) == [*LETTER.headers, *more]
    assert output.timestamp is None
    assert is_replay(output.headers)


def test_a_record_of_a_session_that_was_set_aside_is_replayed_without_a_place() -> None:
    headers = resend(found(offset=-1), TOPICS, 4).headers

    assert is_replay(headers)
    assert "traceweir.first_place" not in dict(headers)


@pytest.mark.parametrize("origin", [TOPICS.traces, TOPICS.invocations])
def test_a_misrouted_record_is_replayed_to_its_original_topic(origin: str) -> None:
    output = resend(found(topic=TOPICS.strays, origin=origin), TOPICS, 4)
    assert (output.topic, output.partition) == (origin, 2)


def test_a_forged_original_topic_has_no_effect() -> None:
    assert resend(found(origin=TOPICS.network), TOPICS, 4).topic == TOPICS.traces
    with pytest.raises(NotReplayable, match=r"'acme.network' is not an input"):
        resend(found(topic=TOPICS.strays, origin=TOPICS.network), TOPICS, 4)


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        (
            {"size": 70_000},
            r"first 65536 of 70000 bytes are kept, and acme.traces\[2\]@17 no longer holds the whole record",
        ),
        ({"left_out": 70_000}, r"key and headers were left out \(70000 bytes\)"),
        ({"topic": TOPICS.strays}, "header with the original topic is missing"),
        ({"topic": "other.traces"}, "'other.traces' is not an input of a stage under this prefix"),
        ({"topic": TOPICS.results}, "'acme.results' is not an input"),
        ({"topic": TOPICS.sessions, "partition": 4}, "has no partition 4"),
        ({"partition": -1}, "has no partition -1"),
        ({"topic": TOPICS.results, "group": "hook", "timestamp": 1, "value": b"{}"}, "its value is no score"),
        ({"key": b"k" * (KEPT_BYTES - 40)}, "with the headers of a replay"),
        ({"value": b"x" * 1_000_000}, "the limit is 1000000 bytes"),
    ],
)
def test_a_dead_letter_that_cannot_be_replayed_is_rejected_with_the_reason(
    changes: dict[str, Any], because: str
) -> None:
    with pytest.raises(NotReplayable, match=because):
        resend(found(**changes), TOPICS, 4)


def test_a_record_of_an_added_partition_is_replayed_to_the_partition_of_its_worker() -> None:
    replayed = resend(found(partition=6), TOPICS, 4)
    assert (replayed.topic, replayed.partition) == (TOPICS.traces, 2)


def test_a_tombstone_is_replayed_as_a_tombstone() -> None:
    assert resend(found(value=None), TOPICS, 4).value is None
