"""What the agents of these tests do: the sessions, the answers that the scripted models give, the tools, and the truth.

An agent script runs in the environment of its framework, so that this module needs OpenTelemetry's SDK only. The script
replaces the framework's model by one that takes its answers from `Play`, and calls `Play.turn` around each question.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

MODEL = "scripted-1"
TRAVEL, DESK, REFUNDS = "travel_agent", "desk_agent", "refund_agent"
DELEGATE = "ask_refund_agent"
"""Name of the tool that asks the agent for refunds, in frameworks whose sub-agents are tools."""


class Call(NamedTuple):
    """A tool call that the model asks for, and what comes of it."""

    name: str
    args: dict[str, Any]
    result: Any = None
    """What the tool returns; None for a tool that fails, and for a handoff."""
    error: str | None = None
    """The message of the exception that the tool raises."""
    handoff_to: str | None = None


class Reply(NamedTuple):
    """An answer of the model: a text, tool calls, both, or an exception."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    agent: str = ""
    """The agent whose model answers; empty: the session's agent."""
    error: str = ""


class Turn(NamedTuple):
    """A question, and what the agent does about it."""

    question: str
    replies: tuple[Reply, ...]


class Session(NamedTuple):
    """A conversation."""

    key: str
    agent: str
    turns: tuple[Turn, ...]

    @property
    def id(self) -> str:
        """The id under which the framework keeps the session."""
        return f"session-{self.key}"


SOLD_OUT = "train TGV 9763 has no 2 seats left"
UNAVAILABLE = "the model is not available"


def search_trains(origin: str, destination: str, day: str) -> dict[str, Any]:
    """Finds the trains between two cities on a day."""
    return {"trains": [{"train": "TGV 9763", "from": origin, "to": destination, "leaves": "08:31", "free": 2}]}


def weather(city: str) -> str:
    """Tells the weather in a city."""
    time.sleep(0.05 if city == "Zürich" else 0)  # the first call of a pair ends last
    return f"{city}: 晴れ, 21 °C"


def reserve(train: str, seats: int) -> str:
    """Reserves seats in a train."""
    raise ValueError(SOLD_OUT)


def read_notes(topic: str) -> str:
    """Reads what was noted about a topic."""
    return ""


def read_config(name: str) -> str:
    """Reads a file of configuration as it is."""
    return '{"not": "parsed"}'


def count_bags() -> int:
    """Counts the bags that were left at the desk."""
    return 0


def refund(order: str) -> dict[str, Any]:
    """Refunds an order."""
    return {"order": order, "amount": 12.5, "currency": "€"}


TRAVEL_TOOLS = (search_trains, weather, reserve)
DESK_TOOLS = (read_notes, read_config, count_bags)
REFUND_TOOLS = (refund,)

_SEARCH = {"origin": "Genève", "destination": "Zürich", "day": "2026-03-13"}
_TRAVEL = (
    Turn(
        "Is there a train from Genève to Zürich on Friday?",
        (
            Reply("Let me look.", (Call("search_trains", _SEARCH, search_trains(**_SEARCH)),)),
            Reply("Yes, at 08:31. It has 2 free seats."),
        ),
    ),
    Turn(
        "How is the weather in Zürich, and in 東京?",
        (
            Reply(
                calls=tuple(Call("weather", {"city": city}, f"{city}: 晴れ, 21 °C") for city in ("Zürich", "東京")),
            ),
            Reply("It is sunny in both: 21 °C. 晴れ ☀"),
        ),
    ),
    Turn(
        "Two seats, please.",
        (
            Reply(calls=(Call("reserve", {"train": "TGV 9763", "seats": 2}, error=SOLD_OUT),)),
            Reply("I am sorry, the train is full."),
        ),
    ),
    Turn("Thanks!", (Reply("You are welcome."),)),
    Turn("Thanks!", (Reply("You are welcome."),)),
)
_DESK = (
    Turn(
        "Is there a note about bag 12?",
        (
            Reply(calls=(Call("read_notes", {"topic": "bag 12"}, ""),)),
            Reply("No, there is no note."),
        ),
    ),
    Turn(
        "Show me the configuration, and how many bags are here.",
        (
            Reply(calls=(Call("read_config", {"name": "desk"}, '{"not": "parsed"}'),)),
            Reply(calls=(Call("count_bags", {}, 0),)),
            Reply('{"desk": "open", "bags": 0}'),
        ),
    ),
)
_REFUND = Call("refund", {"order": "70-5521"}, {"order": "70-5521", "amount": 12.5, "currency": "€"})
_ASKED = "I never got my money back for order 70-5521."
_TOLD = "12.50 € are on their way."
_LAST = (
    Turn(
        "Is anybody there?",
        (Reply(calls=(Call("count_bags", {}, 0),)), Reply(error=UNAVAILABLE)),
    ),
    Turn("And now?", (Reply("Yes, I am back."),)),
)


def delegation() -> Turn:
    """Returns the turn in which the sub-agent is a tool."""
    task = "Refund order 70-5521."
    return Turn(
        _ASKED,
        (
            Reply(calls=(Call(DELEGATE, {"task": task}, _TOLD),)),
            Reply(calls=(_REFUND,), agent=REFUNDS),
            Reply(_TOLD, agent=REFUNDS),
            Reply("Done: 12.50 € come back to you."),
        ),
    )


def handoff(name: str, args: dict[str, Any]) -> Turn:
    """Returns the turn in which the agent hands the conversation over, with the tool call that does so."""
    return Turn(
        _ASKED,
        (
            Reply(calls=(Call(name, args, handoff_to=REFUNDS),)),
            Reply(calls=(_REFUND,), agent=REFUNDS),
            Reply(_TOLD, agent=REFUNDS),
        ),
    )


def sessions(*extra: Turn) -> tuple[Session, ...]:
    """Returns the sessions; `extra` are further turns of the desk, such as those with a sub-agent."""
    return (
        Session("travel", TRAVEL, _TRAVEL),
        Session("desk", DESK, _DESK + _LAST),
        *(Session(f"refund-{index}", DESK, (turn,)) for index, turn in enumerate(extra)),
    )


class TraceIds(SpanProcessor):
    """Notes the traces of the spans that start."""

    def __init__(self) -> None:
        self.seen: dict[str, None] = {}

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Notes the trace of a span."""
        self.seen.setdefault(f"{span.get_span_context().trace_id:032x}")

    def on_end(self, span: ReadableSpan) -> None:
        """Does nothing."""


class Play:
    """Hands out the answers of the scripted model, and writes the truth.

    Args:
        session_id_in_spans: Whether the spans have the session ids.
    """

    def __init__(self, *, session_id_in_spans: bool = True) -> None:
        self.trace_ids = TraceIds()
        self._truth: dict[str, Any] = {"session_id_in_spans": session_id_in_spans, "sessions": []}
        self._replies: list[Reply] = []
        self._asked = 0
        self._calls = 0

    def reply(self) -> Reply:
        """Returns the model's next answer."""
        self._asked += 1
        return self._replies.pop(0)

    def call_id(self) -> str:
        """Returns a new id of a tool call."""
        self._calls += 1
        return f"call_{self._calls:04d}"

    @property
    def tokens(self) -> tuple[int, int]:
        """The input and output tokens of the answer that was taken last."""
        return 100 + self._asked, 10 + self._asked

    @contextmanager
    def turn(self, session: Session, turn: Turn) -> Iterator[list[str]]:
        """Plays a turn; the caller asks the agent in it, and appends the answer to the list.

        An exception of the model passes to here, and no further.
        """
        self._replies = list(turn.replies)
        self.trace_ids.seen.clear()
        before = self._asked
        failed = any(reply.error for reply in turn.replies)
        answers: list[str] = []
        try:
            yield answers
        except Exception as error:
            if not failed or UNAVAILABLE not in str(error):
                raise
        answer = None if failed else turn.replies[-1].text
        assert answers == ([] if failed else [answer]), (answers, answer)
        assert not self._replies, self._replies
        calls = [
            {"name": c.name, "args": c.args, "result": c.result, "error": c.error, "handoff_to": c.handoff_to}
            for reply in turn.replies
            for c in reply.calls
        ]
        models = [
            {"model": MODEL, "input_tokens": None, "output_tokens": None}
            if reply.error
            else {"model": MODEL, "input_tokens": 100 + number, "output_tokens": 10 + number}
            for number, reply in enumerate(turn.replies, before + 1)
        ]
        agents = list(dict.fromkeys(reply.agent or session.agent for reply in turn.replies))
        self._session(session)["turns"].append(
            {
                "index": session.turns.index(turn),
                "question": turn.question,
                "answer": answer,
                "agents": agents,
                "tool_calls": calls,
                "llm_calls": models,
                "trace_ids": list(self.trace_ids.seen),
            }
        )

    def _session(self, session: Session) -> dict[str, Any]:
        for known in self._truth["sessions"]:
            if known["key"] == session.key:
                return known
        self._truth["sessions"].append({"key": session.key, "session_id": session.id, "turns": []})
        return self._truth["sessions"][-1]

    def write(self, path: str) -> None:
        """Writes the truth."""
        Path(path).write_text(json.dumps(self._truth, ensure_ascii=False), encoding="utf-8")
