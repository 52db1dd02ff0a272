"""Simulates one session: the records that an agent emits, in order, on the home partition and on time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import Topics
from traceweir.streams.cli.demo.domains import Domain
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS

Quality = Literal["strong", "twin", "ordinary", "failed", "thought"]
Expected = Literal["match", "tool_missing", "other_words", "nothing"]
"""How the reference of a turn differs from what the agent did; `nothing`: the turn has no reference."""
Input = Literal["traces", "invocations"]

JOINED = "joined"
DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Emission:
    """A record that an agent sends, and its expected outcome."""

    due_s: float
    """When to send the record, in seconds after the agents start; negative: before they start."""
    topic: Input
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    session: str = ""
    """Id of the record's session; empty if the record belongs to no session."""
    fate: str = JOINED
    """The expected outcome: `joined`, `duplicate`, or the reason of the expected dead letter."""
    ahead_s: float = 0.0
    """Seconds by which the record's timestamp is ahead of the clock."""

    def record(self, topics: Topics, now: float) -> dict[str, Any]:
        """Returns the arguments of `Producer.produce` for this record; `now` is in seconds since 1970."""
        return {
            "topic": topics.traces if self.topic == "traces" else topics.invocations,
            "value": self.value,
            "key": self.key,
            "partition": self.partition,
            "headers": list(self.headers),
            "timestamp": int((now + self.ahead_s) * 1000),
        }

    @property
    def misrouted(self) -> bool:
        """Whether the record is sent to another partition than its session's home partition."""
        return bool(self.session) and self.partition != partition_of(self.session.encode(), PARTITIONS)


@dataclass(frozen=True, slots=True)
class Sketch:
    """The properties of a session to simulate."""

    session_id: str
    domain: Domain
    words: int
    """Seed of the session's texts; two sketches with the same seed have the same texts."""
    began_s: float
    quality: Quality | None = "strong"
    """None: the session has no trace."""
    expected: tuple[Expected, ...] = ("match",)
    """One item per turn; empty: the session consists of a trace only."""
    ends: bool = True
    """Whether the session sends `session.ended`; otherwise its records just stop."""
    visibility: str = "network"
    privacy: str = "aggregated"
    trace_id: str = ""
    twist: str = ""
    """A word that is added to the trace's last step."""
    remark: str = ""
    """A text that is added to the trace's first step, after the domain's own text."""
    names_session: bool = True
    """Whether the trace carries its session's id; otherwise only the record's key carries the id."""

    @property
    def topic(self) -> int:
        """The place of the first question and its answer among those of the domain."""
        return self.words % len(self.domain.asks)


def emissions_of(sketch: Sketch, start: datetime) -> list[Emission]:
    """Returns the records of a session, ordered by `due_s`. `start` is the time of second 0."""
    return _Agent(sketch, start).run()


def trace_of(sketch: Sketch, created_at: datetime) -> JsonObject | None:
    """Returns the trace of a session, None if the session has no trace."""
    if sketch.quality is None:
        return None
    rng = random.Random(f"{sketch.words} trace")  # noqa: S311  # a story, no secret
    return _Trace(sketch, rng, created_at).document()


class _Agent:
    def __init__(self, sketch: Sketch, start: datetime) -> None:
        self._sketch = sketch
        self._start = start
        self._rng = random.Random(f"{sketch.words} events")  # noqa: S311  # as above
        self._case = sketch.domain.case(random.Random(sketch.words))  # noqa: S311  # as above
        self._at = sketch.began_s
        self._identity = self._rng.choice(("event_id", "event_id", "event_id", "ce_id", "content"))
        self._trace_parent = f"00-{self._rng.getrandbits(128) | 1:032x}-{self._rng.getrandbits(64) | 1:016x}-01"
        self._found: list[Emission] = []

    def run(self) -> list[Emission]:
        sketch = self._sketch
        for number, expected in enumerate(sketch.expected):
            # The trace is that of the first turn.
            self._turn(f"turn-{number + 1}", expected, (sketch.topic + number) % len(sketch.domain.asks))
        late_trace = self._rng.random() < 0.5
        if not late_trace:
            self._trace()
        if sketch.ends and sketch.expected:
            self._event("session.ended", "")
        if late_trace:
            self._trace()
        return self._found

    def _turn(self, name: str, expected: Expected, topic: int) -> None:
        rng = self._rng
        domain = self._sketch.domain
        question = domain.asks[topic].format(**self._case)
        answer = domain.answers[topic].format(**self._case)
        calls = [self._call(tool) for tool in rng.sample(domain.tools, rng.choice((1, 1, 2, 2, 3)))]
        reference = _reference(expected, question, answer, calls, self._said(domain.evasions))
        self._event("invocation.started", name, user_content=_message(question, "user"), reference=reference)
        self._event(
            "model.called", name, model="demo-1", input_tokens=rng.randrange(90, 900), output_tokens=rng.randrange(200)
        )
        for number, (tool, args) in enumerate(calls):
            call_id = f"{name}-call-{number + 1}"
            self._event("tool.called", name, name=tool, args=args, call_id=call_id)
            outcome: dict[str, object] = {"response": {"found": self._said(domain.findings)}}
            if rng.random() < 0.1:
                outcome = {"error": self._said(domain.setbacks)}
            self._event("tool.returned", name, name=tool, call_id=call_id, **outcome)
        if rng.random() < 0.3:
            chunk = {"doc_uri": f"kb://{domain.app}/{rng.randrange(500)}", "content": self._said(domain.findings)}
            self._event("retrieval.returned", name, chunks=[chunk])
        if rng.random() < 0.3:
            self._event(
                "response.intermediate",
                name,
                author=domain.app,
                content=_message(self._said(domain.thoughts), "model"),
            )
        self._event("invocation.completed", name, final_response=_message(answer, "model"))

    def _call(self, tool: str) -> tuple[str, JsonObject]:
        return tool, {"case": self._case["ref"], "limit": self._rng.randrange(1, 20)}

    def _said(self, templates: Sequence[str]) -> str:
        return self._rng.choice(templates).format(**self._case)

    def _event(self, kind: str, invocation: str, **fields: object) -> None:
        sketch = self._sketch
        number = len(self._found)
        headers = [("traceparent", self._trace_parent.encode())]
        body: dict[str, object] = {"type": kind, "session_id": sketch.session_id}
        if self._identity == "event_id":
            body["event_id"] = f"{sketch.session_id}/{number}"
        elif self._identity == "ce_id":
            headers.append(("ce_id", f"{sketch.session_id}/{number}".encode()))
        body |= {"invocation_id": invocation} if invocation else {}
        body |= {"app_name": sketch.domain.app, "user_id": f"user-{sketch.words % 40}"}
        body["occurred_at"] = self._moment().isoformat(timespec="milliseconds")
        body |= {field: value for field, value in fields.items() if value is not None}
        self._emit("invocations", orjson.dumps(body), tuple(headers))

    def _trace(self) -> None:
        trace = trace_of(self._sketch, self._moment())
        if trace is not None:
            self._emit("traces", orjson.dumps(trace), (("traceparent", self._trace_parent.encode()),))

    def _emit(self, topic: Input, value: bytes, headers: tuple[tuple[str, bytes], ...]) -> None:
        key = self._sketch.session_id.encode()
        partition = partition_of(key, PARTITIONS)
        self._found.append(Emission(self._at, topic, partition, key, value, headers, self._sketch.session_id))
        self._at += self._rng.uniform(0.03, 0.3)

    def _moment(self) -> datetime:
        return self._start + timedelta(seconds=self._at)


class _Trace:
    """Builds the trace of a sketch.

    The value of each quality lies clearly on one side of the gate's threshold, whatever traces came before.
    """

    def __init__(self, sketch: Sketch, rng: random.Random, created_at: datetime) -> None:
        self._sketch = sketch
        self._rng = rng
        self._created_at = created_at
        self._case = sketch.domain.case(random.Random(sketch.words))  # noqa: S311  # as above
        self._steps: list[JsonObject] = []

    def document(self) -> JsonObject:
        sketch = self._sketch
        domain = self._sketch.domain
        rng = self._rng
        tools = rng.sample(domain.tools, 4)
        match sketch.quality:
            case "strong" | "twin":
                # The bonus for four kinds of steps, four tools and two recoveries in ten steps raises the value above
                # the threshold.
                self._tell("thought", "observation", "thought")
                for tool, kind in zip(
                    tools, ("observation", "error_recovery", "error_recovery", "thought"), strict=True
                ):
                    self._use(tool)
                    if kind != "thought":
                        self._tell(kind)
                success = True
                confidence = 0.9 if sketch.quality == "twin" else rng.choice((0.93, 0.95, 0.97, 0.99))
            case "ordinary":
                self._tell("thought")
                self._use(tools[0])
                self._tell("observation", "thought")
                success = True
                confidence = rng.choice((0.6, 0.7, 0.8))
            case "failed":
                self._tell("thought")
                self._use(tools[0])
                self._tell("error_recovery")
                self._use(tools[0])
                self._tell("observation", "thought")
                success = False
                confidence = rng.choice((0.2, 0.4, 0.6))
            case _:
                self._tell("thought")
                success = True
                confidence = 0.5
        if sketch.remark:
            self._steps[0]["content"] = f"{self._steps[0]['content']} {sketch.remark}"
        if sketch.twist:
            self._steps[-1]["content"] = f"{self._steps[-1].get('content', '')} {sketch.twist}"
        metadata: JsonObject = {
            "created_at": f"{self._created_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z",
            "agent_id": f"{domain.app}-{sketch.words % 7}",
            "framework": "demo",
            "task_domain": domain.name,
            "success": success,
            "quality_score": 0.5,
            "visibility": sketch.visibility,
            "privacy_level": sketch.privacy,
        }
        if sketch.names_session:
            metadata["session_id"] = sketch.session_id
        return {
            "@context": "https://openknowledgepulse.org/schema/v1",
            "@type": "ReasoningTrace",
            "id": sketch.trace_id or f"kp:trace:{sketch.session_id}",
            "metadata": metadata,
            "task": {"objective": domain.asks[sketch.topic].format(**self._case)},
            "steps": [*self._steps],
            "outcome": {
                "result_summary": domain.answers[sketch.topic].format(**self._case),
                "confidence": confidence,
            },
        }

    def _tell(self, *kinds: str) -> None:
        domain = self._sketch.domain
        texts = {"thought": domain.thoughts, "observation": domain.findings, "error_recovery": domain.setbacks}
        for kind in kinds:
            self._steps.append({"step_id": len(self._steps), "type": kind, "content": self._said(texts[kind])})

    def _use(self, tool: str) -> None:
        self._steps.append(
            {
                "step_id": len(self._steps),
                "type": "tool_call",
                "tool": {"name": tool},
                "input": {"case": self._case["ref"]},
                "latency_ms": float(self._rng.randrange(20, 900)),
            }
        )

    def _said(self, templates: Sequence[str]) -> str:
        return self._rng.choice(templates).format(**self._case)


def _reference(
    expected: Expected, question: str, answer: str, calls: Sequence[tuple[str, JsonObject]], evasion: str
) -> JsonObject | None:
    if expected == "nothing":
        return None
    wanted: list[JsonValue] = [{"name": tool, "args": args} for tool, args in calls]
    if expected == "tool_missing":
        wanted.append({"name": "ask_colleague", "args": {}})
    text = evasion if expected == "other_words" else answer
    return {"question": question, "final_response": _message(text, "model"), "tool_uses": wanted}


def _message(text: str, role: str) -> JsonObject:
    return {"role": role, "parts": [{"text": text}]}
