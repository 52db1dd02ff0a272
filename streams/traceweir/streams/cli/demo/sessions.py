"""Simulates one session: the records that an agent sends, in order, on the home partition and on time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import orjson

from traceweir.schemas.base import JsonObject
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import Topics
from traceweir.streams.cli.demo.texts import Domain, Scene
from traceweir.streams.tools.testing.builders import trace
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS

Quality = Literal["strong", "twin", "ordinary", "failed", "thought", "told"]
Expected = Literal["match", "tool_missing", "other_words", "nothing"]
"""How the reference of a turn differs from what the agent did; `nothing`: the turn has no reference."""
Input = Literal["traces", "invocations"]

JOINED = "joined"
DUPLICATE = "duplicate"

_SHORT = "thought 0 observation thought"
_LONG = "thought 0 observation 1 error_recovery 2 error_recovery 3 observation thought"
_TRACES: Mapping[Quality, tuple[str, bool, tuple[float, ...]]] = {
    "strong": (_LONG, True, (0.93, 0.95, 0.97, 0.99)),
    "twin": (_LONG, True, (0.9,)),
    "ordinary": (_SHORT, True, (0.4, 0.5)),
    "failed": ("thought 0 error_recovery 0 observation thought", False, (0.2, 0.4, 0.6)),
    "thought": ("thought", True, (0.5,)),
    "told": (_SHORT, True, (0.9,)),
}
"""The steps of a trace (a number is a call of that tool), its success, and the confidences to choose from.

Whatever traces came before, the value of a strong one is at least 0.78: its complexity, tools, confidence and the bonus for two
recoveries give 0.70, and its novelty is at least 0.22. A twin has 0.70 too; the one that comes second adds at most 0.04. The
others have at most 0.34 without novelty. The threshold of the gate is 0.75.
"""


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
    """The name in the trace's id; empty: that of the session."""
    repeats: Literal["", "trace", "trace id"] = ""
    """What an earlier session has too: the trace but for a word, or only the id of the trace."""
    remark: str = ""
    """A text that is added to the trace's first step, after the domain's own text."""
    names_session: bool = True
    """Whether the trace carries its session's id; otherwise only the record's key carries the id."""
    fails: bool = False
    """Whether the last tool of each turn fails."""
    evades: bool = False
    """Whether the answers miss the question."""
    ref_start: str = ""
    """How the reference number of the case begins."""
    dimensions: Mapping[str, str] = field(default_factory=dict)
    """Further fields of each event, such as `agent_version`."""

    @property
    def case(self) -> dict[str, str]:
        """The values of the placeholders."""
        return self.domain.case(_rng(self, "case"), self.ref_start)

    def scene(self, number: int) -> Scene:
        """Returns what is asked and answered in a turn; the trace is that of the turn 0."""
        scene = self.domain.scenes[(self.words + number) % len(self.domain.scenes)]
        case = self.case
        answer = self.domain.evasion if self.evades else scene.answers
        return Scene(
            asks=scene.asks.format(**case),
            answers=answer.format(**case),
            finds=scene.finds.format(**case),
            tools=scene.tools,
        )


def trace_of(sketch: Sketch, created_at: datetime) -> JsonObject | None:
    """Returns the trace of a session, None if the session has no trace."""
    if sketch.quality is None:
        return None
    rng = _rng(sketch, "trace")
    scene = sketch.scene(0)
    recipe, success, confidences = _TRACES[sketch.quality]
    tools = list(scene.tools) or rng.sample(sketch.domain.tools, 4)
    if scene.tools:
        recipe = recipe.replace("0 observation", " ".join(f"{number} observation" for number in range(len(tools))))
    steps: list[dict[str, Any]] = []
    for kind in recipe.split():
        if kind.isdigit():
            steps.append({"type": "tool_call", "tool": {"name": tools[int(kind)]}, "input": _arguments(sketch)})
        else:
            steps.append({"type": kind, "content": _said(sketch, scene, rng, kind)})
    steps[0]["content"] += sketch.remark
    steps[-1]["content"] += " indeed" if sketch.repeats == "trace" else ""
    return trace(
        sketch.trace_id or sketch.session_id,
        sketch.session_id if sketch.names_session else None,
        domain=sketch.domain.name,
        metadata={
            "created_at": _instant(created_at),
            "framework": "demo",
            "success": success and not sketch.evades,
            "visibility": sketch.visibility,
            "privacy_level": sketch.privacy,
        },
        task={"objective": scene.asks},
        steps=[{"step_id": number, **step} for number, step in enumerate(steps)],
        outcome={"result_summary": scene.answers, "confidence": 0.3 if sketch.evades else rng.choice(confidences)},
    )


def emissions_of(sketch: Sketch, start: datetime) -> list[Emission]:
    """Returns the records of a session, ordered by `due_s`. `start` is the time of second 0."""
    return _Agent(sketch, start).run()


class _Agent:
    def __init__(self, sketch: Sketch, start: datetime) -> None:
        self._sketch = sketch
        self._start = start
        self._rng = _rng(sketch, "events")
        self._at_s = sketch.began_s
        self._identity = self._rng.choice(("event_id", "event_id", "event_id", "ce_id", "content"))
        parent = f"00-{self._rng.getrandbits(128) | 1:032x}-{self._rng.getrandbits(64) | 1:016x}-01"
        self._headers = (("traceparent", parent.encode()),)
        self._found: list[Emission] = []

    def run(self) -> list[Emission]:
        sketch = self._sketch
        for number, expected in enumerate(sketch.expected):
            self._turn(f"turn-{number + 1}", sketch.scene(number), expected)
        events = len(self._found)
        if (created := trace_of(sketch, self._moment())) is not None:
            self._emit("traces", created)
        if sketch.ends and sketch.expected:
            # So that the session closes at once, whatever the clock of its partition.
            self._event("session.ended", "", expects={"events": events + 1, "traces": len(self._found) - events})
        return self._found

    def _turn(self, name: str, scene: Scene, expected: Expected) -> None:
        rng = self._rng
        tools = list(scene.tools) or rng.sample(self._sketch.domain.tools, rng.choice((1, 1, 2, 2, 3)))
        arguments = _arguments(self._sketch)
        reference = None
        if expected != "nothing":
            uses = [{"name": tool, "args": arguments} for tool in tools]
            uses += [{"name": "ask_colleague", "args": {}}] if expected == "tool_missing" else []
            text = self._sketch.domain.evasion if expected == "other_words" else scene.answers
            reference = {"question": scene.asks, "final_response": _message(text, "model"), "tool_uses": uses}
        self._event("invocation.started", name, user_content=_message(scene.asks, "user"), reference=reference)
        tokens = rng.randrange(300, 900)
        self._event("model.called", name, model="demo-model", input_tokens=tokens, output_tokens=tokens // 10)
        for number, tool in enumerate(tools):
            call = {"name": tool, "call_id": f"{name}-call-{number + 1}"}
            self._event("tool.called", name, **call, args=arguments)
            outcome: dict[str, Any] = {"response": {"found": _said(self._sketch, scene, rng, "observation")}}
            if self._sketch.fails and number == len(tools) - 1:
                outcome = {"error": _said(self._sketch, scene, rng, "error_recovery")}
            self._event("tool.returned", name, **call, **outcome)
        self._event("invocation.completed", name, final_response=_message(scene.answers, "model"))

    def _event(self, kind: str, invocation: str, **fields: object) -> None:
        sketch = self._sketch
        identity = f"{sketch.session_id}/{len(self._found)}"
        body: dict[str, object] = {"type": kind, "session_id": sketch.session_id}
        body |= {"event_id": identity} if self._identity == "event_id" else {}
        body |= {"invocation_id": invocation} if invocation else {}
        body |= {"app_name": sketch.domain.app, "user_id": f"user-{sketch.words % 40}", **sketch.dimensions}
        body |= {"occurred_at": _instant(self._moment()), **fields}
        headers = (("ce_id", identity.encode()),) if self._identity == "ce_id" else ()
        self._emit("invocations", {name: value for name, value in body.items() if value is not None}, headers)

    def _emit(self, topic: Input, document: Mapping[str, Any], headers: tuple[tuple[str, bytes], ...] = ()) -> None:
        key = self._sketch.session_id.encode()
        home = partition_of(key, PARTITIONS)
        value = orjson.dumps(document)
        self._found.append(
            Emission(self._at_s, topic, home, key, value, (*self._headers, *headers), self._sketch.session_id)
        )
        self._at_s += self._rng.uniform(0.03, 0.3)

    def _moment(self) -> datetime:
        return self._start + timedelta(seconds=self._at_s)


def _rng(sketch: Sketch, part: str) -> random.Random:
    return random.Random(f"{sketch.words} {part}")  # noqa: S311  # a story, no secret


def _arguments(sketch: Sketch) -> JsonObject:
    return {"case": sketch.case["ref"]}


def _said(sketch: Sketch, scene: Scene, rng: random.Random, kind: str) -> str:
    if kind == "observation" and scene.finds:
        return scene.finds
    return rng.choice(sketch.domain.says[kind]).format(**sketch.case)


def _instant(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _message(text: str, role: str) -> JsonObject:
    return {"role": role, "parts": [{"text": text}]}
