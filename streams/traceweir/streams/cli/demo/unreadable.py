"""Generates unusable records, each with the expected reason of its dead letter."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from traceweir.streams.cli.demo.agents import Emission, Input, Sketch, trace_of
from traceweir.streams.cli.demo.domains import DOMAINS
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS

_YEAR = timedelta(days=365)


class _Broken(NamedTuple):
    topic: Input
    value: bytes | None
    reason: str
    ahead_s: float = 0.0


def unreadable(rng: random.Random, start: datetime, name: str, seconds: float, rounds: int) -> list[Emission]:
    """Returns every kind of unusable record, `rounds` times, at random times within `seconds`."""
    found = []
    for number in range(rounds):
        key = f"{name}-unreadable-{number}".encode()
        for broken in _kinds(start, key.decode()):
            partition = rng.randrange(PARTITIONS)
            due = rng.uniform(0.5, seconds)
            emission = Emission(
                due, broken.topic, partition, key, broken.value, fate=broken.reason, ahead_s=broken.ahead_s
            )
            # A session knows of its refused events, so these go to its home.
            found.append(replace(emission, session=key.decode()) if broken.topic == "invocations" else emission)
    return found


def greetings() -> list[Emission]:
    """Returns one unreadable record per partition, without a session.

    When all of them are dead letters, the worker has its partitions and reads.
    """
    return [
        Emission(-1.0, "invocations", partition, None, b"is anybody there?", fate="not_json")
        for partition in range(PARTITIONS)
    ]


def _kinds(start: datetime, session_id: str) -> Iterator[_Broken]:
    trace = trace_of(Sketch(session_id, DOMAINS[0], 1, 0.0), start) or {}
    event = {"type": "session.ended", "session_id": session_id, "occurred_at": start.isoformat()}
    whole = orjson.dumps(event)
    outcome = {"result_summary": "sure", "confidence": 1.5}
    yield _Broken("traces", orjson.dumps(trace | {"outcome": outcome}), "invalid")
    yield _Broken("traces", orjson.dumps(trace | {"steps": []}), "invalid")
    yield _Broken("traces", orjson.dumps(trace | {"steps": [{"step_id": 0, "type": "reflection"}]}), "invalid")
    yield _Broken("invocations", orjson.dumps(event | {"occurred_at": "2026-03-01T12:00:00"}), "invalid")
    yield _Broken("invocations", orjson.dumps(event | {"occurred_at": (start + _YEAR).isoformat()}), "future_timestamp")
    yield _Broken("invocations", whole, "future_timestamp", ahead_s=_YEAR.total_seconds())
    yield _Broken("invocations", whole[:-9], "not_json")
    yield _Broken("invocations", whole[:-1] + b',"confidence":NaN}', "not_json")
    yield _Broken("traces", b'{"id":"\xff\xfe"}', "not_json")
    yield _Broken("traces", b'{"id":' + b"[" * 1_000 + b"]" * 1_000 + b"}", "not_json")
    yield _Broken("invocations", b'"[bold red]I am a text, not an object\x1b[2J[/]"', "not_json")
    yield _Broken("invocations", b'["[bold red]a list[/]"]', "not_an_object")
    yield _Broken("invocations", orjson.dumps(event | {"type": "[link=file:///]nothing known[/]"}), "invalid")
    yield _Broken("traces", b"", "empty")
    yield _Broken("invocations", None, "empty")
