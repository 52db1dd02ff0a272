"""Generates from a seed all records that the simulated agents send, and what is expected of each."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from zlib import crc32

import orjson

from traceweir.scorers.embedding import Vectors, embedded_text
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.cli.demo.ledger import Counts, outcome_of
from traceweir.streams.cli.demo.sessions import (
    DUPLICATE,
    Emission,
    Expected,
    Input,
    Quality,
    Sketch,
    emissions_of,
    trace_of,
)
from traceweir.streams.cli.demo.texts import domains
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS

SESSIONS_PER_S = 7.0
LONGEST_SESSION_S = 6.0
SHORTEST_S = 8.0
"""The shortest duration, in seconds, in which every kind of session fits."""
MAX_SIMILARITY = 0.78
"""Limit of the cosine similarity of two traces of one domain; only twins exceed it."""

SECRETS = ("mina.okafor@example.com", "010-2345-6789", "hunter2-of-mina", "sk-demo0123456789abcdefgh")
"""Secrets that one of the traces contains, and that must not appear on `network`."""
_SECRET_REMARK = (
    f" Wrote to {SECRETS[0]} and rang {SECRETS[1]}; signed in with password={SECRETS[2]} and token {SECRETS[3]}."
)
_HOSTILE_REMARK = " [bold red]PASSED[/] [link=file:///etc/passwd]here[/link] \x1b]0;owned\x07\x1b[2J"
_QUALITIES: Mapping[Quality | None, int] = {"strong": 8, "ordinary": 4, None: 2, "failed": 3, "thought": 1}
_EXPECTED: Mapping[Expected, int] = {"match": 7, "tool_missing": 1, "other_words": 1, "nothing": 2}
"""How often each kind is drawn."""
_YEAR = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The records to send, ordered by `due_s`."""

    emissions: tuple[Emission, ...]
    outcomes: Mapping[str, Counts]
    """What the worker must make of each session, by id."""
    session_with_secrets: str


def build_fleet(seed: int, seconds: float, start: datetime, number: int = 0) -> Fleet:
    """Returns the records of one round; the same records for the same arguments.

    Args:
        seed: Determines all random choices.
        seconds: How long the agents work, approximately; values below 8 count as 8.
        start: The time of second 0; the records contain times relative to it.
        number: 0, or the number of a later round. Each round has its own ids and domains.
    """
    rng = random.Random(f"{seed}/{number}")  # noqa: S311  # a story, no secret
    seconds = max(seconds, SHORTEST_S)
    name = f"demo-{number}" if number else "demo"
    sketches = _Draw(rng, name, start, number, seconds - LONGEST_SESSION_S).sketches(round(SESSIONS_PER_S * seconds))
    emissions = [] if number else greetings()
    for each in range(max(1, round(seconds / 15))):
        emissions += _unreadable(rng, start, f"{name}-unreadable-{each}", seconds - 1.0)
    for sketch in sketches:
        emissions += _disordered(rng, sketch, emissions_of(sketch, start))
    emissions.sort(key=lambda emission: emission.due_s)
    return Fleet(tuple(emissions), {sketch.session_id: outcome_of(sketch) for sketch in sketches}, f"{name}-secrets")


def greetings() -> list[Emission]:
    """Returns an unreadable record for each partition; when all are dead letters, the worker has its partitions and reads."""
    return [
        Emission(-1.0, "invocations", partition, None, b"is anybody there?", fate="not_json")
        for partition in range(PARTITIONS)
    ]


class _Draw:
    """Draws the sessions of one round."""

    def __init__(self, rng: random.Random, name: str, start: datetime, number: int, last_begin_s: float) -> None:
        self._rng = rng
        self._name = name
        self._start = start
        self._last_s = last_begin_s
        # Each round has its own scopes; otherwise its novelty would depend on the traces of the previous rounds.
        suffix = f"-{number}" if number else ""
        self._domains = [each.model_copy(update={"name": f"{each.name}{suffix}"}) for each in domains()[:-1]]
        self._vectors: dict[str, list[Vectors]] = {}
        self._embedder = HashingEmbedder()

    def sketches(self, count: int) -> list[Sketch]:
        """Returns the sessions: one with secrets, one with hostile text, two with the same trace id, and ordinary ones."""
        once = self._new("conflict-a", 0.5, quality="ordinary", expected=(), trace_id=f"{self._name}-conflict")
        found = [
            self._new("secrets", self._rng.uniform(0.0, 1.5), remark=_SECRET_REMARK),
            self._new("[red]hostile[/]", 1.0, remark=_HOSTILE_REMARK),
            once,
            replace(once, session_id=f"{self._name}-conflict-b", began_s=self._last_s, repeats="trace id"),
        ]
        while len(found) < count:
            found += self._twins(len(found)) if len(found) % 9 == 4 else [self._ordinary(len(found))]
        return found

    def _twins(self, number: int) -> list[Sketch]:
        """Returns a session and its near-duplicate. The trace that arrives first is novel, the other trace is not."""
        first = self._new(f"{number:04d}-a", self._rng.uniform(0.0, 0.4 * self._last_s), quality="twin")
        began_s = self._rng.uniform(0.7 * self._last_s, self._last_s)
        return [first, replace(first, session_id=f"{self._name}-{number:04d}-b", began_s=began_s, repeats="trace")]

    def _ordinary(self, number: int) -> Sketch:
        rng = self._rng
        name = f"{number:04d}"
        began_s = rng.uniform(0.0, self._last_s)
        quality = _drawn(rng, _QUALITIES)
        if number % 9 == 8 and quality is not None:
            return self._new(name, began_s, quality=quality, expected=(), names_session=number % 2 == 0)
        ends = number % 14 != 13
        return self._new(
            name,
            began_s if ends else began_s * 0.7,
            quality=quality,
            expected=tuple(_drawn(rng, _EXPECTED) for _ in range(rng.choice((1, 1, 2, 2, 3)))),
            ends=ends,
            visibility=_drawn(rng, {"network": 8, "org": 1, "private": 1}),
            privacy=_drawn(rng, {"aggregated": 8, "federated": 1, "private": 1}),
            fails=rng.random() < 0.1,
        )

    def _new(self, name: str, began_s: float, **fields: Any) -> Sketch:
        """Returns a sketch whose trace is dissimilar to all other traces of its domain (see `MAX_SIMILARITY`)."""
        domain = self._rng.choice(self._domains)
        known = self._vectors.setdefault(domain.name, [])
        while True:
            sketch = Sketch(f"{self._name}-{name}", domain, self._rng.getrandbits(48), began_s, **fields)
            trace: Any = trace_of(sketch, self._start)
            if trace is None:
                return sketch
            text = embedded_text(trace["task"]["objective"], [step.get("content") for step in trace["steps"]])
            vector = self._embedder.embed([text])[0]
            if all(float(vector @ other) <= MAX_SIMILARITY for other in known):
                known.append(vector)
                return sketch


_Kind = TypeVar("_Kind")


def _drawn(rng: random.Random, shares: Mapping[_Kind, int]) -> _Kind:
    return rng.choices([*shares], [*shares.values()])[0]


def _disordered(rng: random.Random, sketch: Sketch, emissions: Sequence[Emission]) -> list[Emission]:
    """Returns the records with realistic faults: duplicates, swapped order, missing or wrong keys, wrong partitions."""
    found = list(emissions)
    if not sketch.domain.app.isascii():
        # CRC32 is librdkafka's default partitioner, which most clients outside Java use.
        return [replace(one, partition=crc32(one.key or b"") % PARTITIONS) for one in found]
    if not sketch.expected:
        return found
    early = [place for place, one in enumerate(found) if one.due_s < found[-1].due_s - 1.2]
    if early and rng.random() < 0.4:
        place = rng.choice(early)
        user = f"user-{rng.randrange(40)}".encode()
        away = (found[place].partition + rng.randrange(1, PARTITIONS)) % PARTITIONS
        found[place] = replace(
            found[place],
            **rng.choice(
                (
                    {"partition": away},
                    {"key": None, "partition": rng.randrange(PARTITIONS)},
                    {"key": user, "partition": partition_of(user, PARTITIONS)},
                )
            ),
        )
    if rng.random() < 0.3:
        # The answer of a tool overtakes its call.
        place = rng.choice([place for place, one in enumerate(found) if b'"tool.called"' in (one.value or b"")])
        called, returned = found[place : place + 2]
        found[place : place + 2] = [replace(returned, due_s=called.due_s), replace(called, due_s=returned.due_s)]
    if rng.random() < 0.3:
        again = rng.choice(found)
        partition = rng.choice((again.partition, rng.randrange(PARTITIONS)))
        found.append(replace(again, due_s=again.due_s + rng.uniform(0.05, 3.0), partition=partition, fate=DUPLICATE))
    return found


def _unreadable(rng: random.Random, start: datetime, name: str, seconds: float) -> Iterator[Emission]:
    """Returns every kind of unusable record, at random times within `seconds`."""
    trace = trace_of(Sketch(name, domains()[0], 1, 0.0), start) or {}
    event = {"type": "session.ended", "session_id": name, "occurred_at": start.isoformat()}
    whole = orjson.dumps(event)
    late = event | {"occurred_at": (start + _YEAR).isoformat()}
    kinds: tuple[tuple[str, Input, bytes | None], ...] = (
        ("invalid", "traces", orjson.dumps(trace | {"outcome": {"result_summary": "sure", "confidence": 1.5}})),
        ("invalid", "traces", orjson.dumps(trace | {"steps": []})),
        ("invalid", "traces", orjson.dumps(trace | {"steps": [{"step_id": 0, "type": "reflection"}]})),
        ("invalid", "invocations", orjson.dumps(event | {"occurred_at": "2026-03-01T12:00:00"})),
        ("invalid", "invocations", orjson.dumps(event | {"type": "[link=file:///]nothing known[/]"})),
        ("future_timestamp", "invocations", orjson.dumps(late)),
        ("future_timestamp", "invocations", whole),
        ("not_json", "invocations", whole[:-9]),
        ("not_json", "invocations", whole[:-1] + b',"confidence":NaN}'),
        ("not_json", "traces", b'{"id":"\xff\xfe"}'),
        ("not_json", "traces", b'{"id":' + b"[" * 1_000 + b"]" * 1_000 + b"}"),
        ("not_json", "invocations", b'"[bold red]I am a text, not an object\x1b[2J[/]"'),
        ("not_an_object", "invocations", b'["[bold red]a list[/]"]'),
        ("empty", "traces", b""),
        ("empty", "invocations", None),
    )
    for fate, topic, value in kinds:
        ahead_s = _YEAR.total_seconds() if value is whole else 0.0
        # A session knows of its refused events, so these go to its home.
        session = name if topic == "invocations" else ""
        due_s = rng.uniform(0.5, seconds)
        yield Emission(due_s, topic, rng.randrange(PARTITIONS), name.encode(), value, (), session, fate, ahead_s)
