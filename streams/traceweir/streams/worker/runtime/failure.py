"""Explains a failure of a worker in words, where a sentence can replace the traceback."""

from __future__ import annotations

from aiokafka.errors import InvalidProducerEpoch, KafkaConnectionError, KafkaError, ProducerFenced

from traceweir.schemas.text import printable
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.scoring.isolation.process import ScoringProcessDiedError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.runtime.batches import TOO_LARGE
from traceweir.streams.worker.runtime.delivery import PRODUCER_FORGOTTEN


def in_words(error: BaseException | None) -> str | None:
    """Returns the message for an expected error, None for an unexpected error."""
    if isinstance(error, WorkerError | KafkaUnreachableError | ScoringProcessDiedError):
        return str(error)
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        return (
            "Kafka accepts no more transactions from this worker: another worker has taken over a partition. This happens "
            "to a worker that was frozen, disconnected or starved of CPU for longer than the session timeout, and to one "
            "of two workers with the same TRACEWEIR_GROUP_INSTANCE_ID. No data is lost"
        )
    if isinstance(error, PRODUCER_FORGOTTEN):
        return (
            f"Kafka has forgotten the producer of this worker ({type(error).__name__}). This happens to a worker that has "
            "committed nothing for longer than the brokers' transactional.id.expiration.ms (a week by default), and after "
            "a cluster has lost records. No data is lost"
        )
    if isinstance(error, KafkaConnectionError):
        return (
            f"Kafka cannot be reached ({printable(str(error))}): check that the brokers run, and start the worker again. "
            "No data is lost"
        )
    if isinstance(error, TOO_LARGE):
        return (
            f"{printable(str(error))}. A worker learns the limit when it takes partitions over, if it has the right "
            "DescribeConfigs on the topic. No data is lost"
        )
    if isinstance(error, KafkaError):
        return (
            f"Kafka refuses a request of this worker ({printable(str(error))}): remove the cause, and start the worker "
            "again. No data is lost"
        )
    return None
