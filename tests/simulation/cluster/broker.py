"""The nodes of a simulated Kafka cluster: they answer the requests that aiokafka sends, as Kafka 4 does.

Every node has every record, as if each record were on all nodes before it is acknowledged. A node matters for what can be
reached, and for who leads a partition and coordinates a group or a transaction.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from aiokafka.protocol.api import RequestStruct
from tests.simulation.cluster.groups import Group, Join, Joined
from tests.simulation.cluster.partition_log import OFFSET_OUT_OF_RANGE, PartitionLog
from tests.simulation.cluster.transactions import CONCURRENT_TRANSACTIONS, TransactionCoordinator

Answer = Callable[[Any], object]
"""Takes the response to a request."""
Place = tuple[str, int]

VERSIONS: dict[int, tuple[int, int]] = {
    0: (3, 8),
    1: (4, 11),
    2: (1, 3),
    3: (0, 5),
    8: (2, 3),
    9: (1, 3),
    10: (0, 1),
    11: (2, 5),
    12: (0, 1),
    13: (0, 1),
    14: (0, 3),
    18: (0, 2),
    21: (0, 0),
    22: (0, 0),
    24: (0, 0),
    25: (0, 0),
    26: (0, 0),
    28: (0, 3),
}
"""Lowest and highest version of each request that aiokafka can ask Kafka 4 for, by the key of the request."""
UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, NOT_LEADER, COORDINATOR_NOT_AVAILABLE = 3, 5, 6, 15
NOT_COORDINATOR, NOT_ENOUGH_REPLICAS = 16, 19
GROUP, TRANSACTION = 0, 1
NAMES_MEMBERS = 3
"""The version of TxnOffsetCommit that names the member of the group."""
_PRODUCER, _PRODUCER_AT = struct.Struct(">qh"), 43
"""Id and epoch of the producer in a batch."""


class Cluster:
    """A cluster of nodes 1 to `nodes`.

    Args:
        rnd: Draws delays.
        after: Calls a function after some seconds, outside all processes, and returns a handle with `cancel`.
        now_ms: Returns the time of the nodes in milliseconds since 1970.
        nodes: Number of nodes.
    """

    def __init__(
        self,
        rnd: random.Random,
        after: Callable[[float, Callable[[], object]], Any],
        now_ms: Callable[[], int],
        nodes: int = 3,
    ) -> None:
        self.rnd, self.after, self.now_ms = rnd, after, now_ms
        self.cluster_id = "simulated"
        self.nodes = tuple(range(1, nodes + 1))
        self.down: set[int] = set()
        """The nodes that do not run."""
        self.topics: dict[str, int] = {}
        """Number of partitions of each topic."""
        self.logs: dict[Place, PartitionLog] = {}
        self.leaders: dict[Place, int] = {}
        self.groups: dict[str, Group] = {}
        self.transactions = TransactionCoordinator(self)
        self.delete_retention_ms: int | None = None
        """How long compaction keeps tombstones in topics that are created from now on, as in `PartitionLog`."""
        self.marker_s = 0.004
        """Mean time until the markers of a transaction are written, in seconds."""
        self._moved: dict[tuple[int, str], int] = {}
        self.refuse: Callable[[Any], int] = lambda request: 0
        """Returns the error with which a request is answered, whatever it asks; 0: it is answered as usual."""
        self.throttles: dict[int, float] = {}
        """By node: the seconds for which it lets each connection wait after an answer, because of a quota."""
        self.takes_bytes_per_s: dict[int, float] = {}
        """By node: the bytes of records that it takes in a second, of all its connections together; no entry: any number."""
        self.gives_bytes_per_s: dict[int, float] = {}
        """By node: the bytes of records that it gives in a second, in the same way."""
        self.bytes_scale = 1
        """For how many bytes a byte counts in the limits of a fetch."""
        self.most_fetched: int | None = None
        """Bytes of the largest answer to a fetch; None: as the client asks."""
        self._waiting: dict[Place, list[Callable[[], bool]]] = defaultdict(list)

    # Topics and nodes

    def create_topic(self, name: str, partitions: int) -> None:
        """Creates a topic; its partitions are led by the nodes in turn."""
        self.topics[name] = 0
        self.add_partitions(name, partitions)

    def add_partitions(self, name: str, count: int) -> None:
        """Adds partitions to a topic."""
        begin = self.topics[name]
        self.topics[name] = begin + count
        for number in range(begin, begin + count):
            log = self.logs[name, number] = PartitionLog()
            log.delete_retention_ms = self.delete_retention_ms
            self.leaders[name, number] = self.nodes[(zlib.crc32(name.encode()) + number) % len(self.nodes)]

    def node_of(self, kind: int, name: str) -> int | None:
        """Returns the node that coordinates a group or a transactional id; None if no node runs."""
        up = [node for node in self.nodes if node not in self.down]
        usual = self.nodes[zlib.crc32(f"{kind} {name}".encode()) % len(self.nodes)]
        found = self._moved.get((kind, name), usual)
        return found if found in up else up[0] if up else None

    def stop_node(self, node: int) -> None:
        """Stops a node: others lead its partitions, and coordinate its groups and transactions."""
        self.down.add(node)
        up = [each for each in self.nodes if each not in self.down]
        for place, leader in self.leaders.items():
            if leader == node and up:
                self.leaders[place] = self.rnd.choice(up)

    def start_node(self, node: int) -> None:
        """Starts a node again; it leads nothing at first."""
        self.down.discard(node)

    def move_leaders(self, share: float = 0.5) -> None:
        """Gives a part of the partitions other leaders."""
        up = [each for each in self.nodes if each not in self.down]
        for place in self.leaders:
            if self.rnd.random() < share:
                self.leaders[place] = self.rnd.choice(up)

    def move_coordinators(self) -> None:
        """Gives all groups and transactional ids other coordinators."""
        up = [each for each in self.nodes if each not in self.down]
        for name in self.groups:
            self._moved[GROUP, name] = self.rnd.choice(up)
        for name in self.transactions.states():
            self._moved[TRANSACTION, name] = self.rnd.choice(up)

    def group(self, name: str) -> Group:
        """Returns a group, which begins with its first use."""
        if name not in self.groups:
            self.groups[name] = Group(self)
        return self.groups[name]

    # What the coordinator of transactions needs

    def marker_delay_s(self) -> float:
        """Draws the time until the markers of a transaction are written, in seconds."""
        return self.rnd.expovariate(1 / self.marker_s)

    def mark(self, place: Place, producer: int, epoch: int, *, commit: bool) -> None:
        """Writes a marker to a partition."""
        self.logs[place].mark(producer, epoch, commit=commit, now_ms=self.now_ms())
        self.look_again(place)

    def append(self, place: Place, batch: bytes) -> None:
        """Appends a batch of records to a partition, as a client that is not simulated does."""
        self.logs[place].append(batch)
        self.look_again(place)

    def end_offsets(self, group: str, producer: int, *, commit: bool) -> None:
        """Ends the offsets of a transaction."""
        self.group(group).end_transaction(producer, commit=commit)

    # Requests

    def handle(self, node: int, request: RequestStruct, answer: Answer) -> None:
        """Answers a request to a node, now or later."""
        if error := self.refuse(request):
            answer(refusal(request, error))
        else:
            _HANDLERS[request.API_KEY](self, node, request, answer)

    def fetch_all(self) -> None:
        """Lets fetches answer with as much as they ask for."""
        self.most_fetched = None

    def look_again(self, place: Place) -> None:
        """Lets the fetches look again that wait for records of a partition."""
        if waiting := self._waiting.pop(place, None):
            still = [look for look in waiting if not look()]
            self._waiting[place] = still + self._waiting.get(place, [])

    def _versions(self, node: int, request: Any, answer: Answer) -> None:
        answer(request.RESPONSE_TYPE(0, [(key, *versions) for key, versions in VERSIONS.items()]))

    def _metadata(self, node: int, request: Any, answer: Answer) -> None:
        brokers = [(each, f"node{each}", 9092, "") for each in self.nodes if each not in self.down]
        topics: list[Any] = []
        for name in self.topics if request.topics is None else request.topics:
            if name not in self.topics:
                topics.append((UNKNOWN_TOPIC, name, False, []))
                continue
            partitions: list[Any] = []
            for number in range(self.topics[name]):
                leader = self.leaders[name, number]
                gone = leader in self.down
                nodes = list(self.nodes)
                partitions.append(
                    (LEADER_NOT_AVAILABLE if gone else 0, number, -1 if gone else leader, nodes, nodes, [])
                )
            topics.append((0, name, False, partitions))
        answer(request.RESPONSE_TYPE(0, brokers, self.cluster_id, node, topics))

    def _coordinator(self, node: int, request: Any, answer: Answer) -> None:
        found = self.node_of(request.coordinator_type, request.coordinator_key)
        if found is None:
            answer(request.RESPONSE_TYPE(0, COORDINATOR_NOT_AVAILABLE, None, -1, "", -1))
        else:
            answer(request.RESPONSE_TYPE(0, 0, None, found, f"node{found}", 9092))

    def _start_producer(self, node: int, request: Any, answer: Answer) -> None:
        name = request.transactional_id
        if name is None:
            answer(request.RESPONSE_TYPE(0, 0, self.transactions.producer_id(), 0))
        elif self.node_of(TRANSACTION, name) != node:
            answer(request.RESPONSE_TYPE(0, NOT_COORDINATOR, -1, -1))
        else:
            answer(request.RESPONSE_TYPE(0, *self.transactions.start(name, request.transaction_timeout_ms)))

    def _add_partitions(self, node: int, request: Any, answer: Answer) -> None:
        places = [(topic, number) for topic, numbers in request.topics for number in numbers]
        unknown = [place for place in places if place not in self.logs]
        if self.node_of(TRANSACTION, request.transactional_id) != node:
            error = NOT_COORDINATOR
        elif unknown:
            error = UNKNOWN_TOPIC
        else:
            error = self.transactions.add(request.transactional_id, request.producer_id, request.producer_epoch, places)
        answer(
            request.RESPONSE_TYPE(
                0, [(topic, [(each, error) for each in numbers]) for topic, numbers in request.topics]
            )
        )

    def _add_offsets(self, node: int, request: Any, answer: Answer) -> None:
        if self.node_of(TRANSACTION, request.transactional_id) != node:
            error = NOT_COORDINATOR
        else:
            error = self.transactions.add(
                request.transactional_id, request.producer_id, request.producer_epoch, [], request.group_id
            )
        answer(request.RESPONSE_TYPE(0, error))

    def _commit_in_transaction(self, node: int, request: Any, answer: Answer) -> None:
        if self.node_of(GROUP, request.group_id) != node:
            error = NOT_COORDINATOR
        else:
            error = self.transactions.accepts_offsets(
                request.transactional_id, request.producer_id, request.producer_epoch, request.group_id
            )
        if not error and request.API_VERSION >= NAMES_MEMBERS:
            error = self.group(request.group_id).refuses(request.member_id, request.generation_id)
        if not error:
            offsets = {(topic, number): offset for topic, each, *_ in request.topics for number, offset, *_ in each}
            self.group(request.group_id).commit_in_transaction(request.producer_id, offsets)
        answer(_offsets_answer(request, error))

    def _end_transaction(self, node: int, request: Any, answer: Answer) -> None:
        if self.node_of(TRANSACTION, request.transactional_id) != node:
            error = NOT_COORDINATOR
        else:
            error = self.transactions.end(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                commit=request.transaction_result,
            )
        answer(request.RESPONSE_TYPE(0, error))

    def _produce(self, node: int, request: Any, answer: Answer) -> None:
        topics = []
        for topic, partitions in request.topics:
            done = []
            for number, raw in partitions:
                error, offset = self._append(node, request.transactional_id, (topic, number), bytes(raw))
                done.append((number, error, offset, -1, 0))
                self.look_again((topic, number))
            topics.append((topic, done))
        answer(request.RESPONSE_TYPE(topics, 0))

    def _append(self, node: int, transactional_id: str | None, place: Place, raw: bytes) -> tuple[int, int]:
        log = self.logs.get(place)
        if log is None:
            return UNKNOWN_TOPIC, -1
        if self.leaders[place] != node:
            return NOT_LEADER, -1
        producer, epoch = _PRODUCER.unpack_from(raw, _PRODUCER_AT)
        if transactional_id is not None and producer not in log.open:
            error = self.transactions.verify(transactional_id, producer, epoch, place)
            if error:  # a retriable error becomes one after which old clients ask again
                return NOT_ENOUGH_REPLICAS if error == CONCURRENT_TRANSACTIONS else error, -1
        return log.append(raw)

    def _fetch(self, node: int, request: Any, answer: Answer) -> None:
        done = False

        def look(*, last: bool = False) -> bool:
            nonlocal done
            if done:
                return True
            topics, size, wrong = self._read(node, request)
            if size >= request.min_bytes or wrong or last or request.max_wait_time <= 0:
                done = True
                throttle_ms = int(self.throttles.get(node, 0.0) * 1000)
                answer(request.RESPONSE_TYPE(throttle_ms, 0, 0, topics))
            return done

        if not look():
            places = [(topic, number) for topic, partitions in request.topics for number, *_ in partitions]
            for place in places:
                self._waiting[place].append(look)

            def end() -> None:
                look(last=True)
                # Partitions that get no record would otherwise keep each fetch, with the connection that it came from.
                for place in places:
                    if look in self._waiting[place]:
                        self._waiting[place].remove(look)

            self.after(request.max_wait_time / 1000, end)

    def _read(self, node: int, request: Any) -> tuple[list[Any], int, bool]:
        topics, size, wrong = [], 0, False
        most = request.max_bytes // self.bytes_scale if self.most_fetched is None else self.most_fetched
        for topic, partitions in request.topics:
            found = []
            for number, _, offset, _, limit in partitions:
                log = self.logs.get((topic, number))
                error, raw, aborted = UNKNOWN_TOPIC, b"", list[tuple[int, int]]()
                if log is not None and self.leaders[topic, number] != node:
                    error = NOT_LEADER
                elif log is not None:
                    # The first partition with records answers with a whole batch, even if it is above all limits.
                    error, raw, aborted = log.read(
                        offset,
                        min(limit // self.bytes_scale, most - size),
                        committed=bool(request.isolation_level),
                        whole_first=not size,
                    )
                wrong |= bool(error)
                size += len(raw)
                ends = (-1, -1, -1) if error or log is None else (log.end, log.stable, log.begin)
                found.append((number, error, *ends, aborted, -1, raw))
            topics.append((topic, found))
        return topics, size, wrong

    def _offsets(self, node: int, request: Any, answer: Answer) -> None:
        topics = []
        for topic, partitions in request.topics:
            found = []
            for number, timestamp in partitions:
                log = self.logs.get((topic, number))
                if log is None or self.leaders[topic, number] != node:
                    found.append((number, UNKNOWN_TOPIC if log is None else NOT_LEADER, -1, -1))
                    continue
                end = log.stable if request.isolation_level else log.end
                offset = {-1: end, -2: log.begin}.get(timestamp)
                found.append((number, 0, -1, log.offset_of_time(timestamp) if offset is None else offset))
            topics.append((topic, found))
        answer(request.RESPONSE_TYPE(0, topics))

    def _delete_records(self, node: int, request: Any, answer: Answer) -> None:
        topics = []
        for topic, partitions in request.topics:
            found = []
            for number, offset in partitions:
                log = self.logs.get((topic, number))
                if log is None or self.leaders[topic, number] != node:
                    found.append((number, -1, UNKNOWN_TOPIC if log is None else NOT_LEADER))
                elif offset > log.end:
                    found.append((number, -1, OFFSET_OUT_OF_RANGE))
                else:
                    log.delete_before(offset, exactly=True)
                    found.append((number, log.begin, 0))
            topics.append((topic, found))
        answer(request.RESPONSE_TYPE(0, topics))

    def _join(self, node: int, request: Any, answer: Answer) -> None:
        def joined(found: Joined) -> None:
            members = [list(each) for each in found.members]
            answer(
                request.RESPONSE_TYPE(
                    0, found.error, found.generation, found.protocol, found.leader, found.member, members
                )
            )

        if self.node_of(GROUP, request.group) != node:
            joined(Joined(NOT_COORDINATOR))
            return
        protocols = tuple((name, bytes(metadata)) for name, metadata in request.group_protocols)
        wish = Join(
            request.member_id,
            request.group_instance_id or None,
            request.session_timeout / 1000,
            request.rebalance_timeout / 1000,
            protocols,
        )
        self.group(request.group).join(wish, joined)

    def _sync(self, node: int, request: Any, answer: Answer) -> None:
        def synced(error: int, assignment: bytes) -> None:
            answer(request.RESPONSE_TYPE(0, error, assignment))

        if self.node_of(GROUP, request.group) != node:
            synced(NOT_COORDINATOR, b"")
            return
        assignments = {name: bytes(each) for name, each in request.group_assignment}
        self.group(request.group).sync(request.member_id, request.generation_id, assignments, synced)

    def _heartbeat(self, node: int, request: Any, answer: Answer) -> None:
        error = NOT_COORDINATOR
        if self.node_of(GROUP, request.group) == node:
            error = self.group(request.group).heartbeat(request.member_id, request.generation_id)
        answer(request.RESPONSE_TYPE(0, error))

    def _leave(self, node: int, request: Any, answer: Answer) -> None:
        error = NOT_COORDINATOR
        if self.node_of(GROUP, request.group) == node:
            error = self.group(request.group).leave(request.member_id)
        answer(request.RESPONSE_TYPE(0, error))

    def _commit(self, node: int, request: Any, answer: Answer) -> None:
        error = NOT_COORDINATOR
        if self.node_of(GROUP, request.consumer_group) == node:
            offsets = {(topic, number): offset for topic, each in request.topics for number, offset, _ in each}
            error = self.group(request.consumer_group).commit(
                request.consumer_id, request.consumer_group_generation_id, offsets
            )
        answer(
            request.RESPONSE_TYPE(
                0, [(topic, [(number, error) for number, *_ in each]) for topic, each in request.topics]
            )
        )

    def _committed(self, node: int, request: Any, answer: Answer) -> None:
        if self.node_of(GROUP, request.consumer_group) != node:
            answer(request.RESPONSE_TYPE(0, [], NOT_COORDINATOR))
            return
        offsets = self.group(request.consumer_group).offsets
        topics = [
            (topic, [(number, offsets.get((topic, number), -1), "", 0) for number in numbers])
            for topic, numbers in request.topics
        ]
        answer(request.RESPONSE_TYPE(0, topics, 0))


def _offsets_answer(request: Any, error: int) -> Any:
    """Returns the answer to offsets in a transaction; in its newer form each part ends with tags."""
    tags: tuple[Any, ...] = ({},) if request.API_VERSION >= NAMES_MEMBERS else ()
    topics = [(topic, [(place[0], error, *tags) for place in found], *tags) for topic, found, *_ in request.topics]
    return request.RESPONSE_TYPE(0, topics, *tags)


def refusal(request: Any, error: int) -> Any:
    """Returns the answer of a node that cannot do what it is asked for now."""
    response = request.RESPONSE_TYPE
    match request.API_KEY:
        case 0:
            topics = [(topic, [(number, error, -1, -1, -1) for number, _ in found]) for topic, found in request.topics]
            return response(topics, 0)
        case 22:
            return response(0, error, -1, -1)
        case 24:
            return response(0, [(topic, [(number, error) for number in numbers]) for topic, numbers in request.topics])
        case 28:
            return _offsets_answer(request, error)
        case 11:
            return response(0, error, -1, "", "", request.member_id, [])
        case 14:
            return response(0, error, b"")
        case _:
            return response(0, error)


_HANDLERS: dict[int, Callable[[Cluster, int, Any, Answer], None]] = {
    0: Cluster._produce,
    1: Cluster._fetch,
    2: Cluster._offsets,
    3: Cluster._metadata,
    8: Cluster._commit,
    9: Cluster._committed,
    10: Cluster._coordinator,
    11: Cluster._join,
    12: Cluster._heartbeat,
    13: Cluster._leave,
    14: Cluster._sync,
    18: Cluster._versions,
    21: Cluster._delete_records,
    22: Cluster._start_producer,
    24: Cluster._add_partitions,
    25: Cluster._add_offsets,
    26: Cluster._end_transaction,
    28: Cluster._commit_in_transaction,
}
