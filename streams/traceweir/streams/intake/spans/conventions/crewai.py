"""CrewAI, whose crews have tasks in place of a question."""

from __future__ import annotations

import re
from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, first_text, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Identified, Rank, Source, attributes
from traceweir.streams.intake.spans.message import is_hidden
from traceweir.streams.intake.spans.python_text import python_value
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.texts_in_values import question_in

_CALLING = re.compile(r"\barguments=(\{.*\})", re.DOTALL)
"""Python's text of the call of a tool."""
_ACTION = re.compile(r"^Action Input:\s*(\{.*\})\s*\Z", re.MULTILINE | re.DOTALL)
"""The words in which a model asks for a tool."""


def _task(value: Any) -> str:
    """Returns what the first task of a crew demands: a crew has tasks in place of a question."""
    tasks = structure(value)
    first = tasks[0] if isinstance(tasks, list) and tasks else None
    found = first.get("description") if isinstance(first, dict) else None
    return found if isinstance(found, str) and not is_hidden(found) else ""


def _result(span: Span, _: object) -> str:
    # No JSON, even if it looks like it.
    return first_text(span.attributes, "crewai.crew.result")


def _arguments(_: Span, value: object) -> Any:
    """Returns the arguments of a tool, which OpenInference writes in the request to use it: as JSON or as Python's text."""
    request = structure(value)
    if not isinstance(request, dict) or not {"calling", "tool_string"} <= set(request):
        return ABSENT
    calling = structure(request["calling"])
    if isinstance(calling, dict) and "arguments" in calling:
        return Identified(calling["arguments"], "")
    found = _CALLING.search(text_of(calling)) or _ACTION.search(text_of(request["tool_string"]))
    args = python_value(structure(found[1])) if found else ABSENT
    return Identified(args if isinstance(args, dict) else ABSENT, "")


CREWAI = Convention(
    name="CrewAI",
    frameworks=(("crewai", "crewai"),),
    contents=("crewai.crew.tasks",),
    questions=(
        *attributes(question_in, Rank.FRAME, "crew_inputs"),
        *attributes(_task, Rank.REST, "crew_tasks", "crewai.crew.tasks"),
    ),
    arguments=(Source("input.value", _arguments, Rank.BODY),),
    answers=(Source("crewai.crew.result", _result, Rank.VALUE),),
)
