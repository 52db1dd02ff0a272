"""Why a worker ends, in words for the person who runs it."""

from __future__ import annotations

from aiokafka.errors import InvalidProducerEpoch, ProducerFenced


class WorkerError(RuntimeError):
    """The worker cannot go on; the message says why and what to do, so no traceback is needed."""


def in_words(error: BaseException | None) -> str | None:
    """The sentence for an error that was foreseen; None for one that nobody foresaw."""
    if isinstance(error, WorkerError):
        return str(error)
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        return (
            "Kafka takes no more transactions from this worker: another one has taken over a partition, or a transaction was open for too "
            "long. That is how it ends for one that was frozen, cut off or starved of CPU; nothing is lost; start it again"
        )
    return None
