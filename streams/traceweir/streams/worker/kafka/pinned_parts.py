"""Checks at start that the installed Faust and aiokafka have the private parts that Traceweir uses."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import aiokafka
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import TopicPartitionState
from aiokafka.producer.sender import Sender, TxnOffsetCommitHandler
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.record import default_records
from aiokafka.record.default_records import _DefaultRecordBatchPy
from faust.assignor import PartitionAssignor
from faust.stores.rocksdb import Store
from faust.tables.manager import TableManager
from faust.transport.drivers import aiokafka as driver

from traceweir.streams.worker.kafka.fetch import PartitionRecords

PINNED = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0", "mode-streaming": "0.7.1"}
_PARTS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (driver.Consumer, ("_getmany", "_new_consumer_thread", "_seek", "perform_seek", "wait_empty")),
    (
        driver.AIOKafkaConsumerThread,
        (
            "_create_worker_consumer",
            "_ensure_consumer",
            "_fetch_records",
            "_keepalive2",
            "_log_slow_processing_commit",
            "call_thread",
            "on_crash",
            "on_start",
        ),
    ),
    (
        GroupCoordinator,
        ("_coordination_routine", "_do_rejoin_group", "_push_error_to_user", "request_rejoin", "reset_generation"),
    ),
    (AIOKafkaClient, ("_get_conn", "_md_synchronizer", "bootstrap")),
    (AIOKafkaConnection, ("send",)),
    (TopicPartitionState, ("await_reset", "has_valid_position")),
    (
        PartitionAssignor,
        (
            "_compress",
            "_decompress",
            "_get_client_metadata",
            "_global_table_standby_assignments",
            "_perform_assignment",
            "_protocol_assignments",
            "on_assignment",
        ),
    ),
    (TableManager, ("on_actives_ready", "on_rebalance", "on_start", "_update_channels", "recovery")),
    (
        Store,
        ("_db_for_partition", "basename", "offset_key", "path", "persisted_offset"),
    ),
    (TransactionManager, ("error_transaction", "maybe_add_partition_to_txn")),
    (Sender, ("_do_txn_offset_commit", "_find_coordinator")),
    (TxnOffsetCommitHandler, ("create_request", "handle_response")),
    (fetcher, ("MemoryRecords", "PartitionRecords")),
    (fetcher.Fetcher, ("_fetch_requests_routine", "_select_read_replica")),
    (default_records, ("gzip_decode", "lz4_decode", "snappy_decode", "zstd_decode")),
    (PartitionRecords, ("_consumer_record", "_unpack_records")),
    (_DefaultRecordBatchPy, ("_read_msg",)),
    (aiokafka.AIOKafkaProducer, ("create_batch", "send_batch", "send_offsets_to_transaction")),
)


class IncompatibleFaustError(RuntimeError):
    """The installed Faust or aiokafka differs from the version that the checkpoint was written for."""


def verify() -> None:
    """Checks the versions and the private parts of Faust and aiokafka.

    Raises:
        IncompatibleFaustError: a version or a part differs; the message names all differences.
    """
    found = {name: version(name) for name in PINNED}
    problems = [f"{name} is {found[name]}, not {wanted}" for name, wanted in PINNED.items() if found[name] != wanted]
    problems += [
        f"{part.__name__}.{name} does not exist" for part, names in _PARTS for name in names if not hasattr(part, name)
    ]
    if problems:
        pins = " ".join(f"{name}=={wanted}" for name, wanted in PINNED.items())
        raise IncompatibleFaustError(
            f"{'; '.join(problems)}. Install what Traceweir was tested with: pip install {pins}"
        )
