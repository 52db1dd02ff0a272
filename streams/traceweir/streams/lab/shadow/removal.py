"""Stops the processes of a shadow, and removes what belongs to it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Collection

from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.challenger_name import require_no_challenger
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.log import forget, read_definition, write_stop
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.worker.kafka.consumer_group import delete_group, members, wait_until_empty
from traceweir.streams.worker.kafka.topic_admin import delete_topics, existing_topics

STOPPED_WITHIN_S = 60.0
"""Time limit until all processes have left; that of a killed process ends with the session timeout."""


def stop(settings: Settings, name: str) -> int | None:
    """Asks the processes of a shadow to stop, and waits until they have left their group.

    Returns:
        The number of processes that were in the group; None if the broker cannot say it. A process that has started,
        but not joined yet, is not counted, and stops too.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: there is no such shadow, or a process does not leave in time.
    """
    _require(settings, name, existing_topics(settings))
    return _stop(settings, name)


def drop(settings: Settings, name: str) -> tuple[str, ...]:
    """Stops a shadow, and removes its topics, its group, its definition, and its local state on this machine.

    Returns:
        The names of the topics that were deleted.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: there is no such shadow, it is a challenger in effect, a process does not leave in time, or Kafka
            refuses.
        TopicsRefusedError: a topic could not be deleted.
    """
    names = ShadowNames.of(settings, name)
    topics = existing_topics(settings)
    require_no_challenger(settings, name, topics)
    own = tuple(topic for topic in names.own if topic in topics)
    # Also an interrupted creation can be removed.
    if not own:
        _require(settings, name, topics)
    if names.shadows in topics:
        _stop(settings, name)
    delete_topics(settings, own)
    delete_group(settings, names.application)
    if names.shadows in topics:
        forget(settings, name)
    shutil.rmtree(names.folder, ignore_errors=True)
    return own


def _require(settings: Settings, name: str, topics: Collection[str]) -> None:
    shadows = ShadowNames.of(settings, name).shadows
    if shadows not in topics or asyncio.run(read_definition(settings, name)) is None:
        raise ShadowError(f"there is no shadow {name!r}: check the name, and TRACEWEIR_TOPIC_PREFIX")


def _stop(settings: Settings, name: str) -> int | None:
    group = ShadowNames.of(settings, name).application
    running = members(settings, group)
    # Also if none is in the group: a process that has started, but not joined yet, reads the request when it joins.
    write_stop(settings, name)
    if running and not wait_until_empty(settings, group, STOPPED_WITHIN_S):
        raise ShadowError(
            f"a process of shadow {name!r} has not left its group within {STOPPED_WITHIN_S:g} s: stop it with a signal "
            "on its machine, and try again"
        )
    return None if running is None else len(running)
