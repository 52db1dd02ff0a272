"""Runs Apache Kafka for tests: one or several nodes of an unpacked distribution, on loopback."""

from __future__ import annotations

import base64
import os
import random
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.support.kafka_security import MECHANISMS, PASSWORD, USERS, Certificates
from tests.support.slow_network import SlowNetwork

START_TIMEOUT_S = 90
_PORTS = (15_000, 32_000)
_BLOCK = 32
"""Ports that one cluster can have, with the one that keeps the others."""


class KafkaCluster:
    """Runs KRaft nodes within a `with` block; each node is broker and controller in one process.

    Each node is a rack of its own: node 1 is in `rack-1`. A node keeps its ports and its log over `kill` and `start`, as
    a machine does. Nodes are numbered from 1. With three nodes, every topic can have three replicas, and two replicas
    must have a record before it is acknowledged.
    """

    def __init__(
        self,
        home: Path,
        nodes: int = 1,
        certificates: Certificates | None = None,
        *,
        distant: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Stores the arguments; `with` starts the nodes.

        Args:
            home: An unpacked distribution.
            nodes: How many nodes.
            certificates: If given, nodes also listen for TLS with a required client certificate, for TLS with a
                password, and for unsecured tokens without TLS. A connection ends with the token of its login.
            distant: Whether clients of `distant_servers` reach the nodes through networks that can be slow (`networks`).
            options: Further options of the nodes, by name.
        """
        self._home = home
        self._options = options or {}
        self._numbers = range(1, nodes + 1)
        self._certificates = certificates
        self._distant = distant
        self.networks: list[SlowNetwork] = []
        """What is between the nodes and the clients of `distant_servers`, by node."""
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> KafkaCluster:
        self._folder = tempfile.TemporaryDirectory(prefix="traceweir-kafka-")
        self._lease, leased = _leased_ports(7 * len(self._numbers))
        ports = iter(leased)
        self._broker_ports, self._controller_ports, self._tls_ports, self._password_ports, self._token_ports = (
            dict(zip(self._numbers, ports, strict=False)) for _ in range(5)
        )
        self._near_ports = dict(zip(self._numbers, ports, strict=False))
        self._far_ports = dict(zip(self._numbers, ports, strict=False))
        cluster_id = "-"
        while cluster_id.startswith("-"):  # the command line would parse a leading dash as an option
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        try:
            for number in self._numbers:
                self._format(number, cluster_id)
            for number in self._numbers:
                self.start(number)
                if self._distant:
                    network = SlowNetwork(self._near_ports[number], self._far_ports[number])
                    self.networks.append(network.__enter__())
            self.wait()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, running or not: `host:port,host:port,...`."""
        return ",".join(f"127.0.0.1:{port}" for port in self._broker_ports.values())

    @property
    def tls_servers(self) -> str:
        """The addresses for TLS with a client certificate."""
        return ",".join(f"127.0.0.1:{port}" for port in self._tls_ports.values())

    @property
    def distant_servers(self) -> str:
        """The addresses behind `networks`."""
        return ",".join(f"127.0.0.1:{port}" for port in self._far_ports.values())

    @property
    def password_servers(self) -> str:
        """The addresses for TLS with a user and a password."""
        return ",".join(f"127.0.0.1:{port}" for port in self._password_ports.values())

    @property
    def token_servers(self) -> str:
        """The addresses for unsecured tokens."""
        return ",".join(f"127.0.0.1:{port}" for port in self._token_ports.values())

    def ask(self, request: bytes) -> bytes:
        """Returns the answer of the first node to a request for which confluent-kafka has no function.

        Both are without the four bytes of their length.
        """
        host, _, port = self.bootstrap_servers.partition(",")[0].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection, connection.makefile("rwb") as file:
            file.write(struct.pack(">i", len(request)) + request)
            file.flush()
            return file.read(*struct.unpack(">i", file.read(4)))

    def pid(self, number: int) -> int:
        """Returns the process id of a started node."""
        return self._processes[number].pid

    def data(self, number: int) -> Path:
        """Returns the folder of a node's logs."""
        return Path(self._folder.name) / f"node-{number}"

    def log(self, number: int) -> Path:
        """Returns the file with what a node logs."""
        return Path(self._folder.name) / f"node-{number}.log"

    def kill(self, number: int) -> None:
        """Kills a node with SIGKILL, and waits until its process has ended."""
        process = self._processes[number]
        process.kill()
        process.wait()

    def start(self, number: int) -> None:
        """Starts a stopped node on its existing log; returns before the node serves (see `wait`)."""
        with self.log(number).open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [self._home / "bin/kafka-server-start.sh", self._properties(number)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,  # Only pytest receives Ctrl-C, and pytest then ends the nodes.
            )

    def wait(self) -> None:
        """Waits until every started node serves.

        Raises:
            RuntimeError: a node ended or needed longer than 90 s; the message contains the end of the node's log.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        for number, process in self._processes.items():
            if process.poll() is None:
                self._wait_for(number, deadline)

    def serves(self) -> bool:
        """Returns whether every started node answers within a second that it serves."""
        return all(
            process.poll() is None and _serves(self._client(number), number)
            for number, process in self._processes.items()
        )

    def _client(self, number: int) -> AdminClient:
        server = f"127.0.0.1:{self._broker_ports[number]}"
        return AdminClient({"bootstrap.servers": server, "log_level": 0, "error_cb": lambda _: None})

    def _wait_for(self, number: int, deadline: float) -> None:
        # This asks the node itself, because other nodes can still list a node that was killed a moment ago.
        client = self._client(number)
        while not _serves(client, number):
            if self._ended_within(number, seconds=0.1) or time.monotonic() > deadline:
                raise RuntimeError(f"Kafka node {number} does not serve; the end of its log:\n{self._tail(number)}")

    def _ended_within(self, number: int, seconds: float) -> bool:
        try:
            self._processes[number].wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _format(self, number: int, cluster_id: str) -> None:
        self.data(number).mkdir(parents=True)
        self._properties(number).write_text(self._configuration(number))
        done = subprocess.run(
            [
                self._home / "bin/kafka-storage.sh",
                "format",
                "-t",
                cluster_id,
                "-c",
                self._properties(number),
                *self._users(),
            ],
            capture_output=True,
            text=True,
            env=self._environment(),
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"formatting Kafka node {number} failed:\n{done.stdout}{done.stderr}")

    def _configuration(self, number: int) -> str:
        copies = min(3, len(self._numbers))
        in_sync = 2 if copies > 2 else 1
        broker, controller = self._broker_ports[number], self._controller_ports[number]
        voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in self._controller_ports.items())
        options: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": number,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.data(number),
            "broker.rack": f"rack-{number}",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 8,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": in_sync,
            "transaction.state.log.num.partitions": 8,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": in_sync,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            "log.cleaner.dedupe.buffer.size": 4_194_304,  # 128 MB by default: half of the heap
            # Tests write records of fixed, old times. Each check would delete them, at a moment that no test knows.
            "log.retention.check.interval.ms": 86_400_000,
        }
        options |= self._options
        if self._certificates is not None:
            options |= self._secure(number, options)
        if self._distant:
            options["listeners"] = f"{options['listeners']},FAR://127.0.0.1:{self._near_ports[number]}"
            options["advertised.listeners"] = (
                f"{options['advertised.listeners']},FAR://127.0.0.1:{self._far_ports[number]}"
            )
            options["listener.security.protocol.map"] = f"{options['listener.security.protocol.map']},FAR:PLAINTEXT"
        return "".join(f"{name}={value}\n" for name, value in options.items())

    def _secure(self, number: int, options: Mapping[str, object]) -> dict[str, object]:
        assert self._certificates is not None
        more = (
            f"SSL://127.0.0.1:{self._tls_ports[number]},SASL_SSL://127.0.0.1:{self._password_ports[number]},"
            f"TOKENS://127.0.0.1:{self._token_ports[number]}"
        )
        protocols = "SSL:SSL,SASL_SSL:SASL_SSL,TOKENS:SASL_PLAINTEXT"
        return {
            "listeners": f"{options['listeners']},{more}",
            "advertised.listeners": f"{options['advertised.listeners']},{more}",
            "listener.security.protocol.map": f"{options['listener.security.protocol.map']},{protocols}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",  # The nodes, and every client of the plain listener.
            "allow.everyone.if.no.acl.found": "true",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._certificates.nodes,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._certificates.authority,
            **{
                f"listener.name.sasl_ssl.{mechanism.lower()}.sasl.jaas.config": (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                )
                for mechanism in MECHANISMS
            },
            "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.tokens.oauthbearer.sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
                ' unsecuredLoginStringClaim_sub="node";'
            ),
            # At most; a connection also ends with its token.
            "listener.name.tokens.oauthbearer.connections.max.reauth.ms": 3_600_000,
        }

    def _users(self) -> list[str]:
        if self._certificates is None:
            return []
        return [
            word
            for mechanism, user in USERS.items()
            for word in ("--add-scram", f"{mechanism}=[name={user},password={PASSWORD}]")
        ]

    def _environment(self) -> dict[str, str]:
        # LOG_DIR: stock start scripts otherwise write their logs into the distribution.
        return os.environ | {"KAFKA_HEAP_OPTS": "-Xmx256m", "LOG_DIR": str(Path(self._folder.name) / "logs")}

    def _close(self) -> None:
        while self.networks:
            self.networks.pop().__exit__(None, None, None)
        for number in self._processes:
            self.kill(number)  # The node's files are deleted, so an orderly stop is not needed.
        self._lease.close()
        self._folder.cleanup()

    def _properties(self, number: int) -> Path:
        return Path(self._folder.name) / f"node-{number}.properties"

    def _tail(self, number: int) -> str:
        return "\n".join(self.log(number).read_text(errors="replace").splitlines()[-20:])


def _serves(client: AdminClient, number: int) -> bool:
    try:
        return number in client.list_topics(timeout=1).brokers
    except KafkaException:
        return False


def _leased_ports(count: int) -> tuple[socket.socket, list[int]]:
    """Returns free ports below those that the system gives to connections, and the socket that keeps them.

    A node binds its ports seconds later, and again after each start: neither a connection nor another cluster must have them
    meanwhile. So the ports are a block, and a cluster listens on the first port of its block, which no node uses.
    """
    drawn = random.SystemRandom()
    while True:
        first = drawn.randrange(*_PORTS, _BLOCK)
        ports = range(first + 1, first + 1 + count)
        with suppress(OSError):
            lease = socket.create_server(("127.0.0.1", first))
            try:
                for port in ports:
                    socket.create_server(("127.0.0.1", port)).close()
            except OSError:
                lease.close()
            else:
                return lease, list(ports)
