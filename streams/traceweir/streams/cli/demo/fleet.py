"""Generates from a seed all records that the simulated agents emit, and the expected outcome of each record."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zlib import crc32

from traceweir.scorers.embedding import Vectors, embedded_text
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.cli.demo.agents import DUPLICATE, Emission, Expected, Quality, Sketch, emissions_of, trace_of
from traceweir.streams.cli.demo.domains import DOMAINS, Domain
from traceweir.streams.cli.demo.unreadable import greetings, unreadable
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS

SESSIONS_PER_S = 7.0
LONGEST_SESSION_S = 6.0
SHORTEST_S = 8.0
"""The shortest duration, in seconds, in which every kind of session fits."""
MAX_SIMILARITY = 0.78
"""Limit of the cosine similarity of two traces of one domain; traces made as near-duplicates (twins) exceed it."""

SECRETS = ("mina.okafor@example.com", "010-2345-6789", "hunter2-of-mina", "sk-demo0123456789abcdefgh")
"""Secrets that one of the traces contains, and that must not appear on `network`."""
_REMARK_WITH_SECRETS = (
    f"Wrote to {SECRETS[0]} and rang {SECRETS[1]}; signed in with password={SECRETS[2]} and token {SECRETS[3]}."
)
_HOSTILE_REMARK = "[bold red]PASSED[/] [link=file:///etc/passwd]here[/link] \x1b]0;owned\x07\x1b[2J"

_KINDS: tuple[Quality | None, ...] = (
    "strong", "ordinary", "strong", None, "strong", "failed", "strong", "ordinary", "strong", "thought",
    "strong", "strong", "ordinary", "strong", "failed", "strong", None, "ordinary",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fleet:
    """The records to emit, ordered by `due_s`, and the session whose trace contains the secrets."""

    emissions: tuple[Emission, ...]
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
    drawn = _Draw(rng, name, seconds, start, number)
    sketches = drawn.sketches()
    emissions = [] if number else greetings()
    emissions += unreadable(rng, start, name, seconds - 1.0, rounds=max(1, round(seconds / 15)))
    for sketch in sketches:
        emissions += _disordered(rng, sketch, emissions_of(sketch, start))
    emissions.sort(key=lambda emission: emission.due_s)
    return Fleet(tuple(emissions), f"{name}-secrets")


class _Draw:
    """Draws the sessions of one round."""

    def __init__(self, rng: random.Random, name: str, seconds: float, start: datetime, number: int) -> None:
        self._rng = rng
        self._name = name
        self._start = start
        self._last_begin = seconds - LONGEST_SESSION_S
        # Each round has its own scopes; otherwise its novelty would depend on the traces of the previous rounds.
        self._domains = [replace(domain, name=f"{domain.name}-{number}") if number else domain for domain in DOMAINS]
        self._vectors: dict[str, list[Vectors]] = {}
        self._embedder = HashingEmbedder()

    def sketches(self) -> list[Sketch]:
        """Returns the sessions, in no particular order."""
        rng = self._rng
        found = [*self._special()]
        count = round(SESSIONS_PER_S * (self._last_begin + LONGEST_SESSION_S))
        while len(found) < count:
            number = len(found)
            name = f"{self._name}-{number:04d}"
            quality = _KINDS[number % len(_KINDS)]
            began = rng.uniform(0.0, self._last_begin)
            expected = tuple(self._expected() for _ in range(rng.choice((1, 1, 2, 2, 3))))
            if number % 9 == 4:
                found += self._twins(name)
            elif number % 9 == 8 and quality is not None:
                found.append(self._new(name, began, quality=quality, expected=(), names_session=number % 2 == 0))
            else:
                visibility = rng.choices(("network", "org", "private"), (8, 1, 1))[0]
                privacy = rng.choices(("aggregated", "federated", "private"), (8, 1, 1))[0]
                ends = number % 14 != 13
                began = began if ends else began * 0.7
                found.append(
                    self._new(
                        name,
                        began,
                        quality=quality,
                        expected=expected,
                        visibility=visibility,
                        privacy=privacy,
                        ends=ends,
                    )
                )
        return found

    def _special(self) -> list[Sketch]:
        """Returns the sessions that every round has: secrets, hostile text, and one trace id in two sessions."""
        name = self._name
        rng = self._rng
        secrets = self._new(
            f"{name}-secrets", rng.uniform(0.0, 1.5), expected=("match", "match"), remark=_REMARK_WITH_SECRETS
        )
        hostile = self._new(f"{name}-[red]hostile[/]", 1.0, expected=("match",), remark=_HOSTILE_REMARK)
        once = self._new(
            f"{name}-conflict-a", 0.5, expected=(), quality="ordinary", trace_id=f"kp:trace:{name}-conflict"
        )
        again = replace(once, session_id=f"{name}-conflict-b", began_s=self._last_begin)
        return [secrets, hostile, once, again]

    def _twins(self, name: str) -> list[Sketch]:
        """Returns a session and its near-duplicate. The trace that arrives first is novel, the other trace is not."""
        rng = self._rng
        last = self._last_begin
        first = self._new(f"{name}-a", rng.uniform(0.0, 0.4 * last), quality="twin", expected=("match",))
        return [first, replace(first, session_id=f"{name}-b", began_s=rng.uniform(0.7 * last, last), twist="indeed")]

    def _expected(self) -> Expected:
        choices: tuple[Expected, ...] = ("match", "tool_missing", "other_words", "nothing")
        return self._rng.choices(choices, (7, 1, 1, 2))[0]

    def _new(
        self,
        session_id: str,
        began_s: float,
        *,
        quality: Quality | None = "strong",
        expected: tuple[Expected, ...],
        ends: bool = True,
        visibility: str = "network",
        privacy: str = "aggregated",
        trace_id: str = "",
        remark: str = "",
        names_session: bool = True,
    ) -> Sketch:
        """Returns a sketch whose trace is dissimilar to all other traces of its domain (see `MAX_SIMILARITY`)."""
        domain = self._rng.choice(self._domains)
        while True:
            sketch = Sketch(
                session_id,
                domain,
                self._rng.getrandbits(48),
                began_s,
                quality,
                expected,
                ends,
                visibility,
                privacy,
                trace_id,
                remark=remark,
                names_session=names_session,
            )
            if self._is_new(sketch, domain):
                return sketch

    def _is_new(self, sketch: Sketch, domain: Domain) -> bool:
        trace = trace_of(sketch, self._start)
        if trace is None:
            return True
        steps: list[dict[str, str]] = trace["steps"]  # type: ignore[assignment]  # as written in `agents`
        objective: str = trace["task"]["objective"]  # type: ignore[index,call-overload,assignment]  # as above
        vector = self._embedder.embed([embedded_text(objective, [step.get("content") for step in steps])])[0]
        known = self._vectors.setdefault(domain.name, [])
        if any(float(vector @ other) > MAX_SIMILARITY for other in known):
            return False
        known.append(vector)
        return True


def _disordered(rng: random.Random, sketch: Sketch, emissions: Sequence[Emission]) -> list[Emission]:
    """Returns the records with realistic faults: duplicates, swapped order, missing or wrong keys, wrong partitions."""
    found = list(emissions)
    if sketch.domain.app == "상담봇":
        # CRC32 is librdkafka's default partitioner, which most clients outside Java use.
        return [replace(one, partition=crc32(one.key or b"") % PARTITIONS) for one in found]
    if not sketch.expected:
        return found
    early = [place for place, one in enumerate(found) if one.due_s < found[-1].due_s - 1.2]
    if early and rng.random() < 0.4:
        place = rng.choice(early)
        found[place] = rng.choice(_ODDITIES)(rng, found[place])
    if rng.random() < 0.3:
        calls = [place for place, one in enumerate(found) if b'"tool.called"' in (one.value or b"")]
        # The answer overtakes the call.
        place = rng.choice(calls)
        called = found[place]
        returned = found[place + 1]
        found[place] = replace(returned, due_s=called.due_s)
        found[place + 1] = replace(called, due_s=returned.due_s)
    if rng.random() < 0.3:
        again = rng.choice(found)
        partition = rng.choice((again.partition, rng.randrange(PARTITIONS)))
        due = again.due_s + rng.uniform(0.05, 3.0)
        found.append(replace(again, due_s=due, partition=partition, fate=DUPLICATE))
    return found


def _on_other_partition(rng: random.Random, one: Emission) -> Emission:
    return replace(one, partition=(one.partition + rng.randrange(1, PARTITIONS)) % PARTITIONS)


def _without_key(rng: random.Random, one: Emission) -> Emission:
    return replace(one, key=None, partition=rng.randrange(PARTITIONS))


def _with_users_key(rng: random.Random, one: Emission) -> Emission:
    key = f"user-{rng.randrange(40)}".encode()
    return replace(one, key=key, partition=partition_of(key, PARTITIONS))


_ODDITIES: tuple[Callable[[random.Random, Emission], Emission], ...] = (
    _on_other_partition,
    _without_key,
    _with_users_key,
)
