"""Asks a Kafka cluster drawn questions through aiokafka, and writes its answers down: of Apache Kafka, or of the simulated one.

A script is a list of client calls, one after the other. Its answers are what a client can see: results, errors, offsets,
committed records, committed offsets of groups, and who owns which partitions.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

PARTITIONS = 2
NAMES = ("a", "b")
"""Transactional ids without their prefix."""
WITHIN_S = 15.0
Step = tuple[str, ...]
"""What to do, and with what."""

_OUTSIDE = {"begin": 8, "send": 0.5, "commit": 0.5, "fence": 1, "read": 2, "nibble": 1, "trim": 0.7, "group": 1}
_INSIDE = {
    "send": 8,
    "offsets": 2,
    "commit": 4,
    "abort": 2,
    "fence": 1,
    "read": 2,
    "nibble": 1,
    "trim": 0.7,
    "group": 1,
}
_INSIDE |= {"begin": 0.3}
_MEMBERS = {"join": 3, "leave": 2}


def draw(seed: int, steps: int = 40) -> list[Step]:
    """Returns the script of a seed. Most of its calls are allowed within, or outside, a transaction."""
    rnd = random.Random(f"script {seed}")
    script: list[Step] = []
    inside = dict.fromkeys(NAMES, False)
    for _ in range(steps):
        name = rnd.choice(NAMES)
        shares = _INSIDE if inside[name] else _OUTSIDE
        (kind,) = rnd.choices([*shares], [*shares.values()])
        inside[name] = kind == "begin" or (inside[name] and kind not in ("commit", "abort", "fence"))
        script.append((kind, name, str(rnd.randrange(PARTITIONS))))
    members = [(kind,) for kind in rnd.choices([*_MEMBERS], [*_MEMBERS.values()], k=4)]
    return [*script, ("read",), ("nibble",), ("group",), *members]


class Asker:
    """Plays a script on a cluster that has the topic.

    Args:
        servers: The brokers.
        topic: A topic of two partitions; its name is also the prefix of transactional ids and of the group.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self._producers: dict[str, AIOKafkaProducer] = {}
        self._places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        self._ends: Counter[TopicPartition] = Counter()
        self._touched: dict[str, set[TopicPartition]] = {}
        self._sent = 0
        self._members: list[AIOKafkaConsumer] = []

    async def play(self, script: list[Step]) -> list[Any]:
        """Returns the answer to each step: a value, or the name of an exception."""
        answers: list[Any] = []
        for name in NAMES:
            await self._fence(name)
        try:
            for kind, *rest in script:
                step: Callable[..., Awaitable[Any]] = getattr(self, f"_{kind}")
                try:
                    answers.append(await asyncio.wait_for(step(*rest), WITHIN_S))
                except Exception as error:  # noqa: BLE001  # an answer too
                    answers.append(type(error).__name__)
        finally:
            for client in (*self._producers.values(), *self._members):
                await _stop(client)
        return answers

    async def _begin(self, name: str, _: str) -> str:
        await self._producers[name].begin_transaction()
        self._touched[name] = set()
        return "begun"

    async def _send(self, name: str, number: str) -> int:
        place = TopicPartition(self._topic, int(number))
        self._sent += 1
        value = b"%d" % self._sent
        sent = await self._producers[name].send_and_wait(self._topic, value, partition=place.partition)
        self._touched[name].add(place)
        self._ends[place] += 1
        offset: int = sent.offset
        return offset

    async def _offsets(self, name: str, number: str) -> str:
        place = TopicPartition(self._topic, int(number))
        await self._producers[name].send_offsets_to_transaction({place: self._sent}, self._topic)
        return "sent"

    async def _commit(self, name: str, _: str) -> str:
        await self._producers[name].commit_transaction()
        await self._marked(name)
        return "committed"

    async def _abort(self, name: str, _: str) -> str:
        await self._producers[name].abort_transaction()
        await self._marked(name)
        return "aborted"

    async def _marked(self, name: str) -> None:
        """Waits for the markers of a transaction, which the cluster writes after its answer."""
        for place in self._touched.pop(name, set()):
            self._ends[place] += 1
        async with self._reader("read_uncommitted") as reader:
            while await reader.end_offsets(self._places) != {each: self._ends[each] for each in self._places}:  # noqa: ASYNC110  # no event comes from a cluster
                await asyncio.sleep(0.02)

    async def _fence(self, name: str, _: str = "") -> str:
        """Starts another producer of the same transactional id; the former one stays, and can do nothing any more."""
        producer = AIOKafkaProducer(
            bootstrap_servers=self._servers, transactional_id=f"{self._topic}-{name}", retry_backoff_ms=20
        )
        await producer.start()
        former = self._producers.get(name)
        self._producers[name] = producer
        refused = ""
        if former is not None:
            if self._touched.get(name):
                await self._marked(name)
                refused = await self._refused(former)
            self._touched.pop(name, None)
            await _stop(former)
        return f"fenced {refused}"

    async def _refused(self, former: AIOKafkaProducer) -> str:
        try:
            await former.send_and_wait(self._topic, b"too late", partition=0)
            await former.commit_transaction()
        except Exception as error:  # noqa: BLE001  # an answer too
            return type(error).__name__
        return "nothing"

    async def _read(self, *_: str, **options: Any) -> Any:
        async with self._reader("read_committed", **options) as reader:
            ends = await reader.end_offsets(self._places)
            reader.assign(self._places)
            await reader.seek_to_beginning()
            found: list[tuple[int, int, str]] = []
            for place in self._places:
                while await reader.position(place) < ends[place]:
                    for records in (await reader.getmany(place, timeout_ms=100)).values():
                        found += [(place.partition, each.offset, each.value.decode()) for each in records]
            begins = await reader.beginning_offsets(self._places)
            return sorted(found), [begins[place] for place in self._places], [ends[place] for place in self._places]

    async def _nibble(self, *_: str) -> Any:
        """Reads with fetches so small that their answers end in the middle of a batch."""
        return await self._read(max_partition_fetch_bytes=150, fetch_max_bytes=250)

    async def _trim(self, _: str, number: str) -> int:
        """Deletes all committed records of a partition but the last offset; returns the first offset that is left."""
        place = TopicPartition(self._topic, int(number))
        async with self._reader("read_committed") as reader:
            end = (await reader.end_offsets([place]))[place]
        admin = AIOKafkaAdminClient(bootstrap_servers=self._servers)
        await admin.start()
        try:
            left: int = (await admin.delete_records({place: RecordsToDelete(max(0, end - 1))}))[place]
        finally:
            await admin.close()
        return left

    async def _group(self, *_: str) -> list[int | None]:
        async with self._reader("read_committed", group_id=self._topic) as reader:
            return [await reader.committed(place) for place in self._places]

    @asynccontextmanager
    async def _reader(self, isolation_level: str, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
        reader = AIOKafkaConsumer(
            bootstrap_servers=self._servers, isolation_level=isolation_level, enable_auto_commit=False, **options
        )
        await reader.start()
        try:
            yield reader
        finally:
            await _stop(reader)

    # Members of a group

    async def _join(self) -> list[int]:
        member = AIOKafkaConsumer(
            self._topic,
            bootstrap_servers=self._servers,
            group_id=f"{self._topic}-members",
            heartbeat_interval_ms=200,
            enable_auto_commit=False,
        )
        self._members.append(member)
        await member.start()
        return await self._settled()

    async def _leave(self) -> list[int]:
        if self._members:
            await _stop(self._members.pop(0))
        return await self._settled()

    async def _settled(self) -> list[int]:
        """Waits until the members share all partitions; returns how many each has."""
        shares: list[Any] = []
        while self._members:
            shares = [member.assignment() for member in self._members]
            if sum(map(len, shares)) == PARTITIONS and len(set().union(*shares)) == PARTITIONS:
                break
            await asyncio.sleep(0.05)
        return sorted(map(len, shares))


async def _stop(client: Any) -> None:
    with suppress(asyncio.CancelledError):  # of a task of the client
        await client.stop()


def main() -> None:
    """Prints the answers of the simulated cluster to the scripts of some seeds."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.simulation.conformance SEED...")
    from tests.simulation.loop import SimulatedLoop
    from tests.simulation.world import cluster_alone

    for seed in map(int, sys.argv[1:]):
        loop: SimulatedLoop
        loop, cluster = cluster_alone(seed)
        topic = f"script-{seed}"
        cluster.create_topic(topic, PARTITIONS)
        answers = loop.run_until_complete(Asker("node1:9092,node2:9092", topic).play(draw(seed)))
        print(json.dumps(answers))


if __name__ == "__main__":
    from tests.simulation import seams

    seams.replace_clocks_and_uuids()
    main()
