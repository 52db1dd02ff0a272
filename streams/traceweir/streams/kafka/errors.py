"""What the requests to a cluster raise."""

from __future__ import annotations


class KafkaUnreachableError(Exception):
    """No broker answered in time; the message contains the address, the reason and the way out."""


class TopicsRefusedError(Exception):
    """The cluster refuses to create or to delete topics; the message names each topic with the reason."""
