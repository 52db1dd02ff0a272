"""What the requests to a cluster raise."""

from __future__ import annotations


class KafkaUnreachableError(Exception):
    """No broker answered in time; the message contains the address, the reason and the way out."""


class TokenError(KafkaUnreachableError):
    """There is no token with which a client could log in; the message contains where it was asked for, the reason and the way out."""


class TopicsRefusedError(Exception):
    """The cluster refuses to create or to delete topics; the message names each topic with the reason."""
