"""MCP: the spans of the client and of the server of a tool, both parts of the tool's call."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.genai import operation_of
from traceweir.streams.intake.spans.span import Attributes, Kind, Span

_METHOD = "mcp.method.name"


def _is_server_call(attributes: Attributes) -> bool:
    """Returns whether a span is the call of a tool of an MCP server, as its client or the server recorded it."""
    return attributes.get(_METHOD) == "tools/call"


def _kind(span: Span) -> Kind | None:
    if operation_of(span.attributes):
        return None
    return "tool" if _is_server_call(span.attributes) else "other"


MCP = Convention(
    name="MCP", kind_keys=(_METHOD,), kind=_kind, other_ids=("mcp.session.id",), is_server_call=_is_server_call
)
