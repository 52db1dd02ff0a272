"""LangWatch: ids that its SDK writes on the spans of other conventions."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

LANGWATCH = Convention(
    name="LangWatch",
    sessions=("langwatch.thread.id", "langwatch.thread_id"),
    users=("langwatch.user.id", "langwatch.user_id"),
)
