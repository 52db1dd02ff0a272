"""Runs the embedded broker: librdkafka's mock cluster, which is part of the confluent-kafka wheel.

The broker speaks Kafka's protocol over a loopback socket and needs no installation. It is not Kafka:

- The broker stores its records in the memory of this process, and loses them when the process ends.
- A partition keeps about 5 MB, then drops its oldest records.
- Every topic appears at the first request for it, with four partitions. There is no administration and no compaction.
- Its transactions have no effect, so checkpoints on this broker are plain commits (`is_embedded` detects the broker).
"""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException, cimpl

PARTITIONS = 4
"""Partitions of every topic on an embedded broker: librdkafka's default."""

_CLUSTER_ID_START = "mockCluster"
_PRODUCER = 0
_CONF_OK = 0
_TEXT_BYTES = 512
_CONF = {"test.mock.num.brokers": "1", "bootstrap.servers": "ignored", "log_level": "0"}
"""A client owns the cluster. The client ignores its own address, and its notice on stderr is switched off."""
_JOIN_DELAY_MS = 0
"""How long the first member of a group waits for others. librdkafka's default made each first start of a worker 3 s longer."""


class EmbeddedBroker:
    """A broker of one node in this process, which runs while the `with` block runs.

    >>> with EmbeddedBroker() as broker:
    ...     broker.bootstrap_servers.startswith("127.0.0.1:")
    True
    """

    bootstrap_servers: str
    """`host:port`, on a free port chosen at start; set when the block is entered."""

    def __enter__(self) -> EmbeddedBroker:
        api = _Librdkafka()
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        conf = api.conf_new()
        for name, value in _CONF.items():
            if api.conf_set(conf, name.encode(), value.encode(), text, _TEXT_BYTES) != _CONF_OK:
                raise KafkaException(text.value.decode())
        # The client takes the ownership of `conf`, unless it cannot be created.
        owner = api.new(_PRODUCER, conf, text, _TEXT_BYTES)
        if owner is None:
            raise KafkaException(f"the embedded broker cannot start: {text.value.decode()}")
        cluster = api.handle_mock_cluster(owner)
        api.mock_group_initial_rebalance_delay_ms(cluster, _JOIN_DELAY_MS)
        self._api = api
        self._owner = owner
        self.bootstrap_servers = api.mock_cluster_bootstraps(cluster).decode()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._owner is not None:
            # Ends the mock cluster's thread and frees its port.
            self._api.destroy(self._owner)
            self._owner = None


class _Librdkafka:
    """The functions of librdkafka's C API that the broker needs: confluent-kafka has none for the delay of a group."""

    def __init__(self) -> None:
        # The library that the wheel's module is linked to: a search in the module finds its functions.
        self._library = ctypes.CDLL(cimpl.__file__)
        pointer = ctypes.c_void_p
        text = ctypes.c_char_p
        number = ctypes.c_int
        size = ctypes.c_size_t
        self.conf_new = self._function("conf_new", pointer)
        self.conf_set = self._function("conf_set", number, pointer, text, text, text, size)
        self.new = self._function("new", pointer, number, pointer, text, size)
        self.handle_mock_cluster = self._function("handle_mock_cluster", pointer, pointer)
        self.mock_group_initial_rebalance_delay_ms = self._function(
            "mock_group_initial_rebalance_delay_ms", None, pointer, ctypes.c_int32
        )
        self.mock_cluster_bootstraps = self._function("mock_cluster_bootstraps", text, pointer)
        self.destroy = self._function("destroy", None, pointer)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = self._library[f"rd_kafka_{name}"]
        function.restype = result
        function.argtypes = arguments
        return function


def is_embedded(cluster_id: str | None) -> bool:
    """Returns whether a cluster with this id is an embedded broker, in this process or another.

    >>> is_embedded("mockCluster1571646124c0"), is_embedded("5L6g3nShT-eMCtK--X86sw"), is_embedded(None)
    (True, False, False)
    """
    return cluster_id is not None and cluster_id.startswith(_CLUSTER_ID_START)
