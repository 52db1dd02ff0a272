"""Tests that a body never takes more memory than its limit."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from traceweir.streams.tools.endpoint.bodies import MAX_MEMBERS, read_body
from traceweir.streams.tools.endpoint.refusals import Reason, Refusal


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(body), 65_536):
        yield body[begin : begin + 65_536]


async def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb, held = gzip.compress(bytes(50_000_000), 1), 0

    def hold(size: int) -> None:
        nonlocal held
        held += size

    tracemalloc.start()
    with pytest.raises(Refusal) as refused:
        await read_body(in_chunks(bomb), gzip=True, max_bytes=1_000_000, hold=hold)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused.value.reason is Reason.TOO_LARGE
    assert held <= 1_000_000
    assert peak < 3_000_000


async def test_a_body_of_the_limit_is_read() -> None:
    body = bytes(1_000_000)
    assert (
        await read_body(in_chunks(gzip.compress(body)), gzip=True, max_bytes=len(body), hold=lambda size: None) == body
    )


async def test_bytes_are_counted_before_they_are_kept() -> None:
    def refuse(size: int) -> None:
        raise Refusal(Reason.OVERLOADED, "no room")

    with pytest.raises(Refusal, match="no room"):
        await read_body(in_chunks(b"body"), gzip=False, max_bytes=10, hold=refuse)


async def test_members_of_gzip_are_read_up_to_a_limit() -> None:
    member = gzip.compress(b"x")
    several = member * MAX_MEMBERS
    body = await read_body(in_chunks(several), gzip=True, max_bytes=1_000_000, hold=lambda size: None)
    assert body == b"x" * MAX_MEMBERS
    with pytest.raises(Refusal, match="more than 1000 members") as refused:
        await read_body(in_chunks(several + member), gzip=True, max_bytes=1_000_000, hold=lambda size: None)
    assert refused.value.reason is Reason.BAD_DATA
