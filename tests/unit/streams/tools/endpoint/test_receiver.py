"""A request that its client gives up keeps its place until its work has ended."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.support.endpoint import MemoryWriter

from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.otlp.acceptance import accept
from traceweir.streams.tools.endpoint.receiver import LARGE_BYTES, Receiver
from traceweir.streams.tools.endpoint.refusals import Refusal


async def test_cancelled_checks_of_large_bodies_run_one_at_a_time_and_count_until_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_end, real = threading.Semaphore(0), threading.Event(), accept
    running: list[int] = []

    def check(*arguments: Any, **options: Any) -> Any:
        running.append(1)
        begun.release()
        may_end.wait(20)
        running.pop()
        return real(*arguments, **options)

    monkeypatch.setattr("traceweir.streams.tools.endpoint.receiver.accept", check)
    receiver, body = Receiver(Settings(), MemoryWriter()), b"x" * LARGE_BYTES

    async def one_request() -> None:
        admission = receiver.begin(None)
        try:
            admission.hold_bytes(len(body))
            await receiver.receive(admission, "spans", body, json=True)
        finally:
            admission.release()

    requests = [asyncio.create_task(one_request()) for _ in range(3)]
    await asyncio.to_thread(begun.acquire)
    for request in requests:
        request.cancel()
    await asyncio.gather(*requests, return_exceptions=True)

    assert (len(running), receiver.in_flight.requests, receiver.in_flight.bytes) == (1, 3, 3 * LARGE_BYTES)
    may_end.set()
    async with asyncio.timeout(20):
        while receiver.in_flight.requests:
            await asyncio.to_thread(begun.acquire, timeout=0.1)
    assert receiver.in_flight.bytes == 0


async def test_an_honest_body_does_not_wait_for_the_largest_ones_that_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_end, real, order = threading.Event(), accept, list[int]()

    def check(body: bytes, *arguments: Any, **options: Any) -> Any:
        may_end.wait(20)
        order.append(len(body))
        return real(body, *arguments, **options)

    monkeypatch.setattr("traceweir.streams.tools.endpoint.receiver.accept", check)
    receiver = Receiver(Settings(), MemoryWriter())
    large = b'{"resourceSpans": []' + b" " * 5_000_000 + b"}"
    honest = b'{"resourceSpans": []' + b" " * LARGE_BYTES + b"}"

    async def send(body: bytes) -> None:
        admission = receiver.begin(None)
        await receiver.receive(admission, "spans", body, json=True)
        admission.release()

    sent = [asyncio.create_task(send(body)) for body in (large, large, large, large, honest)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(*sent)
    assert order.index(len(honest)) == 1


SECRET = "sk-proj-Abcd1234Efgh5678Ijkl9012Mnop3456"


def body_of(*trace_ids: str) -> bytes:
    spans = [{"traceId": each, "spanId": "0000000000000001", "name": "x"} for each in trace_ids]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


async def test_values_of_a_refused_request_are_redacted_in_the_log_and_not_in_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    receiver = Receiver(Settings(), MemoryWriter())
    with pytest.raises(Refusal, match=SECRET) as refused:
        await receiver.receive(receiver.begin(None), "spans", body_of(f"alice@example.com {SECRET}"), json=True)
    receiver.refused(refused.value)
    (line,) = caplog.messages
    assert "traceId is '[REDACTED:email] [REDACTED:" in line
    assert SECRET not in line


async def test_values_of_rejected_spans_are_redacted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver(Settings(), MemoryWriter())
    found = await receiver.receive(receiver.begin(None), "spans", body_of("0" * 31 + "1", SECRET), json=True)
    (line,) = caplog.messages
    assert (found.rejected, "traceId is '[REDACTED:" in line, SECRET in line) == (1, True, False)
