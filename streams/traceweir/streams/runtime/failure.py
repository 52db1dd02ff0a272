"""Explains a failure of a worker in words, where a sentence can replace the traceback."""

from __future__ import annotations

from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from traceweir.streams.errors import WorkerError


def in_words(error: BaseException | None) -> str | None:
    """Returns the message for an expected error, None for an unexpected error."""
    if isinstance(error, WorkerError):
        return str(error)
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        return (
            "Kafka accepts no more transactions from this worker: another worker has taken over a partition, or a "
            "transaction was open for too long. This happens to a worker that was frozen, disconnected or starved of "
            "CPU. No data is lost; start the worker again"
        )
    return None
