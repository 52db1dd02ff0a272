"""Tests that a fetch returns every record once and unchanged, even if a header name is not UTF-8."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from traceweir.streams.kafka.fetch import Batches, ParsedRecords

CRC_AT, CRC_FROM = 17, 21
NONE, GZIP = 0, 1
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
    return with_checksum(raw.replace(b"NAME", name))


def with_checksum(raw: bytearray) -> bytes:
    struct.pack_into(">I", raw, CRC_AT, calc_crc32c(bytes(raw[CRC_FROM:])))
    return bytes(raw)


def read(data: bytes, begin: int = 0, topics: Sequence[str] = ("t",), aborted: Any = None) -> list[Any]:
    place = TopicPartition("t", 0)
    return list(ParsedRecords(topics, place, Batches(data), aborted, begin, None, None, True, READ_COMMITTED))


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

    raw = bytearray(batch(0, CONTENTS, GZIP))
    body = gzip.compress(gzip.decompress(raw[61:]).replace(b"NAME", b"\xffAME"))
    struct.pack_into(">i", raw, 8, 61 - 12 + len(body))
    assert contents(read(with_checksum(raw[:61] + body))) == with_header_name(
        contents(read(batch(0, CONTENTS))), r"\xffAME"
    )


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
