"""Provides the brokers of the rounds; a broker starts at its first use."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.chaos.scenario import NETWORK, Broker, Kind, Scenario
from tests.chaos.small_disk import can_mount
from tests.support.kafka import HOME, SERVERS, kafka_home
from tests.support.kafka_cluster import KafkaCluster

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker


class Place(NamedTuple):
    """The broker on which a round runs."""

    bootstrap_servers: str
    cluster: KafkaCluster | None
    """The nodes, if the harness started them and can kill them."""


class Ground:
    """Runs clusters of one and of three nodes within a `with` block, or uses a running cluster."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self._clusters: dict[int, KafkaCluster] = {}
        self._servers, self._home = os.environ.get(SERVERS), kafka_home()
        self.impossible: dict[Kind, str] = {}
        """The faults that are not possible here, with the reason."""
        if self._servers:
            for kind in ("node killed", *NETWORK):
                self.impossible[kind] = f"the nodes of {SERVERS} are not ours"
        if not can_mount(folder):
            self.impossible["disk full"] = "only root can mount a small disk"

    def __enter__(self) -> Ground:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def brokers(self) -> Collection[Broker]:
        """The kinds of broker that are available here."""
        brokers: tuple[Broker, ...] = ("kafka", "embedded")
        return brokers if self._servers or self._home else brokers[1:]

    def of(self, scenario: Scenario) -> Place:
        """Returns the brokers that a round needs. An embedded round has its own broker."""
        if scenario.broker == "embedded":
            return Place(self._stack.enter_context(EmbeddedBroker()).bootstrap_servers, None)
        if self._servers:
            return Place(self._servers, None)
        if scenario.nodes not in self._clusters:
            if self._home is None:
                raise LookupError(f"no Apache Kafka is available for rounds: set {SERVERS} or {HOME}")
            cluster = KafkaCluster(self._home, scenario.nodes, distant=True)
            self._clusters[scenario.nodes] = self._stack.enter_context(cluster)
        cluster = self._clusters[scenario.nodes]
        return Place(cluster.bootstrap_servers, cluster)
