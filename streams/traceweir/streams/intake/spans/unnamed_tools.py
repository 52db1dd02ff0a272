"""Finds the spans of tools that no convention knows: those with the name of a tool that a model asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traceweir.streams.intake.spans.dialects import output_messages
from traceweir.streams.intake.spans.tool_spans import tool_name
from traceweir.streams.intake.spans.tree import Node

_NAME = re.compile(r"(?![A-Z]+\Z)[A-Za-z_][\w.-]{0,127}")
"""A name that a tool can have. HTTP clients call their spans `GET` and `POST`."""


def mark_tools(nodes: Sequence[Node]) -> None:
    """Makes a span the run of a tool if it has the name of a tool that a model of the trace asked for.

    Applications write such spans by hand around their tools, and some tracers around any function. A span with steps of
    an agent below it is left as it is, and so are all of a tool of which a convention knows a span.

    Args:
        nodes: The spans of a trace, parents before children.
    """
    if not any(node.kind == "other" and _NAME.fullmatch(node.span.name) for node in nodes):
        return
    models = [node.span for node in nodes if node.kind == "llm"]
    asked = {call.name for span in models for message in output_messages(span) for call in message.calls}
    asked -= {tool_name(node.span) for node in nodes if node.kind == "tool"}
    around_steps: set[int] = set()
    for node in reversed(nodes):
        if node.kind == "other" and id(node) not in around_steps:
            if node.span.name not in asked or not _NAME.fullmatch(node.span.name):
                continue
            node.kind = "tool"
        if node.parent is not None:
            around_steps.add(id(node.parent))
