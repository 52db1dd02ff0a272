"""A batch that cannot be decompressed is one dead letter of any input, and costs no other record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from tests.audit.committed import Committed
from tests.support.batches import send_claiming
from tests.support.workers import Fleet, Worker

from traceweir.schemas.dead_letter import KEPT_BYTES, DeadLetter
from traceweir.streams.base.topics import ALL_STAGES, application_id
from traceweir.streams.testing import event
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = pytest.mark.broker

DEADLINE_S = 60
ZSTD, UNKNOWN = 4, 6
PREFIX = "traceweir."
INPUTS = {
    "traces": "assemble",
    "invocations": "assemble",
    "sessions": "score",
    "candidates": "gate",
    "otlp_spans": "collect",
    "otlp_logs": "collect",
}
"""The stage that reads each input topic."""


def read_until(condition: Callable[[], bool], committed: Committed, worker: Worker) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert not worker.ended, worker.log.read_text()
        assert time.monotonic() < deadline, worker.log.read_text()
        committed.read(0.1)


async def test_a_batch_that_cannot_be_decompressed_is_one_dead_letter_of_every_input(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"criteria": {}}')
    sent: dict[tuple[str, int], bytes] = {}
    with (
        EmbeddedBroker() as broker,
        Fleet(
            broker.bootstrap_servers,
            PREFIX,
            tmp_path,
            config,
            variables={f"TRACEWEIR_OTLP_{kind}_TOPIC": f"{PREFIX}otlp_{kind.lower()}" for kind in ("SPANS", "LOGS")},
        ) as fleet,
    ):
        servers = broker.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:

            async def send(topic: str, codec: int, body: bytes | None = None) -> None:
                raw = await send_claiming(servers, f"{PREFIX}{topic}", codec, body)
                sent[topic, int.from_bytes(raw[:8], "big") + 2] = raw

            async def send_end(session: str) -> None:
                value = json.dumps(event("session.ended", session)).encode()
                await producer.send_and_wait(f"{PREFIX}invocations", value, session.encode(), partition=0)

            await send_end("s6")
            for topic in INPUTS:
                await send(topic, UNKNOWN)
            await send("invocations", ZSTD, b"x" * 2 * KEPT_BYTES)
            await send_end("s8")
            await send_claiming(servers, f"{PREFIX}references", UNKNOWN)

        worker = fleet.start("worker", stages=",".join(ALL_STAGES))
        application = application_id(PREFIX, ALL_STAGES)
        with Committed(broker.bootstrap_servers, PREFIX, application, spans=True) as committed:
            read_until(lambda: len(committed.rows["dead-letters"]) >= len(sent), committed, worker)
            read_until(lambda: committed.counts()["score"]["scored"] == 2, committed, worker)
            assert (
                "references/0/2 is ignored, with its neighbours: offsets 0 to 2, a batch of 3" in worker.log.read_text()
            )
            worker.terminate(DEADLINE_S)
            again = fleet.start("worker", stages=",".join(ALL_STAGES))
            again.until_ready()
            again.terminate(DEADLINE_S)
            while committed.read(1.0):
                pass
            counts = committed.counts()

    letters = [DeadLetter.read(row.key, row.value, row.headers) for row in committed.rows["dead-letters"]]
    found = {(letter.topic.removeprefix(PREFIX), letter.offset): letter for letter in letters}
    assert len(letters) == len(found)
    assert {place: letter.value for place, letter in found.items()} == {
        at: raw[:KEPT_BYTES] for at, raw in sent.items()
    }
    assert {(letter.reason, letter.partition, letter.key) for letter in letters} == {("unreadable_batch", 0, None)}
    assert {place[0]: letter.stage for place, letter in found.items()} == INPUTS
    large = found["invocations", 6]
    assert large.size == len(sent["invocations", 6])
    assert large.detail.startswith("offsets 4 to 6, a batch of 3 records compressed with zstd, cannot be read (")
    for stage in ALL_STAGES:
        own = [topic for topic, reader in INPUTS.items() if reader == stage]
        assert counts[stage]["dead_lettered.unreadable_batch"] == sum(topic in own for topic, _ in sent)
    assemble = counts["assemble"]
    assert (
        assemble["consumed"] == assemble["joined"] + assemble["forwarded"] + assemble["dead_lettered.unreadable_batch"]
    )
    assert (assemble["joined"], counts["score"]["scored"]) == (2, 2)
