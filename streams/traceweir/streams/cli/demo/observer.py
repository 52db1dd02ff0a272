"""Reads everything that the worker writes, and keeps the data for the view and the counts for the summary."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from traceweir.schemas.dead_letter import DeadLetter, is_replay, marked
from traceweir.schemas.figures import figure
from traceweir.schemas.session import Session
from traceweir.schemas.turns import turns_of
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id, changelog
from traceweir.streams.pipeline.assemble.session_rows import Guard, split, split_chunk_key
from traceweir.streams.worker.kafka.client_options import confluent_options

SHOWN_LETTERS = 6
_REMEMBERED_SESSIONS = 500


@dataclass(slots=True)
class SessionSeen:
    """The output for a session so far. Texts are unchanged from the sender, so a view must sanitize them."""

    session_id: str
    domain: str = ""
    criteria: dict[str, str] = field(default_factory=dict)
    """Status of the session's own Scores by metric."""
    dimensions: dict[str, float] = field(default_factory=dict)
    value: float | None = None
    accepted: bool | None = None
    reasons: tuple[str, ...] = ()


Version = tuple[str, int, int]
"""A session's id, and the numbers of a segment and a revision."""


@dataclass(slots=True)
class Observed:
    """The worker's output so far."""

    counts: Counter[str] = field(default_factory=Counter)
    """Counts from the output topics, by the ledger's names."""
    results: int = 0
    dead_letters_seen: int = 0
    subjects: dict[Version, int] = field(default_factory=dict)
    """Number of subjects of each closed session: its invocations and the session itself."""
    answered: set[Version] = field(default_factory=set)
    """The closed sessions that have at least one criterion's score."""
    all_counters: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    """The counters of each stage and partition, as read from the changelog."""
    content: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """Revision of each content row by partition and key, for sessions that are open or closed within their grace."""
    guards: dict[tuple[int, bytes], tuple[int, int]] = field(default_factory=dict)
    """Segment and revision of closed sessions, by partition and id."""
    network: dict[str, bytes] = field(default_factory=dict)
    """Published traces by id."""
    sessions: OrderedDict[str, SessionSeen] = field(default_factory=OrderedDict)
    """The latest sessions; the session with the newest output is at the end."""
    latest_letters: deque[DeadLetter] = field(default_factory=lambda: deque(maxlen=SHOWN_LETTERS))
    news: deque[str] = field(default_factory=lambda: deque(maxlen=1_000))
    """One line for each score of a session, decision and dead letter that the view has not read yet."""

    def counters(self, stage: str) -> Counter[str]:
        """Returns the counts of a stage over all partitions."""
        total: Counter[str] = Counter()
        for (name, _), counted in self.all_counters.items():
            if name == stage:
                total.update(counted)
        return total

    @property
    def open_sessions(self) -> int:
        """Number of sessions whose latest revision in the state has not closed."""
        latest: dict[tuple[int, bytes], tuple[int, int]] = {}
        for (partition, key), revision in self.content.items():
            name, segment, _ = split_chunk_key(key)
            latest[partition, name] = max(latest.get((partition, name), (0, 0)), (segment, revision))
        return sum(place not in self.guards or self.guards[place] < found for place, found in latest.items())

    def at_rest(self, emitted: int) -> bool:
        """Returns whether all `emitted` records have passed through all stages, and none is in flight."""
        assemble, score, gate = (self.counters(stage) for stage in STAGES)
        dead_letters = sum(dead_lettered(counters) for counters in (assemble, score, gate))
        scores = sum(count for name, count in score.items() if name.startswith("scores."))
        return (
            assemble["consumed"] == emitted + assemble["forwarded"]
            and assemble["forwarded"] == self.counts["forwarded"]
            and assemble["opened"] + assemble["reopened"] == assemble["closed"] == self.counts["sessions"]
            and score["consumed"] == self.counts["sessions"] + score["replayed"]
            and score["scored"] + dead_lettered(score) == score["consumed"]
            and score["candidates"] == self.counts["candidates"] == gate["consumed"] - gate["replayed"]
            and self.results == scores + 2 * (gate["accepted"] + gate["rejected"])
            and self.dead_letters_seen == dead_letters
            and self.counts["network"] == gate["accepted"]
            and not self.open_sessions
        )


def dead_lettered(counters: Counter[str]) -> int:
    """Returns the number of dead letters of a stage."""
    return sum(count for name, count in counters.items() if name.startswith("dead_lettered."))


class Observer:
    """Reads the output topics and the changelog from their beginning, committed records only."""

    def __init__(self, settings: Settings) -> None:
        self.seen = Observed()
        topics = settings.topics
        self._changelog = changelog(application_id(settings.topic_prefix, STAGES))
        self._handlers = {
            topics.results: self._result,
            topics.network: self._network,
            topics.dead_letters: self._dead_letter,
            topics.sessions: self._session,
            topics.strays: self._stray,
            topics.candidates: self._candidate,
            self._changelog: self._row,
        }
        own = {"group.id": "traceweir-demo", "enable.auto.commit": False, "isolation.level": "read_committed"}
        fetching = {"fetch.wait.max.ms": 50, "log_level": 0}
        self._consumer = Consumer(confluent_options(settings) | own | fetching)
        self._places = [
            TopicPartition(topic, partition, 0) for topic in self._handlers for partition in range(settings.partitions)
        ]

    def __enter__(self) -> Observer:
        self._consumer.assign(self._places)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def poll(self, timeout_s: float) -> None:
        """Processes the available records; waits at most `timeout_s` seconds for them.

        Raises:
            KafkaException: the broker reports an error.
        """
        for message in self._consumer.consume(num_messages=500, timeout=timeout_s):
            if message.error() is not None:
                raise KafkaException(message.error())
            self._handlers[message.topic()](message)

    def _result(self, message: Message) -> None:
        score = orjson.loads(message.value())
        counts = self.seen.counts
        self.seen.results += 1
        metric = score["metric"]
        session = self._session_of(score["session_id"])
        if metric == "gate":
            self._decision(score, session)
            return
        if metric != "trace_value":
            self.seen.answered.add((score["session_id"], score["segment"], score["revision"]))
        because = score["not_evaluated_because"]
        counts[f"scores: {metric} {score['status']}{f' {because}' if because else ''}"] += 1
        if metric == "trace_value":
            session.value = score["value"]
            names = ("complexity", "novelty", "tool_diversity", "outcome_confidence")
            session.dimensions = {name: score["details"][name] for name in names}
        elif score["level"] == "session":
            session.criteria[metric] = score["status"]
            value = "" if score["value"] is None else f"{figure(score['value'])}  "
            self.seen.news.append(f"{score['session_id']}  {metric}  {value}{score['status']}")

    def _decision(self, score: dict[str, Any], session: SessionSeen) -> None:
        details = score["details"]
        counts = self.seen.counts
        session.accepted = details["decision"] == "accepted"
        session.reasons = tuple(details["reasons"])
        session.domain = details["scope"].rpartition("@hashing")[0]
        counts[f"decisions: {details['decision']}"] += 1
        counts.update(f"rejected: {reason}" for reason in session.reasons)
        reasons = f" ({', '.join(session.reasons)})" if session.reasons else ""
        self.seen.news.append(
            f"{session.session_id}  {session.domain}  value {figure(details['value'])}  {details['decision']}{reasons}"
        )

    def _network(self, message: Message) -> None:
        self.seen.counts["network"] += 1
        self.seen.network[message.key().decode()] = message.value() or b""

    def _dead_letter(self, message: Message) -> None:
        if marked(message.headers() or ()) is not None:
            return
        letter = DeadLetter.read(message.key(), message.value(), message.headers() or ())
        self.seen.dead_letters_seen += 1
        self.seen.counts[f"dead letters: {letter.reason}"] += 1
        self.seen.latest_letters.append(letter)
        self.seen.news.append(
            f"dead letter  {letter.topic}[{letter.partition}]@{letter.offset}  {letter.reason}: {letter.detail}"
        )

    def _session(self, message: Message) -> None:
        # The session was counted when it closed.
        if is_replay(message.headers() or ()):
            return
        session = Session.model_validate_json(message.value())
        self.seen.counts["sessions"] += 1
        self.seen.counts[f"closed: {session.closed_because}"] += 1
        self.seen.subjects[session.session_id, session.segment, session.revision] = len(turns_of(session)) + 1
        self._session_of(session.session_id)

    def _stray(self, message: Message) -> None:
        self.seen.counts["forwarded"] += 1

    def _candidate(self, message: Message) -> None:
        self.seen.counts["candidates"] += not is_replay(message.headers() or ())

    def _row(self, message: Message) -> None:
        stage, _, key = message.key().partition(b"/")
        if key == b"#":
            self.seen.all_counters[stage.decode(), message.partition()] = orjson.loads(message.value())
        elif stage == b"assemble" and key.startswith(b"c"):
            if message.value() is None:
                self.seen.content.pop((message.partition(), key), None)
            else:
                self.seen.content[message.partition(), key] = split(message.value())[0].revision
        elif stage == b"assemble" and key.startswith(b"g") and message.value() is not None:
            guard = Guard.unpack(message.value())
            self.seen.guards[message.partition(), key[1:]] = guard.segment, guard.revision

    def _session_of(self, session_id: str) -> SessionSeen:
        sessions = self.seen.sessions
        found = sessions.setdefault(session_id, SessionSeen(session_id))
        sessions.move_to_end(session_id)
        while len(sessions) > _REMEMBERED_SESSIONS:
            sessions.popitem(last=False)
        return found
