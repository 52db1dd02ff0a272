"""Defines the exceptions that stages handle when work on one record fails. Imports no Kafka client."""

from __future__ import annotations

from traceweir.schemas.dead_letter import Reason


class RecordRejected(Exception):  # noqa: N818  # an outcome that the caller handles
    """A record cannot be used.

    Args:
        reason: The reason of its dead letter.
        detail: One sentence for a person.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.detail = detail


class RecordFailed(Exception):  # noqa: N818  # an outcome that the caller handles
    """Work on one record ended with an exception that no stage expects. The stage's state can contain a part of that work.

    Args:
        topic: The input of the record.
        offset: The offset of the record.
        error: The exception.
    """

    def __init__(self, topic: str, offset: int, error: Exception) -> None:
        super().__init__(f"{topic}@{offset}: {type(error).__name__}: {error}")
        self.topic = topic
        self.offset = offset
        self.error = error


class SessionFailed(Exception):  # noqa: N818  # an outcome that the caller handles
    """Work on one open session, such as its close, ended with an exception that no stage expects.

    A stage that raises it has the method `set_aside`, and holds the records of the session in its state.

    Args:
        session: The session id.
        error: The exception.
    """

    def __init__(self, session: bytes, error: Exception) -> None:
        super().__init__(f"session {session!r}: {type(error).__name__}: {error}")
        self.session = session
        self.error = error


class RecordUnavailable(Exception):  # noqa: N818  # an outcome that the caller handles
    """A record could not be read again.

    Topic, partition or right is missing, no broker answered in time, or the record is in a transaction that is open.
    """
