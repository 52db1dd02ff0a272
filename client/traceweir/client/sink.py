"""Gives each event its id, and queues it for the topic that it belongs to."""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Mapping
from typing import Any

from traceweir.client.delivery import RecordQueue
from traceweir.client.json_values import encode
from traceweir.client.problems import ThrottledLog
from traceweir.client.trace_context import active_span_reader


class _Ids:
    """The ids of one process: a random prefix, and numbers."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.prefix = secrets.token_hex(16)
        self.numbers = itertools.count()


class Sink:
    """Writes events and reasoning traces of all sessions to the two topics that Traceweir reads from agents."""

    def __init__(self, delivery: RecordQueue, problems: ThrottledLog, topic_prefix: str) -> None:
        """Stores the arguments.

        Args:
            delivery: The queue.
            problems: Where problems of the recording are logged.
            topic_prefix: What the names of the topics begin with, its dot included.
        """
        self.delivery = delivery
        self.problems = problems
        self.active_span = active_span_reader()
        self._invocations = f"{topic_prefix}invocations"
        self._traces = f"{topic_prefix}traces"
        self._ids = _Ids()

    def new_id(self) -> str:
        """Returns an id that no other process and no other recorder has: 128 random bits and a number."""
        ids = self._ids
        # A fork would repeat the ids of its parent.
        if ids.process != os.getpid():
            # Threads that do this at the same time each use ids of their own.
            ids = self._ids = _Ids()
        return f"{ids.prefix}-{next(ids.numbers)}"

    def put_event(self, key: bytes, envelope: bytes, fields: bytes, occurred_at: str) -> None:
        """Queues an event.

        Args:
            key: The session id; events of a session are written to one partition.
            envelope: The JSON of the fields that all events of the invocation have, without its closing brace.
            fields: The JSON of the other fields of the event, without its braces.
            occurred_at: When the event occurred, as a date-time in UTC.
        """
        event_id = self.new_id().encode()
        at = occurred_at.encode()
        value = b'%b,"event_id":"%b","occurred_at":"%b",%b}' % (envelope, event_id, at, fields)
        self.delivery.put(self._invocations, key, value)

    def put_trace(self, key: bytes, document: Mapping[str, Any]) -> None:
        """Queues a reasoning trace."""
        self.delivery.put(self._traces, key, encode(document))
