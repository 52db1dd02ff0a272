"""Copies records with tuned, bare aiokafka, as the baseline of the throughput benchmark.

It fills its batches itself (`create_batch`, `send_batch`), as the worker's checkpoints do, so that no record has a future
of its own. Usage: `python -m benchmarks.passthrough SERVERS TOPICS OUT RECORDS`.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def copy(servers: str, sources: list[str], target: str, total: int) -> dict[str, float]:
    """Consumes, produces idempotently, awaits the acknowledgements and commits, for each poll."""
    producer = AIOKafkaProducer(bootstrap_servers=servers, linger_ms=5, enable_idempotence=True, max_batch_size=262_144)
    consumer = AIOKafkaConsumer(
        *sources,
        bootstrap_servers=servers,
        group_id=f"passthrough-{time.time_ns()}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=2_000,
    )
    await producer.start()
    await consumer.start()
    count, began, cpu = 0, 0.0, 0.0
    while count < total:
        batches = await consumer.getmany(timeout_ms=500)
        if batches and not began:
            began, cpu = time.perf_counter(), time.process_time()
        sent = []
        for place, records in batches.items():
            count += len(records)
            sent += await send(producer, target, place.partition, records)
        await asyncio.gather(*sent)
        if batches:
            await consumer.commit({place: records[-1].offset + 1 for place, records in batches.items()})
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    ended = time.perf_counter()
    await consumer.stop()
    await producer.stop()
    return {"rate": count / wall, "cpu_us": cpu / count * 1e6, "ended": ended}


async def send(
    producer: AIOKafkaProducer, topic: str, partition: int, records: Sequence[Any]
) -> list[asyncio.Future[Any]]:
    """Sends records to a partition, and returns a future for each batch."""
    sent, batch = [], producer.create_batch()
    for record in records:
        while batch.append(key=record.key, value=record.value, timestamp=None) is None:  # the batch is full
            sent.append(await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
    if batch.record_count():
        sent.append(await producer.send_batch(batch, topic, partition=partition))
    return sent


if __name__ == "__main__":
    uvloop.install()
    sys.stdout.write(json.dumps(asyncio.run(copy(sys.argv[1], sys.argv[2].split(","), sys.argv[3], int(sys.argv[4])))))
