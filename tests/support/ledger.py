"""Generates a load and records everything that was sent, so that an audit can compute the expected output."""

from __future__ import annotations

import heapq
import json
import random
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aiokafka.partitioner import murmur2
from tests.support.scripts import Step, former_life, steps

from traceweir.streams.pipeline.assemble.refusals import refusal_of

Document = dict[str, Any]

PARTITIONS = 4
PRODUCTION = "production"
ENVIRONMENTS = ("", PRODUCTION)
"""The environments of the sessions of a load with several apps; empty: the session names none."""
MARKS = {"raises": 0.008, "returns-rubbish": 0.008, "is-no-number": 0.008, "hangs": 0.0015, "kills-once": 0.002}
"""Marks, and the share of sessions with each: the scorer in `unsteady.py` acts on ids that end with `~` and a mark."""
_AWAY = "away"
"""The kind of a record whose producer was away."""
POISON = "holds"
"""The mark of a session for which the scorer blocks its process without end."""


class Sending(NamedTuple):
    """A record to send."""

    topic: str
    """`traces` or `invocations`, without a prefix."""
    partition: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]] = []
    at: float | None = None
    """The record's timestamp, in seconds since 1970; None: the time of sending."""


class Refused(NamedTuple):
    """A record that must become a dead letter."""

    topic: str
    key: bytes | None
    value: bytes
    reason: str


@dataclass
class Ledger:
    """Emits sessions of several domains record by record, interleaved at random, and counts the records by outcome.

    Records come out of order, twice, late, on wrong partitions and without a key; some sessions fall silent for a
    while, some had a life long before, and some records cannot be used at all.
    """

    seed: int
    live: int = 60
    """Number of sessions that are in progress at the same time."""
    silence_s: float = 6.0
    """How long a session with a pause sends nothing, in seconds."""
    late: float = 0.0
    """The share of sessions with a record that arrives after the session has closed, by kind of lateness."""
    former: float = 0.0
    """The share of sessions that have an earlier segment, which closed long before."""
    former_s: float = 150.0
    """How long before the session the earlier segment was, in seconds."""
    unsteady: float = 0.0
    """The factor by which the shares in `MARKS` are multiplied."""
    without: Collection[str] = ()
    """Marks that no session gets."""
    poisonous: int = 0
    """Number of sessions that block the scoring process without end."""
    away_s: float | None = None
    """Age of the records of a producer that was away for longer than the guard; None: the load has no such record."""
    apps: Collection[str] = ()
    """The apps of the sessions, half of which then name an environment; empty: all have one app and no environment."""
    warm: bool = False
    """Whether every partition has a watermark. The caller sets this; before that no record is behind one."""
    events: dict[str, set[str]] = field(default_factory=dict)
    """The canonical JSON of each event that was sent, by session."""
    before: dict[str, str] = field(default_factory=dict)
    """The only event of the earlier segment, by session that has an earlier segment."""
    traces: dict[str, list[Document]] = field(default_factory=dict)
    """The contents of each trace that was sent, in order, by trace id."""
    session_of: dict[str, str] = field(default_factory=dict)
    """By trace id."""
    doubled: set[str] = field(default_factory=set)
    """Sessions of which a record was sent twice. The record that arrives first counts, with its timestamp."""
    refused: list[Refused] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    """Number of records by kind."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._scripts: list[Iterator[Sending | None]] = []
        self._later: list[tuple[float, int, Iterator[Sending | None] | Sending]] = []
        self._by_domain: dict[str, list[Document]] = defaultdict(list)
        self._made = self._number = 0
        self._now = 0.0

    def records(self, count: int, now: float) -> list[Sending]:
        """Returns the next records; `now` is in seconds since 1970."""
        self._now = now
        due: list[Sending] = []
        while self._later and self._later[0][0] <= now:
            due += self._come(heapq.heappop(self._later)[2])
        while len(due) < count:
            while len(self._scripts) < self.live:
                self._scripts.append(self._script())
            due += self._next(self._random.randrange(len(self._scripts)))
        return due

    def rest(self, now: float) -> list[Sending]:
        """Returns all remaining records, so that every session is complete."""
        self._now = now
        due: list[Sending] = []
        while self._later or self._scripts:
            while self._later:
                due += self._come(heapq.heappop(self._later)[2])
            while self._scripts:
                due += self._next(len(self._scripts) - 1)
        return due

    def final(self, trace_id: str) -> Document | None:
        """Returns the final content of a trace."""
        contents = self.traces.get(trace_id)
        return contents[-1] if contents else None

    # A session

    def _come(self, later: Iterator[Sending | None] | Sending) -> list[Sending]:
        if isinstance(later, Sending):
            return [later]
        self._scripts.append(later)
        return []

    def _next(self, at: int) -> list[Sending]:
        rnd = self._random
        try:
            sending = next(self._scripts[at])
        except StopIteration:
            self._scripts[at] = self._scripts[-1]
            self._scripts.pop()
            return []
        if sending is None or (rnd.random() < 0.003 and b"~" + POISON.encode() not in sending.value):
            self._put_off(self._scripts.pop(at), self.silence_s)
        if sending is None:
            return []
        found = [sending]
        if rnd.random() < 0.04:  # the same record again, at once or much later
            self.sent["duplicate"] += 1
            session = self._session(sending)
            self.doubled.add(session)
            again = self._placed(sending.topic, session, sending.value, sending.headers)
            if rnd.random() < 0.5:
                found.append(again)
            else:
                self._put_off(again, rnd.uniform(0.2, 12))
        if rnd.random() < 0.02:
            found.append(self._garbage(self._session(sending)))
        return found

    def _put_off(self, what: Iterator[Sending | None] | Sending, seconds: float) -> None:
        self._number += 1
        heapq.heappush(self._later, (self._now + seconds, self._number, what))

    def _script(self) -> Iterator[Sending | None]:
        """Yields the records of a session; None means a pause."""
        rnd, name = self._random, self._name()
        self._made += 1
        self.events[name] = set()
        if rnd.random() < self.former and not name.endswith(POISON):
            at = self._now - self.former_s
            step = former_life(name, at)
            sending = self._account(name, step)
            self.before[name] = canonical(step.document)
            yield sending._replace(at=at)
            yield None
        place = zlib.crc32(name.encode())
        app = [*self.apps][place % len(self.apps)] if self.apps else None
        environment = ENVIRONMENTS[place // len(self.apps) % len(ENVIRONMENTS)] if self.apps else ""
        poison = name.endswith(POISON)  # Each revision is tried for half a minute, so the session must have only one.
        for step in steps(rnd, name, self._now, self._by_domain, late=0.0 if poison else self.late):
            if app is not None and "app_name" in step.document:
                step.document["app_name"] = app
                if environment:
                    step.document["environment"] = environment
            if poison:
                yield self._account(name, step._replace(at_home=True))
                continue
            if step.arrival == "in time":
                yield self._account(name, step)
                continue
            self.sent[step.arrival] += 1
            wait, own_time = rnd.uniform(5, 15), step.arrival == "held back"
            sending = self._account(name, step)
            self._put_off(sending._replace(at=self._now if own_time else None), wait)

    def _name(self) -> str:
        rnd, name = self._random, f"s{self.seed}-{self._made}"
        if self.poisonous and rnd.random() < 0.01:
            self.poisonous -= 1
            return f"{name}~{POISON}"
        if self.unsteady:
            for mark, share in MARKS.items():
                if mark in self.without:
                    continue
                if rnd.random() < share * self.unsteady:
                    return f"{name}~{mark}"
        return name

    # A record

    def _account(self, session: str, step: Step) -> Sending:
        """Records a record that must be joined, and chooses its identity and its partition."""
        topic, document, _, at_home = step
        headers: list[tuple[str, bytes]] = []
        self.sent["joined"] += 1
        if topic == "traces":
            self.traces.setdefault(document["id"], []).append(document)
            self.session_of[document["id"]] = session
            self._by_domain[document["metadata"]["task_domain"]].append(document)
        else:
            self._number += 1
            kind = self._random.random()
            if kind < 0.8:
                document["event_id"] = f"e{self._number}"
            elif kind < 0.9:
                headers.append(("ce_id", b"c%d" % self._number))
            self.events[session].add(canonical(document))
        value = json.dumps(document, ensure_ascii=False).encode()
        if at_home:
            return Sending(topic, home(session), session.encode(), value, headers)
        return self._placed(topic, session, value, headers)

    def _placed(self, topic: str, session: str, value: bytes, headers: list[tuple[str, bytes]]) -> Sending:
        rnd, key, at_home = self._random, session.encode(), home(session)
        if rnd.random() < 0.9:
            return Sending(topic, at_home, key, value, headers)
        named_inside = b'"session_id"' in value
        lost_key, partition = named_inside and rnd.random() < 0.5, rnd.randrange(PARTITIONS)
        self.sent["forwarded"] += partition != at_home
        return Sending(topic, partition, None if lost_key else key, value, headers)

    def _session(self, sending: Sending) -> str:
        document = json.loads(sending.value)
        return self.session_of[document["id"]] if sending.topic == "traces" else str(document["session_id"])

    def _garbage(self, session: str) -> Sending:
        """Returns a record that is refused; some name a session that is in progress."""
        self._number += 1
        number, rnd = self._number, self._random
        at = datetime.fromtimestamp(self._now, UTC).isoformat()
        event = {"type": "session.ended", "session_id": f"g{number}", "occurred_at": at}
        trace = {"@type": "ReasoningTrace", "id": f"kp:trace:g{number}"}
        cut_off = b'{"type": "tool.called", "name": "%d' % number
        kinds: list[tuple[str, bytes, str, float | None]] = [
            ("invocations", cut_off, "not_json", None),
            ("traces", b"\xff\xfe%d" % number, "not_json", None),
            ("invocations", b"[%d]" % number, "not_an_object", None),
            ("invocations", _json({**event, "type": "unheard.of"}), "invalid", None),
            ("invocations", _json({**event, "occurred_at": at.partition("+")[0]}), "invalid", None),
            ("traces", _json(trace), "invalid", None),
            ("traces", b"", "empty", None),
            ("invocations", _json({**event, "x": number}), "future_timestamp", self._now + 1800),
        ]
        key, partition = b"g%d" % number, rnd.randrange(PARTITIONS)
        if self.away_s and self.warm:
            kinds.append(("invocations", b"", _AWAY, None))
        topic, value, reason, timestamp = rnd.choice(kinds)
        if reason == _AWAY:
            return self._of_absent(f"away{number}", {**event, "session_id": f"away{number}"}, partition)
        if value == cut_off and number % 2:
            key, partition = session.encode(), home(session)
        refused = Refused(topic, key, value, reason)
        self.refused.append(refused)
        self.sent["forwarded"] += partition != home_of_refused(partition, refused)
        return Sending(topic, partition, key, value, at=timestamp)

    def _of_absent(self, session: str, end: Document, partition: int) -> Sending:
        """Returns the only record of a session whose producer was away."""
        self.events[session] = {canonical(end)}
        self.sent["joined"] += 1
        self.sent["forwarded"] += partition != home(session)
        at = self._now - (self.away_s or 0.0)
        return Sending("invocations", partition, session.encode(), _json(end), at=at)


def home(session: str) -> int:
    """Returns the home partition of a session: Kafka's default partition for its id."""
    return int(murmur2(session.encode()) & 0x7FFFFFFF) % PARTITIONS


def home_of_refused(partition: int, record: Refused) -> int:
    """Returns the partition that writes the dead letter of a refused record: the home of the session of an event.

    A record can be late at its home only.
    """
    topic, key, value, reason = record
    known = None
    if topic in ("traces", "invocations") and reason != "late":
        known = refusal_of(Sending(topic, partition, key, value), "", reason, is_trace=topic == "traces")
    return partition % PARTITIONS if known is None else home(known.session_id.decode())


def canonical(document: object) -> str:
    """Returns the canonical JSON text, which is the same for equal documents."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False)


def _json(document: Document) -> bytes:
    return json.dumps(document).encode()
