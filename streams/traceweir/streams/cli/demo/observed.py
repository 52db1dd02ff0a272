"""Keeps what the worker has written: the data for the view, the counts by the ledger's names, and the coverage equations.

Texts are unchanged from the sender, so a view must sanitize them.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from traceweir.schemas.dead_letter import DeadLetter, marked
from traceweir.schemas.figures import figure
from traceweir.schemas.session import Session
from traceweir.schemas.turns import turns_of

SHOWN_LETTERS = 6
DIMENSIONS = ("complexity", "novelty", "tool_diversity", "outcome_confidence")
_REMEMBERED_SESSIONS = 500


class Equation(NamedTuple):
    """A coverage equation: a total and the parts that add up to it when no record is in flight."""

    whole: str
    total: int
    parts: Mapping[str, int]

    @property
    def holds(self) -> bool:
        """Whether the parts add up to the total."""
        return self.total == sum(self.parts.values())

    def __str__(self) -> str:
        names = f"{self.whole} = {' + '.join(self.parts)}"
        return f"{names}: {self.total} {'=' if self.holds else '≠'} {' + '.join(map(str, self.parts.values()))}"


@dataclass(slots=True)
class SessionSeen:
    """The output for a session so far."""

    session_id: str
    domain: str = ""
    criteria: dict[str, str] = field(default_factory=dict)
    """Status of the session's own Scores by metric."""
    dimensions: dict[str, float] = field(default_factory=dict)
    value: float | None = None
    accepted: bool | None = None
    reasons: tuple[str, ...] = ()


class Observed:
    """The worker's output so far, record by record.

    Args:
        metrics: Number of criteria; each is measured on every invocation and every session.
    """

    def __init__(self, metrics: int = 0) -> None:
        self.outputs: Counter[str] = Counter()
        """Counts from the output topics, by the ledger's names."""
        self.results = 0
        self.dead_letters = 0
        self.network: dict[str, bytes] = {}
        """Published traces by id."""
        self.sessions: OrderedDict[str, SessionSeen] = OrderedDict()
        """The latest sessions; the session with the newest output is at the end."""
        self.latest_letters: deque[DeadLetter] = deque(maxlen=SHOWN_LETTERS)
        self.news: deque[str] = deque(maxlen=1_000)
        """A line for each score of a session, decision and dead letter that the view has not read yet."""
        self._metrics = metrics
        self._counters: dict[tuple[str, int], Counter[str]] = {}
        self._subjects: dict[tuple[str, int, int], int] = {}
        self._answered: set[tuple[str, int, int]] = set()

    def counters(self, stage: str) -> Counter[str]:
        """Returns the counters of a stage over all partitions."""
        return sum((each for (name, _), each in self._counters.items() if name == stage), Counter())

    @property
    def counts(self) -> dict[str, int]:
        """What has come out, by the ledger's names."""
        assemble = self.counters("assemble")
        own = {"records": assemble["consumed"] - assemble["forwarded"], "duplicates": assemble["duplicate"]}
        return {name: count for name, count in (self.outputs | own).items() if count}

    def equations(self, sent: int) -> list[Equation]:
        """Returns the coverage equations; all hold when `sent` records were sent and none is in flight.

        Where possible the two sides come from different sources: the counters of the stages, and the written records.
        """
        assemble, score, gate = map(self.counters, ("assemble", "score", "gate"))
        outputs = self.outputs
        asked = sum(count for version, count in self._subjects.items() if version in self._answered)
        statuses: Counter[str] = Counter()
        for name, count in outputs.items():
            if name.startswith("scores: ") and not name.startswith("scores: trace_value"):
                statuses[name.split()[2]] += count
        dead = {stage: _dead(self.counters(stage)) for stage in ("assemble", "score", "gate")}
        decided = {"accepted": outputs["decisions: accepted"], "rejected": outputs["decisions: rejected"]}
        parts = {"joined": assemble["joined"], "duplicate": assemble["duplicate"], "forwarded": outputs["forwarded"]}
        done = {"scored": score["scored"], "superseded": score["superseded"]}
        scores = sum(count for name, count in score.items() if name.startswith("scores."))
        return [
            Equation("records consumed", assemble["consumed"], {"sent": sent, "forwarded": assemble["forwarded"]}),
            Equation("records consumed", assemble["consumed"], parts | {"dead-lettered": dead["assemble"]}),
            Equation(
                "segments opened and reopened",
                assemble["opened"] + assemble["reopened"],
                {"sessions written": outputs["sessions"]},
            ),
            Equation("segments closed", assemble["closed"], done | {"dead-lettered": dead["score"]}),
            Equation("applicable pairs", self._metrics * asked, statuses),
            Equation("candidates seen", outputs["candidates"], decided | {"dead-lettered": dead["gate"]}),
            Equation(
                "results", self.results, {"scores": scores, "of traces": 2 * (gate["accepted"] + gate["rejected"])}
            ),
            Equation("dead letters", self.dead_letters, dead),
            Equation("traces accepted", gate["accepted"], {"published": outputs["network"]}),
        ]

    def result(self, value: bytes) -> None:
        """Keeps a Score."""
        score = orjson.loads(value)
        self.results += 1
        metric = score["metric"]
        session = self._session_of(score["session_id"])
        if metric == "gate":
            self._decision(score["details"], session)
            return
        because = score["not_evaluated_because"]
        self.outputs[f"scores: {metric} {score['status']}{f' {because}' if because else ''}"] += 1
        if metric == "trace_value":
            session.value = score["value"]
            session.dimensions = {name: score["details"][name] for name in DIMENSIONS}
            return
        self._answered.add((score["session_id"], score["segment"], score["revision"]))
        if score["level"] == "session":
            session.criteria[metric] = score["status"]
            shown = "" if score["value"] is None else f"{figure(score['value'])}  "
            self.news.append(f"{score['session_id']}  {metric}  {shown}{score['status']}")

    def published(self, trace_id: str, value: bytes) -> None:
        """Keeps a published trace."""
        self.outputs["network"] += 1
        self.network[trace_id] = value

    def dead_letter(self, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, Any]]) -> None:
        """Keeps a dead letter; one that only marks another as replayed does not count."""
        if marked(headers) is not None:
            return
        letter = DeadLetter.read(key, value, headers)
        self.dead_letters += 1
        self.outputs[f"dead letters: {letter.reason}"] += 1
        self.latest_letters.append(letter)
        self.news.append(
            f"dead letter  {letter.topic}[{letter.partition}]@{letter.offset}  {letter.reason}: {letter.detail}"
        )

    def closed(self, value: bytes) -> None:
        """Keeps a closed session."""
        session = Session.model_validate_json(value)
        self.outputs["sessions"] += 1
        self.outputs[f"closed: {session.closed_because}"] += 1
        self._subjects[session.session_id, session.segment, session.revision] = len(turns_of(session)) + 1
        self._session_of(session.session_id)

    def counted(self, stage: str, partition: int, value: bytes) -> None:
        """Keeps the counters of a stage in a partition."""
        self._counters[stage, partition] = Counter(orjson.loads(value))

    def _decision(self, details: Mapping[str, Any], session: SessionSeen) -> None:
        session.accepted = details["decision"] == "accepted"
        session.reasons = tuple(details["reasons"])
        session.domain = details["scope"].rpartition("@hashing")[0]
        self.outputs[f"decisions: {details['decision']}"] += 1
        self.outputs.update(f"rejected: {reason}" for reason in session.reasons)
        reasons = f" ({', '.join(session.reasons)})" if session.reasons else ""
        self.news.append(
            f"{session.session_id}  {session.domain}  value {figure(details['value'])}  {details['decision']}{reasons}"
        )

    def _session_of(self, session_id: str) -> SessionSeen:
        found = self.sessions.setdefault(session_id, SessionSeen(session_id))
        self.sessions.move_to_end(session_id)
        while len(self.sessions) > _REMEMBERED_SESSIONS:
            self.sessions.popitem(last=False)
        return found


def _dead(counters: Mapping[str, int]) -> int:
    return sum(count for name, count in counters.items() if name.startswith("dead_lettered."))
