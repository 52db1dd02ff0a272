"""Copies records with tuned, bare aiokafka, as the baseline of the throughput benchmark.

Usage: `python -m benchmarks.passthrough SERVERS TOPICS OUT RECORDS`.
"""

import asyncio
import json
import sys
import time

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
        for records in batches.values():
            count += len(records)
            sent += [await producer.send(target, value=record.value, key=record.key) for record in records]
        await asyncio.gather(*sent)
        if batches:
            await consumer.commit({place: records[-1].offset + 1 for place, records in batches.items()})
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    await consumer.stop()
    await producer.stop()
    return {"rate": count / wall, "cpu_us": cpu / count * 1e6}


if __name__ == "__main__":
    uvloop.install()
    sys.stdout.write(json.dumps(asyncio.run(copy(sys.argv[1], sys.argv[2].split(","), sys.argv[3], int(sys.argv[4])))))
