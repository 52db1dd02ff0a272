"""The story of `traceweir up --demo`: one app, three versions of its agent, one of which is worse and comes at a known minute.

The last 50 minutes are written at once, with their own times; then the agents go on live.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.cli.demo.agents import Emission, Input
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS

APP = "travel-desk"
JUDGE = "openai/demo-judge"
"""The model of the judged criterion: a script on this machine."""
EVASION = "Please contact the airline about this."
"""What an agent answers that does not help; the scripted judge finds such a session incomplete."""
OUTAGE_REF = "ZZ"
"""How the booking numbers begin in the minutes in which the judge was down: by them the script knows these sessions."""
SECRETS = ("mina.okafor@example.com", "password=hunter2-of-mina", "sk-demo0123456789abcdefgh")
"""What the trace of one session contains, and no published trace may."""

HISTORY_MINUTES = 50
WORSE_AT_MINUTE = -20
"""When version 2.0 comes, which is worse: its searches time out, and it evades the question."""
OUTAGE_MINUTES = (-36, -31)
"""From when to when the judge was down."""
UNREADABLE_AT_MINUTE = -10
"""When three records cannot be read."""
_SESSIONS_PER_MINUTE = 6
_SESSION_S = 4.0
"""Seconds of the longest session."""
WORSE_VERSION = "2.0"
_VERSIONS_BEFORE = {"1.8": 0.3, "1.9": 0.7}
_VERSIONS_SINCE = {"1.8": 0.1, "1.9": 0.3, WORSE_VERSION: 0.6}
"""Share of the sessions of each version, before version 2.0 came and since then."""
_USUAL = (0.03, 0.05)
_WORSE = (0.6, 0.6)
"""Shares of sessions with a failed tool, and with an answer that does not help."""

JUDGED: dict[str, JsonValue] = {
    "conversation_completeness": {"threshold": 1.0, "judge_model_options": {"judge_model": JUDGE}}
}
CHECKED: dict[str, JsonValue] = {
    "answered": {},
    "no_tool_errors": {},
    "max_tool_calls": 3,
    "response_length": {"max_chars": 200},
}
GATE: JsonObject = {"threshold": 0.5, "required": ["no_tool_errors"]}
PUSHED_COMMENT = "the demo: two tool calls are enough"


def config(*, judged: bool, max_tool_calls: int = 3) -> JsonObject:
    """Returns the config of the story.

    Args:
        judged: Whether the scripted judge is asked too.
        max_tool_calls: The threshold that the pushed config changes.
    """
    criteria = CHECKED | {"max_tool_calls": max_tool_calls}
    if not judged:
        return {"criteria": criteria, "gate": GATE}
    judge: JsonObject = {
        "structured_output": "always",
        "prices": {JUDGE: {"input": 0.1, "output": 0.4}},
        "retries": {"attempts": 1},
        "breaker": {"failures": 1_000},
    }
    return {"criteria": criteria | JUDGED, "gate": GATE, "judge": judge}


def headlines(start: datetime, *, judged: bool) -> list[str]:
    """Returns what happens in the story, a line each, with times in UTC as the page shows them.

    Args:
        start: When the agents begin.
        judged: Whether the scripted judge is asked.
    """

    def at(minute: int) -> str:
        return f"{start + timedelta(minutes=minute):%H:%M}"

    first, last = OUTAGE_MINUTES
    down = [
        f"{at(first)} to {at(last)} UTC: the judge is down; conversation_completeness is NOT_EVALUATED for these sessions"
    ]
    return [
        *(down if judged else []),
        f"{at(WORSE_AT_MINUTE)} UTC: version {WORSE_VERSION} of the agent comes, and is worse; its tools time out, and it evades questions",
        f"{at(UNREADABLE_AT_MINUTE)} UTC: three records cannot be read; they are dead letters",
        f"now: a config with a stricter max_tool_calls is pushed for {APP}",
        "one trace has a password, a key and an address; it is shared without them",
        f"the records of {HISTORY_MINUTES} minutes were sent at once, so the freshness of these scores is their age",
    ]


@dataclass(frozen=True, slots=True)
class _Scene:
    """What a user asks, and what the agent does; the texts of a scene belong together."""

    asks: str
    tools: tuple[str, ...]
    finds: str
    answers: str


_SCENES = (
    _Scene(
        "Please move booking {ref} to {place} from {day} to {other}.",
        ("find_booking", "change_flight"),
        "Booking {ref} to {place} is on {day}; a seat is free on {other}.",
        "Booking {ref} to {place} is moved to {other}. The change costs {euros} euros.",
    ),
    _Scene(
        "Is there a flight to {place} on {day} for less than {limit} euros?",
        ("search_flights",),
        "{place} on {day}: 09:40 for {euros} euros, 17:05 for {limit} euros.",
        "Yes, the flight to {place} on {day} at 09:40 costs {euros} euros.",
    ),
    _Scene(
        "What does it cost to cancel booking {ref}?",
        ("find_booking", "get_fare_rules"),
        "The fare of booking {ref} can be cancelled for {euros} euros.",
        "Cancelling booking {ref} costs {euros} euros.",
    ),
    _Scene(
        "I lost my bag on the flight to {place} with booking {ref}. What now?",
        ("find_booking", "find_bag", "open_case"),
        "The bag of booking {ref} is in {place}; case {euros} is open.",
        "Your bag is in {place}. Case {euros} is open for booking {ref}, and the bag comes on {other}.",
    ),
)
_PLACES = ("Lisbon", "Seoul", "Nairobi", "Oslo", "Quito", "Hanoi", "Porto", "Kyoto")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def history(start: datetime, seed: int) -> list[Emission]:
    """Returns the records of the last 50 minutes in the order of their times; `due_s` is negative.

    Args:
        start: Now.
        seed: Determines the records.
    """
    rng = random.Random(f"{seed} history")  # noqa: S311  # a story, no secret
    found: list[Emission] = []
    for number in range(HISTORY_MINUTES * _SESSIONS_PER_MINUTE):
        at_s = 60.0 * (number / _SESSIONS_PER_MINUTE - HISTORY_MINUTES) + rng.uniform(0, 5)
        found += _session(rng, start, f"desk-{start:%H%M}-{number:04d}", at_s, has_secrets=number == 10)
    unreadable = {b'{"type": "tool.called", "session_id": "desk-': "not_json", b"ping": "not_json", b"": "empty"}
    found += [
        Emission(
            60.0 * UNREADABLE_AT_MINUTE,
            "invocations",
            number,
            None,
            value,
            fate=reason,
            ahead_s=60.0 * UNREADABLE_AT_MINUTE,
        )
        for number, (value, reason) in enumerate(unreadable.items())
    ]
    return sorted(found, key=lambda each: each.due_s)


def live_session(now: datetime, seed: int, number: int) -> list[Emission]:
    """Returns the records of a session that ends now.

    Args:
        now: The present time.
        seed: Determines the records, with `number`.
        number: The number of the session.
    """
    rng = random.Random(f"{seed} live {number}")  # noqa: S311  # as above
    return _session(rng, now, f"desk-{now:%H%M%S}-live-{number}", -_SESSION_S, has_secrets=False)


def _session(rng: random.Random, start: datetime, name: str, at_s: float, *, has_secrets: bool) -> list[Emission]:
    shares = _VERSIONS_SINCE if at_s >= 60 * WORSE_AT_MINUTE else _VERSIONS_BEFORE
    version = rng.choices([*shares], [*shares.values()])[0]
    fails, evades = _WORSE if version == WORSE_VERSION else _USUAL
    return _Session(rng, start, name, at_s, version, has_secrets).records(
        fails=not has_secrets and rng.random() < fails, evades=not has_secrets and rng.random() < evades
    )


class _Session:
    """Writes down one session."""

    def __init__(
        self, rng: random.Random, start: datetime, name: str, at_s: float, version: str, has_secrets: bool
    ) -> None:
        self._rng = rng
        self._start = start
        self._name = name
        self._at_s = at_s
        self._has_secrets = has_secrets
        day = rng.randrange(len(_DAYS) - 1)
        first, last = OUTAGE_MINUTES
        prefix = OUTAGE_REF if 60 * first <= at_s < 60 * last else "KE"
        euros = rng.randrange(40, 200)
        self._case = {
            "ref": f"{prefix}-{rng.randrange(1000, 10_000)}",
            "place": rng.choice(_PLACES),
            "day": _DAYS[day],
            "other": _DAYS[day + 1],
            "euros": str(euros),
            "limit": str(euros + rng.randrange(20, 90)),
        }
        self._dimensions = {
            "app_name": APP,
            "agent_name": "concierge",
            "agent_version": version,
            "environment": "production",
            "user_id": f"user-{rng.randrange(60)}",
        }
        self._found: list[Emission] = []

    def records(self, *, fails: bool, evades: bool) -> list[Emission]:
        """Returns the records.

        Args:
            fails: Whether the last tool fails.
            evades: Whether the agent evades the question.
        """
        scene = self._rng.choice(_SCENES)
        question, finding, answer = (text.format(**self._case) for text in (scene.asks, scene.finds, scene.answers))
        answer = EVASION if evades else answer
        self._event("invocation.started", {"user_content": _content("user", question)})
        tokens = self._rng.randrange(300, 900)
        spent = {"input_tokens": tokens, "output_tokens": tokens // 10}
        self._event("model.called", {"model": "demo-model", **spent})
        last = len(scene.tools) - 1
        for number, tool in enumerate(scene.tools):
            call = {"name": tool, "call_id": f"call-{number}"}
            outcome: dict[str, Any] = {"response": {"found": finding}}
            if fails and number == last:
                outcome = {"error": "the search timed out after 3000 ms"}
            self._event("tool.called", {**call, "args": {"booking": self._case["ref"]}})
            self._event("tool.returned", {**call, **outcome})
        self._event("invocation.completed", {"final_response": _content("model", answer)})
        if self._has_secrets or self._rng.random() < 0.4:
            self._trace(question, scene.tools, finding, answer)
        # So that the session closes at once: after a history that was read late, the clock of a partition waits a minute.
        traces = sum(one.topic == "traces" for one in self._found)
        self._event("session.ended", expects={"events": len(self._found) - traces + 1, "traces": traces})
        return self._found

    def _event(self, kind: str, fields: dict[str, Any] | None = None, **more: Any) -> None:
        body: dict[str, Any] = {"type": kind, "event_id": f"{self._name}/{len(self._found)}", "session_id": self._name}
        if fields is not None:
            body |= {"invocation_id": "turn-1", **self._dimensions, **fields}
        self._emit("invocations", body | {"occurred_at": self._moment()} | more)

    def _trace(self, question: str, tools: Sequence[str], finding: str, answer: str) -> None:
        secret = f" Wrote to {SECRETS[0]}; signed in with {SECRETS[1]} and token {SECRETS[2]}."
        contents = [f"The user asks: {question}", *(finding for _ in tools), f"I answer: {answer}"]
        steps: list[dict[str, Any]] = [
            {"type": "thought", "content": contents[0] + (secret if self._has_secrets else "")}
        ]
        for tool in tools:
            steps.append({"type": "tool_call", "tool": {"name": tool}, "input": {"booking": self._case["ref"]}})
            steps.append({"type": "observation", "content": finding})
        steps.append({"type": "thought", "content": contents[-1]})
        self._emit(
            "traces",
            {
                "@context": "https://openknowledgepulse.org/schema/v1",
                "@type": "ReasoningTrace",
                "id": f"kp:trace:{self._name}",
                "metadata": {
                    "created_at": self._moment(),
                    "session_id": self._name,
                    "task_domain": "travel",
                    "success": answer != EVASION,
                    "quality_score": 0.5,
                    "visibility": "network",
                    "privacy_level": "aggregated",
                },
                "task": {"objective": question},
                "steps": [{"step_id": number, **step} for number, step in enumerate(steps)],
                "outcome": {"result_summary": answer, "confidence": 0.3 if answer == EVASION else 0.9},
            },
        )

    def _emit(self, topic: Input, document: dict[str, Any]) -> None:
        key = self._name.encode()
        partition = partition_of(key, PARTITIONS)
        self._found.append(
            Emission(self._at_s, topic, partition, key, orjson.dumps(document), session=self._name, ahead_s=self._at_s)
        )
        self._at_s += self._rng.uniform(0.05, 0.3)

    def _moment(self) -> str:
        return f"{self._start + timedelta(seconds=self._at_s):%Y-%m-%dT%H:%M:%S.%f}Z"


def _content(role: str, text: str) -> JsonObject:
    return {"role": role, "parts": [{"text": text}]}
