"""Google's ADK: its own attributes, beside those of the standard."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import decoded, has_word
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import CAPTURE
from traceweir.streams.intake.spans.conventions.openinference import OPENINFERENCE
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.message import RequestedCall
from traceweir.streams.intake.spans.span import Attributes, Kind, Span

_SCOPE = "gcp.vertex.agent"
_NODE = "invoke_node "
_IN_SPANS = "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true"


def _kind_of_name(span: Span) -> Kind | None:
    name = span.name
    if name == "call_llm":
        return "llm"
    if name.startswith("agent_run ["):
        return "agent"
    return "workflow" if name == "invocation" or name.startswith("invocation [") else None


def _agent_of(span: Span) -> str:
    name = span.name
    is_run = name.startswith("agent_run [") and name.endswith("]")
    return name.removeprefix("agent_run [").removesuffix("]") if is_run else ""


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    """Tells of the nodes of a workflow that can be tools: no other span tells of their work."""
    names = [node.span.name for node in seen.nodes if node.kind == "workflow" and not node.children]
    nodes = ", ".join(sorted({name.removeprefix(_NODE) for name in names if name.startswith(_NODE)}))
    if not nodes:
        return {}
    return {
        "tools": f"the tool calls of the workflow's nodes {nodes}, if there were any, are not in the spans: ADK tells the name "
        "of a node alone, be it a tool or a function; record the agent with the plugin of traceweir-client"
    }


def _hides_call(span: Span) -> bool:
    """Returns whether a span has what ADK writes instead of content; a tool that returns nothing has `{"result": null}`."""
    there = span.attributes
    return there.get("gcp.vertex.agent.tool_call_args") == "{}" == there.get("gcp.vertex.agent.tool_response")


def _frames_results(span: Span) -> bool:
    return span.scope == _SCOPE or any(key.startswith("gcp.vertex.agent.") for key in span.attributes)


def _frames_recorded(call_id: str, span: Span | None) -> bool:
    return call_id.startswith("adk-") or (span is not None and span.scope == _SCOPE)


def _has_made_up_id(call: RequestedCall) -> bool:
    """Returns whether the id of a call is its name and a number, which ADK writes for calls without one; it repeats."""
    return call.id.startswith(f"{call.name}_") and call.id[len(call.name) + 1 :].isdecimal()


def _hides_error(_: str, message: str) -> bool:
    """Returns whether a status says only that the tool failed."""
    return message == "TOOL_ERROR"


def _user_in_request(of_span: Attributes) -> str | None:
    """Returns the id of the user with which the runner was called, as OpenInference passes on its arguments."""
    request = of_span.get("input.value")
    value = decoded(request) if has_word(request, '"user_id"') else None
    user = value.get("user_id") if isinstance(value, dict) else None
    return user if isinstance(user, str) else None


ADK = Convention(
    name="Google ADK",
    apps=("gcp.vertex.agent.app_name", "gen_ai.workflow.name"),
    kind_of_name=_kind_of_name,
    switches=(
        # OpenInference writes onto the spans of ADK, and hides what ADK would show.
        *OPENINFERENCE.switches,
        Switch(_IN_SPANS, keys=("gcp.vertex.agent.llm_re", "gcp.vertex.agent.tool_call_args")),
        Switch(
            f"{CAPTURE}=SPAN_AND_EVENT (with ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1: {_IN_SPANS})",
            keys=("gcp.vertex.agent.",),
            scopes=(_SCOPE,),
        ),
    ),
    frameworks=((_SCOPE, "google-adk"), ("google_adk", "google-adk")),
    shared_sessions=("gcp.vertex.agent.session_id",),
    user_in_request=_user_in_request,
    agent_of={"agent": _agent_of},
    only_json=(
        "gcp.vertex.agent.llm_request",
        "gcp.vertex.agent.llm_response",
        "gcp.vertex.agent.tool_call_args",
        "gcp.vertex.agent.tool_response",
    ),
    inputs=attributes(requested, Rank.BODY, "gcp.vertex.agent.llm_request"),
    outputs=attributes(answered, Rank.BODY, "gcp.vertex.agent.llm_response"),
    quirks=_quirks,
    arguments=(Source("gcp.vertex.agent.tool_call_args", as_it_is, Rank.VALUE),),
    results=attributes(decoded, Rank.VALUE, "gcp.vertex.agent.tool_response"),
    hides_call=_hides_call,
    frames_results=_frames_results,
    frames_recorded=_frames_recorded,
    # `<not specified>`.
    no_tool_ids=("<",),
    has_made_up_id=_has_made_up_id,
    no_arguments=("N/A",),
    hides_error=_hides_error,
    no_runs=("(merged tools)",),
)
