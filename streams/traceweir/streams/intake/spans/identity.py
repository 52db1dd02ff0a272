"""Finds to whom spans belong: the session, the user, the app, the agent, and how they were sampled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from traceweir.schemas.dimensions import MAX_SHORT_CHARS
from traceweir.streams.intake.spans import haystack
from traceweir.streams.intake.spans.attributes import decoded, first_text
from traceweir.streams.intake.spans.labels import labels_of
from traceweir.streams.intake.spans.message import is_hidden
from traceweir.streams.intake.spans.span import Attributes, Span
from traceweir.streams.intake.spans.tree import Node

_CONVERSATION = "gen_ai.conversation.id"
_SPRING = "spring.ai.chat.client.conversation.id"
_SESSION = (
    "session.id",
    _CONVERSATION,
    "gcp.vertex.agent.session_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id",
    "langfuse.session.id",
    "mlflow.trace.session",
    "ai.telemetry.metadata.sessionId",
    "ai.settings.context.sessionId",
    "mastra.metadata.sessionId",
    _SPRING,
)
_NO_SESSION = "default"
"""The conversation of Spring AI's clients that name none; many users share it."""
_USER = (
    "user.id",
    "enduser.id",
    "traceloop.association.properties.user_id",
    "langsmith.metadata.user_id",
    "langfuse.user.id",
    "mlflow.trace.user",
    "ai.telemetry.metadata.userId",
    "ai.settings.context.userId",
    "mastra.metadata.userId",
    "mastra.metadata.resourceId",
)
_ANY_USER = frozenset(_USER)
_AGENT = ("gen_ai.agent.name", "agent.name", "agent_name", "graph.node.id", "recipient_agent_name")
_LANGCHAIN_AGENT = ("langsmith.metadata.lc_agent_name", "traceloop.association.properties.lc_agent_name")
_EVENT_AGENT = re.compile(r"""current_agent_name='([^'"\\]{1,256})'\)"\}\Z""")
"""The end of a step's input in a workflow of LlamaIndex: Python's text of the event, whose last field is the agent."""
_AGENT_CLASSES = ("CodeAgent", "ToolCallingAgent", "MultiStepAgent")
"""The classes of smolagents' agents: the class stands in the name of a span where the agent has no name."""
_RESPONSE = "resp_"
"""The beginning of the ids of OpenAI's responses; Microsoft's Agent Framework writes that of the last one as the
conversation, so that each turn has another one."""
MAX_ID_CHARS = 1_024
MAX_NAME_CHARS = MAX_SHORT_CHARS
_THRESHOLD = re.compile("[0-9a-fA-F]{1,14}")


def session_of(nodes: Sequence[Node]) -> str:
    """Returns the session id of the outermost span that has one; empty if no span has one.

    Args:
        nodes: The spans, outer ones before inner ones.
    """
    for key in _SESSION[:3], _SESSION[3:]:
        for node in nodes:
            attributes = node.span.attributes
            found = _usable(first_text(attributes, *key))
            for other, is_none in ((_CONVERSATION, found.startswith(_RESPONSE)), (_SPRING, found == _NO_SESSION)):
                if is_none and found == first_text(attributes, other):
                    found = _usable(first_text(attributes, *(each for each in key if each != other)))
            if found:
                return found
    for node in nodes:
        found = in_metadata(node.span.attributes, "session_id", "thread_id")
        if found:
            return found
    return next((found for node in nodes if (found := _usable(first_text(node.span.resource, "session.id")))), "")


def user_of(nodes: Sequence[Node]) -> str:
    """Returns the id of the user from the outermost span that has one; empty if no span has one."""
    for node in nodes:
        attributes = node.span.attributes
        told = "" if _ANY_USER.isdisjoint(attributes) else _usable(first_text(attributes, *_USER))
        found = told or in_metadata(attributes, "user_id")
        if found:
            return found
        for event in node.span.events:
            if found := _usable(first_text(event.attributes, *_USER)):
                return found
    for node in nodes:
        if node.kind not in ("chain", "workflow", "agent"):
            continue
        request = node.span.attributes.get("input.value")
        value = decoded(request) if isinstance(request, str) and '"user_id"' in request else None
        if isinstance(value, dict) and isinstance(value.get("user_id"), str):
            return _usable(value["user_id"])
    return ""


def _usable(text: str) -> str:
    usable = len(text) <= MAX_ID_CHARS and text.isprintable() and not is_hidden(text)
    return text if usable else ""


def in_metadata(attributes: Attributes, *keys: str) -> str:
    """Returns the text of the first of these keys in OpenInference's attribute `metadata`; empty if it has none."""
    text = attributes.get("metadata")
    if isinstance(text, str) and any(f'"{key}"' in text for key in keys):
        value = decoded(text)
        value = decoded(value)
        if isinstance(value, dict):
            found = next((value[key] for key in keys if isinstance(value.get(key), str | int)), "")
            return _usable(str(found))
    return ""


def agent_name(node: Node) -> str:
    """Returns the name of the agent to which a span belongs: its own, or that of the nearest span above with one."""
    unread: list[Node] = []
    above: Node | None = node
    while above is not None and above.agent is None:
        unread.append(above)
        above = above.parent
    name = (above.agent if above is not None else "") or ""
    for each in reversed(unread):
        name = own_agent_name(each) or name
        each.agent = name  # kept, so that deep traces are not climbed again from each span
    return name


def own_agent_name(node: Node) -> str:
    """Returns the name of the agent that a span itself tells; empty if it tells none."""
    attributes = node.span.attributes
    name = first_text(attributes, *_AGENT) or first_text(attributes, *_LANGCHAIN_AGENT)
    name = name or in_metadata(attributes, "lc_agent_name")
    if not name and node.kind == "chain":
        step = attributes.get("input.value")
        found = _EVENT_AGENT.search(step, max(len(step) - 512, 0)) if isinstance(step, str) else None
        name = found[1] if found else ""
    if not name and node.kind == "agent":
        name = haystack.agent_of(attributes)
        text = node.span.name
        while text.startswith("invoke_agent "):
            text = text.removeprefix("invoke_agent ")
            name = text
        if text.startswith("agent_run [") and text.endswith("]"):
            name = text.removeprefix("agent_run [").removesuffix("]")
        if text.startswith("langchain4j.aiservices."):  # Quarkus: the class and the method of the service
            name = text.removeprefix("langchain4j.aiservices.")
        name = name or first_text(attributes, "traceloop.entity.name", "ai.telemetry.functionId")
        if not name and ("mlflow.spanType" in attributes or "langfuse.observation.type" in attributes):
            name = node.span.name
        if not name and "openinference.span.kind" in attributes and text.endswith(".run"):
            called = text.removesuffix(".run")
            name = "" if called in _AGENT_CLASSES else called
    if not name and _is_graph(node):
        name = node.span.name
    while name.startswith("invoke_agent "):  # MLflow puts the operation before each name
        name = name.removeprefix("invoke_agent ")
    return name[:MAX_NAME_CHARS]


def _is_graph(node: Node) -> bool:
    """Returns whether a span is a whole graph of LangGraph, and no node of one, and its name is not the default."""
    if node.kind not in ("agent", "chain") or node.span.name == "LangGraph":
        return False
    attributes = node.span.attributes
    if in_metadata(attributes, "ls_integration") == "langgraph":
        return not in_metadata(attributes, "langgraph_node")
    prefix = "langsmith.metadata."
    return attributes.get(f"{prefix}ls_integration") == "langgraph" and f"{prefix}langgraph_node" not in attributes


def app_of(span: Span) -> str:
    """Returns the name of the service; empty if the SDK made the name up."""
    name = first_text(span.resource, "service.name")
    return "" if name.startswith("unknown_service") else name[:MAX_NAME_CHARS]


def dimensions(root: Span, nodes: Iterable[Node], agent: str, model: str, user: str) -> dict[str, Any]:
    """Returns the known fields by which scores can be grouped."""
    version = next((v for node in nodes if (v := first_text(node.span.attributes, "gen_ai.agent.version"))), "")
    fields: dict[str, Any] = {
        "app_name": app_of(root),
        "agent_name": agent,
        "agent_version": (version or first_text(root.resource, "service.version"))[:MAX_NAME_CHARS],
        "environment": _environment(root)[:MAX_NAME_CHARS],
        "model": model[:MAX_NAME_CHARS],
        "user_id": user,
    }
    known: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if labels := labels_of(root):
        known["labels"] = labels
    known["trace_context"] = {"trace_id": root.trace_id, "span_id": root.span_id}
    probability = sampling_probability(root)
    if probability is not None:
        known["sampling_probability"] = probability
    return known


def _environment(root: Span) -> str:
    found = first_text(root.resource, "deployment.environment.name", "deployment.environment", "langfuse.environment")
    return found or first_text(root.attributes, "langfuse.environment")


def sampling_probability(span: Span) -> float | None:
    """Returns the probability with which a span was sampled, in (0, 1]; None if nothing tells it.

    A consistent sampler writes the threshold of rejection as hexadecimal digits of a fraction: `ot=th:8` rejects half.
    """
    for member in span.trace_state.split(","):
        name, _, value = member.strip().partition("=")
        if name == "ot":
            for part in value.split(";"):
                key, _, digits = part.partition(":")
                if key == "th" and _THRESHOLD.fullmatch(digits):
                    probability = 1.0 - int(digits, 16) / float(1 << 4 * len(digits))
                    if probability > 0:  # the smallest probabilities are rounded to 0
                        return probability
    for key in ("sampling.probability", "sampling_probability", "sampler.probability", "SampleRate"):
        rate = span.attributes.get(key)
        if isinstance(rate, int | float) and not isinstance(rate, bool) and math.isfinite(rate) and rate > 0:
            probability = 1.0 / rate if key == "SampleRate" else float(rate)
            if 0 < probability <= 1:
                return probability
    return None
