"""A load of which every record is known: what was sent, and so what has to come out."""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from aiokafka.partitioner import murmur2

Document = dict[str, Any]

PARTITIONS = 4
DOMAINS = ("travel", "finance", "code", "Reisebüro", "의료")
WORDS = [
    "refund",
    "ticket",
    "flight",
    "invoice",
    "ledger",
    "compile",
    "branch",
    "merge",
    "patient",
    "dose",
    "hotel",
    "train",
    "seat",
    "window",
    "error",
    "retry",
    "policy",
    "fare",
    "balance",
    "audit",
    "transfer",
    "account",
    "deploy",
    "test",
    "review",
    "scan",
    "result",
    "visit",
    "table",
    "search",
    "booking",
    "delay",
    "change",
    "cancel",
    "confirm",
]
TOOLS = ("search", "book", "cancel", "lookup", "pay")


class Sending(NamedTuple):
    """A record to send."""

    topic: str
    """`traces` or `invocations`, without a prefix."""
    partition: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]] = []
    ahead_s: float = 0.0
    """By how many seconds its timestamp lies ahead of the clock."""


class Refused(NamedTuple):
    """A record that has to become a dead letter."""

    topic: str
    key: bytes | None
    value: bytes
    reason: str


@dataclass
class Ledger:
    """Sessions of several domains, emitted a record at a time in any interleaving, and what became of the numbers.

    Sessions have one to three turns and no, one or two traces; the trace comes before or after the end, some sessions never end, some
    fall silent for a while. Records come out of order, twice, on wrong partitions and without a key, and some cannot be used at all.
    """

    seed: int
    live: int = 60
    """Sessions that are under way at a time."""
    silence_s: float = 6.0
    """How long a session that falls silent does."""
    events: dict[str, set[str]] = field(default_factory=dict)
    """By session, the canonical JSON of each event that was sent."""
    traces: dict[str, Document] = field(default_factory=dict)
    """By id, each trace that was sent."""
    session_of: dict[str, str] = field(default_factory=dict)
    """By trace id."""
    refused: list[Refused] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    """Records by what they are; see `_account`."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._scripts: list[Iterator[Sending]] = []
        self._later: list[tuple[float, int, Iterator[Sending] | Sending]] = []
        self._made = self._number = 0

    def records(self, count: int, now: float) -> list[Sending]:
        """The next records, as of now (seconds since 1970)."""
        due: list[Sending] = []
        while self._later and self._later[0][0] <= now:
            _, _, later = heapq.heappop(self._later)
            if isinstance(later, Sending):
                due.append(later)
            else:
                self._scripts.append(later)
        while len(due) < count:
            while len(self._scripts) < self.live:
                self._scripts.append(self._script(now))
            due += self._next(self._random.randrange(len(self._scripts)), now)
        return due

    def rest(self, now: float) -> list[Sending]:
        """All that is still to come, so that every session is whole."""
        due: list[Sending] = []
        while self._later or self._scripts:
            for _, _, later in self._later:
                if isinstance(later, Sending):
                    due.append(later)
                else:
                    self._scripts.append(later)
            self._later.clear()
            while self._scripts:
                due += self._next(len(self._scripts) - 1, now)
        return due

    # A session

    def _next(self, at: int, now: float) -> list[Sending]:
        rnd = self._random
        sending = next(self._scripts[at], None)
        if sending is None:
            self._scripts[at] = self._scripts[-1]
            self._scripts.pop()
            return []
        if rnd.random() < 0.003:
            self._put_off(self._scripts.pop(at), now + self.silence_s)
        found = [sending]
        if rnd.random() < 0.04:  # the same record again, at once or much later
            self.sent["duplicate"] += 1
            again = self._placed(sending.topic, self._session(sending), sending.value, sending.headers)
            if rnd.random() < 0.5:
                found.append(again)
            else:
                self._put_off(again, now + rnd.uniform(0.2, 12))
        if rnd.random() < 0.02:
            found.append(self._garbage(now))
        return found

    def _put_off(self, what: Iterator[Sending] | Sending, until: float) -> None:
        self._number += 1
        heapq.heappush(self._later, (until, self._number, what))

    def _script(self, now: float) -> Iterator[Sending]:
        rnd, name = self._random, f"s{self.seed}-{self._made}"
        self._made += 1
        self.events[name] = set()
        domain = rnd.choice(DOMAINS)
        records: list[tuple[str, Document]] = []
        at = datetime.fromtimestamp(now, UTC)
        for turn in range(rnd.randint(1, 3)):
            records += [("invocations", event) for event in self._turn(name, turn)]
        records += [("traces", self._trace(name, domain, n)) for n in range(rnd.choice((0, 1, 1, 1, 1, 2)))]
        if rnd.random() < 0.85:
            end = {"type": "session.ended", "session_id": name}
            records.insert(len(records) - rnd.randint(0, 1), ("invocations", end))
        for number, (topic, document) in enumerate(records):
            if topic == "invocations":
                document["occurred_at"] = (at + timedelta(milliseconds=number)).isoformat()
        if rnd.random() < 0.3:
            i = rnd.randrange(len(records) - 1)
            records[i], records[i + 1] = records[i + 1], records[i]
        return (self._account(name, topic, document) for topic, document in records)

    def _turn(self, session: str, turn: int) -> list[Document]:
        rnd = self._random
        about = {"session_id": session, "invocation_id": f"{session}/{turn}", "app_name": "agent"}
        calls = [{"name": rnd.choice(TOOLS), "args": {"of": rnd.choice(WORDS)}} for _ in range(rnd.randint(0, 3))]
        started: Document = {**about, "type": "invocation.started", "user_content": _text(self._sentence(6))}
        if rnd.random() < 0.7:
            expected = calls if rnd.random() < 0.7 else [*calls, {"name": "other", "args": {}}]
            started["reference"] = {"tool_uses": expected}
        events = [started]
        for number, call in enumerate(calls):
            call_id = f"call-{number}"
            events.append({**about, "type": "tool.called", "call_id": call_id, **call})
            events.append(
                {**about, "type": "tool.returned", "call_id": call_id, "name": call["name"], "response": "ok"}
            )
        events.append({**about, "type": "invocation.completed", "final_response": _text(self._sentence(9))})
        return events

    def _trace(self, session: str, domain: str, number: int) -> Document:
        rnd = self._random
        known = [trace for trace in list(self.traces.values())[-50:] if trace["metadata"]["task_domain"] == domain]
        if known and rnd.random() < 0.2:  # nearly the same as an earlier one
            old = rnd.choice(known)
            objective, steps = old["task"]["objective"], [dict(step) for step in old["steps"]]
            steps[0]["content"] = f"{steps[0].get('content', '')} {rnd.choice(WORDS)}"
        else:
            objective, steps = self._sentence(6), [self._step(n) for n in range(rnd.randint(1, 9))]
        metadata: Document = {
            "created_at": "2026-01-31T12:00:00Z",
            "task_domain": domain,
            "success": rnd.random() < 0.85,
            "quality_score": 0.5,
            "visibility": "network" if rnd.random() < 0.9 else "org",
            "privacy_level": "aggregated" if rnd.random() < 0.9 else "private",
        }
        if rnd.random() < 0.8:  # else the record's key names the session
            metadata["session_id"] = session
        return {
            "@context": "https://openknowledgepulse.org/schema/v1",
            "@type": "ReasoningTrace",
            "id": f"kp:trace:{session}-{number}",
            "metadata": metadata,
            "task": {"objective": objective},
            "steps": steps,
            "outcome": {"result_summary": self._sentence(4), "confidence": round(rnd.uniform(0.5, 1), 3)},
        }

    def _step(self, number: int) -> Document:
        rnd = self._random
        kind = rnd.choice(("thought", "tool_call", "observation", "error_recovery"))
        step: Document = {"step_id": number, "type": kind, "content": self._sentence(8)}
        if kind == "tool_call":
            step["tool"] = {"name": rnd.choice(TOOLS)}
        return step

    def _sentence(self, words: int) -> str:
        return " ".join(self._random.choices(WORDS, k=words))

    # A record

    def _account(self, session: str, topic: str, document: Document) -> Sending:
        """Enter a record that has to be joined, and choose how it is identified and where it goes."""
        headers: list[tuple[str, bytes]] = []
        self.sent["joined"] += 1
        if topic == "traces":
            self.traces[document["id"]] = document
            self.session_of[document["id"]] = session
        else:
            self._number += 1
            kind = self._random.random()
            if kind < 0.8:
                document["event_id"] = f"e{self._number}"
            elif kind < 0.9:
                headers.append(("ce_id", b"c%d" % self._number))
            self.events[session].add(canonical(document))
        return self._placed(topic, session, json.dumps(document, ensure_ascii=False).encode(), headers)

    def _placed(self, topic: str, session: str, value: bytes, headers: list[tuple[str, bytes]]) -> Sending:
        rnd, key, at_home = self._random, session.encode(), home(session)
        if rnd.random() < 0.9:
            return self._sent(Sending(topic, at_home, key, value, headers), session)
        named_inside = b'"session_id"' in value
        lost_key = named_inside and rnd.random() < 0.5
        return self._sent(Sending(topic, rnd.randrange(PARTITIONS), None if lost_key else key, value, headers), session)

    def _sent(self, sending: Sending, session: str) -> Sending:
        self.sent["forwarded"] += sending.partition != home(session)
        return sending

    def _session(self, sending: Sending) -> str:
        document = json.loads(sending.value)
        return self.session_of[document["id"]] if sending.topic == "traces" else str(document["session_id"])

    def _garbage(self, now: float) -> Sending:
        self._number += 1
        number, rnd = self._number, self._random
        at = datetime.fromtimestamp(now, UTC).isoformat()
        event = {"type": "session.ended", "session_id": f"g{number}", "occurred_at": at}
        trace = {"@type": "ReasoningTrace", "id": f"kp:trace:g{number}"}
        topic, value, reason = rnd.choice(
            [
                ("invocations", b'{"number": %d' % number, "not_json"),
                ("traces", b"\xff\xfe%d" % number, "not_json"),
                ("invocations", b"[%d]" % number, "not_an_object"),
                ("invocations", _json({**event, "type": "unheard.of"}), "invalid"),
                ("invocations", _json({**event, "occurred_at": at.partition("+")[0]}), "invalid"),
                ("traces", _json(trace), "invalid"),
                ("traces", b"", "empty"),
                ("invocations", _json({**event, "x": number}), "future_timestamp"),
            ]
        )
        key = b"g%d" % number
        self.refused.append(Refused(topic, key, value, reason))
        return Sending(
            topic, rnd.randrange(PARTITIONS), key, value, ahead_s=600 if reason == "future_timestamp" else 0.0
        )


def home(session: str) -> int:
    """The partition of a session: Kafka's default for its id."""
    return int(murmur2(session.encode()) & 0x7FFFFFFF) % PARTITIONS


def canonical(document: object) -> str:
    """The JSON text that equal documents share."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False)


def _json(document: Document) -> bytes:
    return json.dumps(document).encode()


def _text(text: str) -> Document:
    return {"parts": [{"text": text}], "role": "user"}
