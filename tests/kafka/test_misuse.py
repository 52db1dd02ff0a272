"""On a cluster without usable transactions and on a full disk, the error is clear and no record is lost."""

from __future__ import annotations

import json
import os
import random
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.kafka_cluster import KafkaCluster
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.testing import event
from traceweir.streams.worker.kafka.topic_admin import check_transactions, create_topics
from traceweir.streams.worker.runtime.delivery import NoTransactionsError, Transaction

pytestmark = pytest.mark.kafka

DEADLINE_S = 60


class Configured(KafkaCluster):
    """A cluster of one node with one additional broker option."""

    def __init__(self, home: Path, option: str) -> None:
        super().__init__(home)
        self._option = option

    def _configuration(self, number: int) -> str:
        return f"{super()._configuration(number)}{self._option}\n"


@pytest.fixture
def home() -> Path:
    if "KAFKA_HOME" not in os.environ:
        pytest.skip(
            "starts an Apache Kafka with options of its own: set KAFKA_HOME to an unpacked download (kafka.apache.org)"
        )
    return Path(os.environ["KAFKA_HOME"]).absolute()


@pytest.mark.parametrize(
    ("option", "sentence", "refusal"),
    [
        (
            "transaction.max.timeout.ms=10000",
            "the brokers' transaction.max.timeout.ms is 10000, and TRACEWEIR_TRANSACTION_TIMEOUT_S=60 needs 60000: raise",
            "the brokers' transaction.max.timeout.ms is below 60000",
        ),
        (
            "transaction.state.log.replication.factor=3",
            "its topic __transaction_state needs 3 copies, and the cluster has 1 brokers; start more brokers, or reduce",
            "no coordinator answered for 1 s. A cluster with fewer brokers",
        ),
    ],
)
async def test_a_cluster_without_usable_transactions_is_reported_by_the_check_the_worker_and_the_transaction(
    option: str, sentence: str, refusal: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Configured(home, option) as cluster:
        servers = cluster.bootstrap_servers
        settings = Settings(kafka_bootstrap_servers=servers, topic_prefix="misuse.")
        create_topics(settings)
        (problem,) = check_transactions(settings)
        assert sentence in problem

        config = tmp_path / "config.json"
        config.write_text("{}")
        with Fleet(servers, "misuse.", tmp_path, config) as fleet:
            worker = fleet.start("worker")
            assert worker.process.wait(DEADLINE_S) == 1
            assert sentence in worker.log.read_text()
            assert "Traceback" not in worker.log.read_text()

        monkeypatch.setattr(
            "traceweir.streams.worker.runtime.delivery.FENCE_WITHIN_S", 1.0 if "factor" in option else 60.0
        )
        delivery = Transaction({"bootstrap_servers": [servers]}, "misuse-0", "misuse")
        with pytest.raises(NoTransactionsError, match="Kafka refuses transactions to 'misuse-0'") as caught:
            await delivery.start()
        assert refusal in str(caught.value)


def test_a_cluster_with_transactions_passes_the_check(kafka: str) -> None:
    assert check_transactions(Settings(kafka_bootstrap_servers=kafka)) == []


# --- a full disk

SIZE, LEFT = 48 << 20, 3 << 20
SESSIONS, EVENTS, PAD = 40, 6, 40_000
"""Together more bytes in one partition than RocksDB keeps in memory before it writes a file."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yields a folder on its own small file system."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"needs a small disk, and so the right to mount one (as root): {' '.join(command)}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_worker_with_a_full_disk_ends_and_continues_without_loss_after_space_is_freed(
    kafka: str, small_disk: Path, tmp_path: Path
) -> None:
    prefix = f"full-{uuid.uuid4().hex[:8]}."
    create_topics(Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix))
    config = tmp_path / "config.json"
    config.write_text("{}")
    settings = {"TRACEWEIR_STATE_DIR": str(small_disk / "state"), "TRACEWEIR_IDLE_GAP_S": "3600"}
    names = [f"session {n}" for n in range(10 * SESSIONS) if partition_of(f"session {n}".encode(), 4) == 0][:SESSIONS]
    rnd = random.Random(1)
    producer = Producer({"bootstrap.servers": kafka, "log_level": 0, "message.max.bytes": 2_000_000})

    def send(name: str, kind: str, at: int, **fields: object) -> None:
        producer.produce(f"{prefix}invocations", json.dumps(event(kind, name, at, **fields)).encode(), name.encode(), 0)

    with (
        Fleet(kafka, prefix, tmp_path, config) as fleet,
        Committed(kafka, prefix, application_id(prefix, STAGES)) as committed,
    ):
        worker = fleet.start("worker", variables=settings)
        worker.until_ready()
        free = os.statvfs(small_disk)
        (small_disk / "ballast").write_bytes(b"x" * (free.f_bavail * free.f_bsize - LEFT))
        for at in range(EVENTS):
            for name in names:
                send(name, "model.called", at, note=rnd.randbytes(PAD).hex())
            producer.flush(30)
        more = 0
        while not worker.ended:  # A failed write in the background is reported at the next write.
            more += 1
            send(names[0], "model.called", EVENTS, note=f"{more}")
            producer.flush(30)
            committed.read(0.1)
        assert worker.process.returncode != 0
        log = worker.log.read_text()
        assert "the local rows of partition " in log
        assert "No space left on device" in log
        assert "No data is lost: free disk space" in log
        assert "Traceback" not in log

        (small_disk / "ballast").unlink()
        again = fleet.start("worker", variables=settings)
        again.until_ready()
        for name in names:
            send(name, "session.ended", EVENTS + 1)
        producer.flush(30)
        while len(list(committed.sessions())) < SESSIONS:
            assert not again.ended, again.log.read_text()
            committed.read(0.2)
        committed.read(2.0)
        found = sorted((session["session_id"], len(session["events"])) for session in committed.sessions())
        assert found == sorted((name, EVENTS + 1 + more * (name == names[0])) for name in names)
        again.terminate(DEADLINE_S)
