"""Names the offset from which a consumer fetches next, as it knows it; asks no broker."""

from __future__ import annotations

from typing import Any

from aiokafka import TopicPartition


def read_position(consumer: Any, place: TopicPartition) -> int | None:
    """Returns the offset from which a consumer fetches next: past the markers of transactions too; None if it has none.

    `position` of aiokafka would wait for one.
    """
    subscription = consumer._subscription.subscription
    if subscription is None or subscription.assignment is None:
        return None
    state = subscription.assignment.state_value(place)
    return state.position if state is not None and state.has_valid_position else None
