"""Generates the documents of one session, with the times at which they are recorded and at which they arrive."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

Document = dict[str, Any]

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

Arrival = Literal["in time", "held back", "afterwards", "revised"]
"""`held back`: recorded in time, and arrives after the session has closed.

`afterwards`: recorded and arrives after that. `revised`: a trace with other content, either way.
"""


class Step(NamedTuple):
    """A document of a session."""

    topic: str
    """`traces` or `invocations`, without a prefix."""
    document: Document
    arrival: Arrival = "in time"
    at_home: bool = False
    """Whether the document is sent to its session's home partition, so that no later document there overtakes it."""


def steps(
    rnd: random.Random, name: str, now: float, former: Mapping[str, list[Document]], *, late: float
) -> list[Step]:
    """Returns the documents of a session with one to three turns and up to two traces.

    A trace comes before or after the end; some sessions never end.

    Args:
        rnd: The source of all random choices.
        name: The session's id.
        now: Seconds since 1970.
        former: Earlier traces by domain; some new traces nearly repeat one of them.
        late: The share of sessions with a late record, for each kind of lateness.
    """
    domain = rnd.choice(DOMAINS)
    at = datetime.fromtimestamp(now, UTC)
    found = [Step("invocations", event) for turn in range(rnd.randint(1, 3)) for event in _turn(rnd, name, turn)]
    traces = [_trace(rnd, name, domain, number, former) for number in range(rnd.choice((0, 1, 1, 1, 1, 2)))]
    found += [Step("traces", document) for document in traces]
    if rnd.random() < 0.85:
        end = {"type": "session.ended", "session_id": name}
        found.insert(len(found) - rnd.randint(0, 1), Step("invocations", end))
    for number, step in enumerate(found):
        if step.topic == "invocations":
            step.document["occurred_at"] = (at + timedelta(milliseconds=number)).isoformat()
    if rnd.random() < 0.3:
        i = rnd.randrange(len(found) - 1)
        found[i], found[i + 1] = found[i + 1], found[i]
    if len(found) > 2:
        # An old timestamp sets its partition's clock back for some time; with many of them no session would ever close.
        ways: dict[Arrival, float] = {"held back": 0.4, "afterwards": 1}
        for way, weight in ways.items():
            if rnd.random() < weight * late:
                i = rnd.randrange(len(found))
                found[i] = found[i]._replace(arrival=way)
    if traces and rnd.random() < late:
        trace = rnd.choice(traces)
        i = next(i for i, step in enumerate(found) if step.document is trace)
        if found[i].arrival == "in time":
            found[i] = found[i]._replace(at_home=True)
            found.append(Step("traces", _revised(rnd, trace), "revised", at_home=True))
    return found


def former_life(name: str, at: float) -> Step:
    """Returns the only event of a session's earlier segment, which closed long before the next segment."""
    moment = datetime.fromtimestamp(at, UTC).isoformat()
    about = {"session_id": name, "invocation_id": f"{name}/before", "app_name": "agent", "occurred_at": moment}
    event = {**about, "type": "invocation.completed", "final_response": _text("long ago")}
    return Step("invocations", event, at_home=True)


def _turn(rnd: random.Random, session: str, turn: int) -> list[Document]:
    about = {"session_id": session, "invocation_id": f"{session}/{turn}", "app_name": "agent"}
    calls = [{"name": rnd.choice(TOOLS), "args": {"of": rnd.choice(WORDS)}} for _ in range(rnd.randint(0, 3))]
    started: Document = {**about, "type": "invocation.started", "user_content": _text(_sentence(rnd, 6))}
    if rnd.random() < 0.7:
        expected = calls if rnd.random() < 0.7 else [*calls, {"name": "other", "args": {}}]
        started["reference"] = {"tool_uses": expected}
    events = [started]
    for number, call in enumerate(calls):
        # With the same ids in two turns, nobody could tell a turn whose call is missing from one that continues the other.
        call_id = f"call-{turn}-{number}"
        events.append({**about, "type": "tool.called", "call_id": call_id, **call})
        events.append({**about, "type": "tool.returned", "call_id": call_id, "name": call["name"], "response": "ok"})
    events.append({**about, "type": "invocation.completed", "final_response": _text(_sentence(rnd, 9))})
    return events


def _trace(
    rnd: random.Random, session: str, domain: str, number: int, former: Mapping[str, list[Document]]
) -> Document:
    if (known := former.get(domain)) and rnd.random() < 0.2:  # nearly the same as an earlier one
        old = rnd.choice(known[-50:])
        objective, steps = old["task"]["objective"], [dict(step) for step in old["steps"]]
        steps[0]["content"] = f"{steps[0].get('content', '')} {rnd.choice(WORDS)}"
    else:
        objective, steps = _sentence(rnd, 6), [_step(rnd, n) for n in range(rnd.randint(1, 9))]
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
        "outcome": {"result_summary": _sentence(rnd, 4), "confidence": round(rnd.uniform(0.5, 1), 3)},
    }


def _revised(rnd: random.Random, trace: Document) -> Document:
    """Returns the trace with one more step, and sometimes with another outcome."""
    metadata = {**trace["metadata"], "success": rnd.random() < 0.6}
    return {**trace, "metadata": metadata, "steps": [*trace["steps"], _step(rnd, len(trace["steps"]))]}


def _step(rnd: random.Random, number: int) -> Document:
    kind = rnd.choice(("thought", "tool_call", "observation", "error_recovery"))
    step: Document = {"step_id": number, "type": kind, "content": _sentence(rnd, 8)}
    if kind == "tool_call":
        step["tool"] = {"name": rnd.choice(TOOLS)}
    return step


def _sentence(rnd: random.Random, words: int) -> str:
    return " ".join(rnd.choices(WORDS, k=words))


def _text(text: str) -> Document:
    return {"parts": [{"text": text}], "role": "user"}
