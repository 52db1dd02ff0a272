"""CrewAI, whose crews have tasks in place of a question."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.attributes import first_text, structure
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Rank, Source, attributes
from traceweir.streams.intake.spans.message import is_hidden
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.texts_in_values import question_in


def _task(value: Any) -> str:
    """Returns what the first task of a crew demands: a crew has tasks in place of a question."""
    tasks = structure(value)
    first = tasks[0] if isinstance(tasks, list) and tasks else None
    found = first.get("description") if isinstance(first, dict) else None
    return found if isinstance(found, str) and not is_hidden(found) else ""


def _result(span: Span, _: object) -> str:
    # No JSON, even if it looks like it.
    return first_text(span.attributes, "crewai.crew.result")


CREWAI = Convention(
    name="CrewAI",
    frameworks=(("crewai", "crewai"),),
    contents=("crewai.crew.tasks",),
    questions=(
        *attributes(question_in, Rank.FRAME, "crew_inputs"),
        *attributes(_task, Rank.REST, "crew_tasks", "crewai.crew.tasks"),
    ),
    answers=(Source("crewai.crew.result", _result, Rank.VALUE),),
)
