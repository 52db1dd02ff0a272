"""Strands: the standard, with a setting of its own that hides content.

With the newest conventions, the spans of tools and agents have the standard's event of a model call, whose messages are
the call and the result of the tool, and the answer of the agent.
"""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, structure
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.source import Identified, field_of_event
from traceweir.streams.intake.spans.messages import read_messages
from traceweir.streams.intake.spans.span_events import DETAILS


def _call(value: Any) -> Any:
    found = structure(value)
    # The role is that of a tool, as if it were its result.
    asked = (
        [{**each, "role": "assistant"} for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    )
    calls = [call for message in read_messages(asked) for call in message.calls]
    return Identified(calls[0].args, calls[0].id) if len(calls) == 1 else ABSENT


def _result(value: Any) -> Any:
    results = [result for message in read_messages(value) for result in message.results]
    return results[0].value if len(results) == 1 else ABSENT


def _answer(value: Any) -> str:
    messages = read_messages(value, "assistant")
    return messages[-1].text if messages and not messages[-1].calls else ""


STRANDS = Convention(
    name="Strands",
    switches=(
        Switch(
            "gen_ai_unredacted_attributes=gen_ai.* in OTEL_SEMCONV_STABILITY_OPT_IN, or leave that word out of it",
            scopes=("strands.*",),
        ),
    ),
    frameworks=(("strands", "strands-agents"),),
    # One line break for each part.
    answer_padding="\n",
    answers=(field_of_event(DETAILS, "gen_ai.output.messages", _answer),),
    arguments=(field_of_event(DETAILS, "gen_ai.input.messages", _call),),
    results=(field_of_event(DETAILS, "gen_ai.output.messages", _result),),
)
