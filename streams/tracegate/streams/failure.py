"""Why a worker ends, in words for the person who runs it."""

from __future__ import annotations

from aiokafka.errors import InvalidProducerEpoch, ProducerFenced


class WorkerFailure(RuntimeError):  # noqa: N818  # the name of what happened, and the base of what says so
    """The worker cannot go on; the message says why and what to do, so no traceback is needed."""


def in_words(error: BaseException | None) -> str | None:
    """The sentence for an error that was foreseen; None for one that nobody foresaw."""
    if isinstance(error, WorkerFailure):
        return str(error)
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        return (
            "another worker has taken over a partition of this one, which was frozen, cut off, or slower than the session timeout: "
            "nothing is lost; start the worker again"
        )
    return None
