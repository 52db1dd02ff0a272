"""The network between simulated processes and nodes: connections of aiokafka whose requests reach a simulated cluster."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import aiokafka.client
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError
from aiokafka.util import create_future, wait_for
from tests.simulation.cluster.broker import Answer, Cluster
from tests.simulation.loop import Process, SimulatedLoop, process_of_context

PRODUCE, FETCH = 0, 1
LATENCY_S = 0.0008
"""Mean time of a message, in seconds."""


class Network:
    """Carries requests and answers, in order on each connection.

    Args:
        loop: The loop of the world.
        rnd: Draws how long messages take.
        cluster: The nodes.
    """

    def __init__(self, loop: SimulatedLoop, rnd: random.Random, cluster: Cluster) -> None:
        self._loop, self._rnd, self.cluster = loop, rnd, cluster
        self.slowness = 1.0
        """Factor on the time of each message."""
        self.distance_s = 0.0
        """Time that each message takes at least, in seconds, as between two regions."""
        self.links: list[Link] = []
        self._cut_until: dict[tuple[Process | None, int, bool], float] = {}
        self._busy_until: dict[tuple[int, bool], float] = {}
        self.stops: Counter[int] = Counter()
        """How often each node has stopped."""
        self.before_message: Callable[[Link, Any, bool], object] = lambda link, message, to_node: None
        """Called with each message when it is sent: the place for faults at any request or answer."""

    def install(self) -> None:
        """Makes each aiokafka client of this Python process use the network."""

        async def connect(host: str, port: int, **options: Any) -> SimulatedConnection:
            connection = SimulatedConnection(self, host, port, **options)
            await connection.connect()
            return connection

        aiokafka.client.create_conn = connect

    def cut(self, process: Process | None, node: int, *, to_node: bool, for_s: float) -> None:
        """Holds the messages between a process and a node in one direction for a time, as TCP does while packets get lost."""
        self._cut_until[process, node, to_node] = self._loop.time() + for_s

    def arrival(self, process: Process | None, node: int, *, to_node: bool, size: int = 0) -> float:
        """Draws when a message that is sent now arrives, in seconds of the loop.

        Args:
            process: The process at the other end of the connection.
            node: The node.
            to_node: Whether the node gets the message.
            size: Bytes of records in it. A node that takes or gives few bytes a second carries one after the other.
        """
        latency = self._rnd.expovariate(1 / LATENCY_S) * self.slowness
        sent = max(self._loop.time(), self._cut_until.get((process, node, to_node), 0.0))
        rates = self.cluster.takes_bytes_per_s if to_node else self.cluster.gives_bytes_per_s
        if size and (rate := rates.get(node)):
            sent = max(sent, self._busy_until.get((node, to_node), 0.0)) + size / rate
            self._busy_until[node, to_node] = sent
        return sent + self.distance_s + latency

    def break_links(self, node: int) -> None:
        """Closes the connections of a node, as when it stops."""
        self.stops[node] += 1
        for link in [link for link in self.links if link.node == node]:
            link.break_off()

    def loses_a_request(self) -> bool:
        """Draws whether a request is lost that is sent while its connection breaks."""
        return self._rnd.random() < 0.5

    def forget(self, process: Process) -> None:
        """Closes the connections of a process that has ended; what it has sent still arrives."""
        self.links = [link for link in self.links if link.process is not process]


class Link:
    """One connection. A node works on one request of it at a time, as Kafka does.

    A request that was sent reaches its node even if the client ends, or if the connection breaks, before the answer. Only
    a node that stops loses what it has not worked on.
    """

    def __init__(self, network: Network, connection: SimulatedConnection, node: int) -> None:
        self._network, self._connection, self.node = network, connection, node
        self.process = process_of_context.get()
        self.broken = False
        """Whether the client gets no answer any more."""
        self._stops = network.stops[node]
        self._queue: deque[tuple[Any, Answer]] = deque()
        self._busy = self._twice = False
        self._latest = [0.0, 0.0]
        network.links.append(self)

    @property
    def _lost(self) -> bool:
        """Whether the node has stopped since the connection began, and knows none of its requests any more."""
        return self._network.stops[self.node] != self._stops

    def send(self, request: Any, deliver: Answer) -> None:
        """Sends a request; `deliver` gets the answer."""
        self._network.before_message(self, request, True)
        if self.broken and self._network.loses_a_request():  # the connection has broken at this moment
            return

        def arrive() -> None:
            if self._lost:
                return
            self._queue.append((request, deliver))
            if not self._busy:
                self._next()

        self._carry(arrive, to_node=True, size=_bytes_of_records(request))

    def _next(self) -> None:
        self._busy = True
        request, deliver = self._queue.popleft()
        self._network.cluster.handle(self.node, request, lambda response: self._answered(response, deliver))

    def _answered(self, response: Any, deliver: Answer) -> None:
        self._busy = False
        if not self.broken:
            self._network.before_message(self, response, False)
            size = _bytes_of_records(response)
            self._carry(lambda: None if self.broken else deliver(response), to_node=False, size=size)
            if self._twice:
                self._carry(self.break_off, to_node=False)
        if self._lost:
            return
        if throttled_s := self._network.cluster.throttles.get(self.node):
            self._busy = True
            self._network.cluster.after(throttled_s, self._go_on)
        elif self._queue:
            self._next()

    def _go_on(self) -> None:
        self._busy = False
        if self._queue and not self._lost:
            self._next()

    def _carry(self, what: Callable[[], object], *, to_node: bool, size: int = 0) -> None:
        at = self._network.arrival(self.process, self.node, to_node=to_node, size=size)
        at = self._latest[to_node] = max(at, self._latest[to_node])  # a connection keeps the order
        cluster, loop = self._network.cluster, self._network._loop
        cluster.after(at - loop.time(), what)

    def answer_twice(self) -> None:
        """Carries the answer that is sent now twice: aiokafka closes a connection at an answer to no open request."""
        self._twice = True

    def break_off(self) -> None:
        """Closes the connection from the node's side, or because of the network."""
        if not self.broken:
            self.broken = True
            self.forget()
            error = ConnectionResetError("the connection was reset")
            self._network.cluster.after(
                0.001, lambda: self._connection.close(reason=CloseReason.CONNECTION_BROKEN, exc=error)
            )

    def forget(self) -> None:
        """Removes the connection from the network."""
        if self in self._network.links:
            self._network.links.remove(self)

    # What aiokafka asks of a stream

    @property
    def transport(self) -> Link:
        """The link itself, which can be aborted."""
        return self

    def at_eof(self) -> bool:
        """Returns whether the connection is closed."""
        return self.broken

    def close(self) -> None:
        """Closes the connection from the client's side."""
        self.broken = True
        self.forget()

    abort = close


class SimulatedConnection(AIOKafkaConnection):  # type: ignore[misc]  # untyped
    """A connection of aiokafka that hands its requests to the network instead of a socket."""

    def __init__(self, network: Network, host: str, port: int, **options: Any) -> None:
        super().__init__(host, port, **options)
        self._network = network

    async def connect(self) -> None:
        """Connects to the node in the host's name, such as `node2`.

        Raises:
            OSError: the node does not run.
            TimeoutError: no answer came in time.
        """
        network, node = self._network, int(self.host.removeprefix("node"))
        self._closed_fut = create_future()
        loop = asyncio.get_running_loop()
        for to_node in (True, False):
            process = process_of_context.get()
            wait_s = network.arrival(process, node, to_node=to_node) - loop.time()
            await asyncio.sleep(min(wait_s, self._request_timeout))
            if wait_s > self._request_timeout:
                raise TimeoutError
        if node in network.cluster.down:
            raise ConnectionRefusedError(f"node {node} does not run")
        self._reader = self._writer = Link(network, self, node)
        self._read_task = create_future()
        try:
            await self._do_version_lookup()
        except BaseException:
            self.close()
            raise

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Sends a request; returns an awaitable of the answer, which raises `TimeoutError` if none comes in time."""
        if self._writer is None:
            raise KafkaConnectionError(f"No connection to broker at {self._host}:{self._port}")
        prepared = request.prepare(self._versions)
        future = create_future()
        entry = (self._next_correlation_id(), prepared, future)
        self._requests.append(entry)

        def deliver(response: Any) -> None:
            if entry in self._requests:
                self._requests.remove(entry)
            if not future.done():
                future.set_result(response)

        self._writer.send(prepared, deliver)
        return wait_for(future, self._request_timeout)

    def close(self, reason: Any = None, exc: Any = None) -> Any:
        """Closes the connection; requests without an answer fail."""
        closed = super().close(reason, exc)
        if self._closed_fut is not None and not self._closed_fut.done():
            self._closed_fut.set_result(None)
        return closed


def _bytes_of_records(message: Any) -> int:
    """Returns the size of the records in a produce request or in the answer to a fetch; 0 for all other messages."""
    if message.API_KEY not in (PRODUCE, FETCH):
        return 0
    return sum(len(part[-1]) for _, parts in message.topics for part in parts if not isinstance(part[-1], int))
