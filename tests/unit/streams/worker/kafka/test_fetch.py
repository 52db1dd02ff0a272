"""Tests that a fetch returns every record once and unchanged, whatever header names and batches are between them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from tests.support.batches import with_checksum, with_codec

from traceweir.streams.base.stages.base import UnreadableBatch
from traceweir.streams.worker.kafka.fetch import Batches, ParsedRecords, records_of
from traceweir.streams.worker.kafka.unreadable_batch import UnreadableBatchError

pytestmark = pytest.mark.usefixtures("limited_decompression")

NONE, GZIP, SNAPPY, LZ4, ZSTD, UNKNOWN = 0, 1, 2, 3, 4, 6
READ_COMMITTED = 1

Content = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
CONTENTS: list[Content] = [
    (b"k", b"one", []),
    (None, b"two", [("plain", b"1"), ("NAME", b"2"), ("none", None)]),
    (b"", None, [("NAME", None)]),
    (b"k", b"x" * 5_000, [("h", b"")]),
]


def batch(first_offset: int, contents: Sequence[Content], codec: int = NONE, name: bytes = b"NAME") -> bytes:
    """Returns a batch as a broker stores it, with `NAME` replaced by other bytes of the same length."""
    builder = DefaultRecordBatchBuilder(2, codec, False, 7, 0, 0, 1 << 20)
    for number, (key, value, headers) in enumerate(contents):
        assert builder.append(number, timestamp=1_000 + number, key=key, value=value, headers=headers)
    raw = bytearray(builder.build())
    struct.pack_into(">q", raw, 0, first_offset)
    return with_checksum(bytearray(raw.replace(b"NAME", name)))


def read(
    data: bytes,
    begin: int = 0,
    topics: Sequence[str] = ("t",),
    aborted: Any = None,
    batches_of: Sequence[str] = ("t",),
) -> list[Any]:
    place = TopicPartition("t", 0)
    return list(
        ParsedRecords(topics, batches_of, place, Batches(data), aborted, begin, None, None, True, READ_COMMITTED)
    )


def contents(records: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value, [tuple(header) for header in r.headers]) for r in records]


def with_header_name(found: list[tuple[Any, ...]], name: str) -> list[tuple[Any, ...]]:
    return [(*rest, [(name if n == "NAME" else n, content) for n, content in headers]) for *rest, headers in found]


@pytest.mark.parametrize("begin", [0, 3, 4, 5, 6])
def test_a_header_name_that_is_not_utf8_neither_loses_nor_repeats_a_record(begin: int) -> None:
    first = [batch(0, CONTENTS)] if begin < 4 else []  # a fetch starts with the batch that contains its first record
    good = b"".join([*first, batch(4, CONTENTS), batch(8, CONTENTS)])
    bad = b"".join([*first, batch(4, CONTENTS, name=b"N\xff\xc3E"), batch(8, CONTENTS)])
    expected = contents(read(good, begin))
    assert [offset for offset, *_ in expected] == list(range(begin, 12))

    middle = slice(max(4 - begin, 0), 8 - begin)
    expected[middle] = with_header_name(expected[middle], r"N\xff\xc3E")
    assert contents(read(bad, begin)) == expected


def test_header_names_that_are_not_utf8_are_read_in_every_batch_of_a_fetch() -> None:
    found = read(b"".join(batch(at, CONTENTS, name=b"\xff\xff\xff\xff") for at in (0, 4, 8)))
    assert [record.offset for record in found] == list(range(12))
    assert {name for record in found for name, _ in record.headers} == {"plain", r"\xff\xff\xff\xff", "none", "h"}


def test_a_header_name_that_is_not_utf8_is_read_in_a_compressed_batch() -> None:
    import gzip

    raw = batch(0, CONTENTS, GZIP)
    body = gzip.compress(gzip.decompress(raw[61:]).replace(b"NAME", b"\xffAME"))
    expected = with_header_name(contents(read(batch(0, CONTENTS))), r"\xffAME")
    assert contents(read(with_codec(raw, GZIP, body))) == expected


def test_records_of_an_aborted_transaction_are_not_read() -> None:
    raw = bytearray(batch(0, CONTENTS, name=b"\xffAME"))
    struct.pack_into(">h", raw, 21, 0x10)  # transactional
    struct.pack_into(">q", raw, 43, 99)  # producer id
    data = with_checksum(raw) + batch(4, CONTENTS, name=b"\xffAME")
    assert [record.offset for record in read(data, aborted=[(99, 0)])] == [4, 5, 6, 7]


def test_a_corrupt_batch_is_rejected() -> None:
    raw = bytearray(batch(0, CONTENTS, name=b"\xffAME"))
    raw[-1] ^= 1
    with pytest.raises(CorruptRecordException):
        read(bytes(raw))


def test_a_batch_in_the_old_format_without_headers_is_read() -> None:
    builder = LegacyRecordBatchBuilder(1, NONE, 1 << 20)
    builder.append(0, timestamp=5, key=b"k", value=b"v")
    (record,) = read(bytes(builder.build()))
    assert (record.offset, record.timestamp, record.key, record.value) == (0, 5, b"k", b"v")


def test_only_records_of_other_topics_have_a_topic_attribute() -> None:
    assert [record.topic for record in read(batch(0, CONTENTS), topics=())] == ["t"] * 4
    assert not hasattr(read(batch(0, CONTENTS))[0], "topic")


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_compressed_batch_is_read(codec: int) -> None:
    assert contents(read(batch(4, CONTENTS, codec), 4)) == contents(read(batch(4, CONTENTS), 4))


@pytest.mark.parametrize(
    ("codec", "name"),
    [(GZIP, "gzip"), (SNAPPY, "snappy"), (LZ4, "lz4"), (ZSTD, "zstd"), (UNKNOWN, "the unknown codec 6")],
)
def test_a_batch_that_cannot_be_decompressed_is_one_record_between_its_neighbours(codec: int, name: str) -> None:
    bad = with_codec(batch(4, CONTENTS), codec, b"no such stream")
    found = read(batch(0, CONTENTS) + bad + batch(8, CONTENTS))
    assert [record.offset for record in found] == [0, 1, 2, 3, 7, 8, 9, 10, 11]
    unreadable = found[4]
    assert isinstance(unreadable, UnreadableBatch)
    assert (unreadable.topic, unreadable.partition, unreadable.key, unreadable.headers) == ("t", 0, None, ())
    assert (unreadable.value, unreadable.timestamp) == (bad, 1_003)
    assert unreadable.problem.startswith(
        f"offsets 4 to 7, a batch of 4 records compressed with {name}, cannot be read ("
    )


def test_a_batch_of_damaged_records_is_one_record_after_those_before_the_damage() -> None:
    raw = bytearray(batch(4, [(None, b"one", []), (None, b"two", []), (None, b"three", [])]))
    raw[raw.index(b"two") - 1] = 0x7E  # the length of the value
    found = read(with_checksum(raw) + batch(7, CONTENTS[:1]), 4)
    assert [(record.offset, record.value) for record in found] == [(4, b"one"), (6, bytes(raw)), (7, b"one")]
    assert "offsets 5 to 6, a batch of 3 records without compression, cannot be read" in found[1].problem


def test_the_next_fetch_begins_after_an_unreadable_batch() -> None:
    bad = with_codec(batch(4, CONTENTS), UNKNOWN)
    place = TopicPartition("t", 0)
    fetch = ParsedRecords(["t"], ["t"], place, Batches(bad), None, 4, None, None, True, READ_COMMITTED)
    assert [record.offset for record in fetch] == [7]
    assert fetch.next_fetch_offset == 8


def test_a_batch_that_was_read_before_comes_not_again() -> None:
    bad = with_codec(batch(4, CONTENTS), UNKNOWN)
    assert [record.offset for record in read(bad + batch(8, CONTENTS[:1]), 8)] == [8]


def test_an_unreadable_batch_of_an_aborted_transaction_is_not_read() -> None:
    raw = bytearray(batch(0, CONTENTS))
    struct.pack_into(">q", raw, 43, 99)  # producer id
    raw[22] |= 0x10  # transactional
    data = with_codec(bytes(raw), UNKNOWN) + batch(4, CONTENTS)
    assert [record.offset for record in read(data, aborted=[(99, 0)])] == [4, 5, 6, 7]


def test_an_unreadable_batch_of_another_topic_is_an_error_that_says_where_it_is() -> None:
    bad = with_codec(batch(4, CONTENTS), UNKNOWN)
    with pytest.raises(
        UnreadableBatchError, match=r"^t\[0\]: offsets 4 to 7, a batch .* unknown codec 6, cannot be read"
    ):
        read(bad, 4, batches_of=())


def test_bytes_that_a_broker_has_changed_are_an_error_in_every_topic() -> None:
    raw = bytearray(batch(4, CONTENTS))
    raw[-1] ^= 1
    with pytest.raises(UnreadableBatchError, match=r"^t\[0\]: offsets 4 to 7 have another checksum"):
        read(bytes(raw), 4)


def test_the_records_of_a_batch_are_seen_as_soon_as_it_can_be_decompressed() -> None:
    raw = batch(4, CONTENTS, ZSTD)
    assert contents(records_of(raw)) == contents(read(raw, 4))
    with pytest.raises(ValueError, match=r"its batch still cannot be read .*Unknown compression codec"):
        records_of(with_codec(raw, UNKNOWN))
    with pytest.raises(ValueError, match="its batch still cannot be read"):
        records_of(raw[:40])


def test_batches_that_are_very_large_when_decompressed_come_with_several_fetches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("traceweir.streams.worker.kafka.fetch.MAX_BATCH_BYTES", 20_000)
    data = b"".join(batch(at, CONTENTS, ZSTD) for at in range(0, 40, 4))
    found, begin = list[int](), 0
    fetches = 0
    while begin < 40:
        some = [record.offset for record in read(data[data.index(batch(begin, CONTENTS, ZSTD)) :], begin)]
        assert some, "a fetch without progress"
        found, begin, fetches = [*found, *some], some[-1] + 1, fetches + 1
    assert (found, fetches) == (list(range(40)), 3)
