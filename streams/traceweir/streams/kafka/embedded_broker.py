"""The embedded broker: librdkafka's mock cluster, which the confluent-kafka wheel carries.

It speaks Kafka's protocol over a loopback socket and needs nothing installed. It is no Kafka:

- it lives in this process's memory and is gone with it;
- a partition keeps about 5 MB, then drops its oldest records;
- every topic appears when first asked for, with four partitions; there is no administration and no compaction;
- its transactions are an empty form, so checkpoints on it are plain commits (`is_embedded` tells the worker).
"""

from __future__ import annotations

from types import TracebackType

from confluent_kafka import Producer

PARTITIONS = 4
"""Partitions of every topic on an embedded broker; librdkafka's default, out of reach from Python."""

_CLUSTER_ID_START = "mockCluster"


class EmbeddedBroker:
    """A broker of one node in this process, for as long as the `with` block lasts.

    >>> with EmbeddedBroker() as broker:
    ...     broker.bootstrap_servers.startswith("127.0.0.1:")
    True
    """

    bootstrap_servers: str
    """`host:port`, on a free port chosen at start; set once the block is entered."""

    def __enter__(self) -> EmbeddedBroker:
        # The cluster belongs to a client; its own address is ignored, and its notice of that on stderr silenced.
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
    """Tell whether a cluster with this id is an embedded broker, in this process or another.

    >>> is_embedded("mockCluster1571646124c0"), is_embedded("5L6g3nShT-eMCtK--X86sw"), is_embedded(None)
    (True, False, False)
    """
    return cluster_id is not None and cluster_id.startswith(_CLUSTER_ID_START)
