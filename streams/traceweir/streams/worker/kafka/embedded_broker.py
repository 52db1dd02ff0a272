"""Runs the embedded broker: librdkafka's mock cluster, which is part of the confluent-kafka wheel.

The broker speaks Kafka's protocol over a loopback socket and needs no installation. It is not Kafka:

- The broker stores its records in the memory of this process, and loses them when the process ends.
- A partition keeps about 5 MB, then drops its oldest records.
- Every topic appears at the first request for it, with four partitions. There is no administration and no compaction.
- Its transactions have no effect, so checkpoints on this broker are plain commits (`is_embedded` detects the broker).
"""

from __future__ import annotations

from types import TracebackType

from confluent_kafka import Producer

PARTITIONS = 4
"""Partitions of every topic on an embedded broker: librdkafka's default, which Python cannot change."""

_CLUSTER_ID_START = "mockCluster"


class EmbeddedBroker:
    """A broker of one node in this process, which runs while the `with` block runs.

    >>> with EmbeddedBroker() as broker:
    ...     broker.bootstrap_servers.startswith("127.0.0.1:")
    True
    """

    bootstrap_servers: str
    """`host:port`, on a free port chosen at start; set when the block is entered."""

    def __enter__(self) -> EmbeddedBroker:
        # A client owns the cluster. The client ignores its own address, and its notice on stderr is switched off.
        owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "ignored", "log_level": 0})
        (node,) = owner.list_topics(timeout=10).brokers.values()
        self._owner = owner
        self.bootstrap_servers = f"{node.host}:{node.port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._owner.close()  # ends the mock cluster's thread and frees its port


def is_embedded(cluster_id: str | None) -> bool:
    """Returns whether a cluster with this id is an embedded broker, in this process or another.

    >>> is_embedded("mockCluster1571646124c0"), is_embedded("5L6g3nShT-eMCtK--X86sw"), is_embedded(None)
    (True, False, False)
    """
    return cluster_id is not None and cluster_id.startswith(_CLUSTER_ID_START)
