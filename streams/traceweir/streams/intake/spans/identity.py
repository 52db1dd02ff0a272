"""Finds to whom spans belong: the session, the user, the app, the agent, and how they were sampled."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from traceweir.schemas.dimensions import MAX_SHORT_CHARS
from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.conventions import hooks_of, keys_of
from traceweir.streams.intake.spans.key_sets import keys_there
from traceweir.streams.intake.spans.labels import labels_of
from traceweir.streams.intake.spans.metadata import usable_id
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.tree import Node

_SESSIONS = (keys_there(keys_of(lambda each: each.shared_sessions)), keys_there(keys_of(lambda each: each.sessions)))
_NO_SESSIONS = hooks_of(lambda each: each.no_session)
_USER = keys_of(lambda each: each.users)
_ANY_USER = frozenset(_USER)
_SESSIONS_OF = hooks_of(lambda each: each.session_of)
_USERS_OF = hooks_of(lambda each: each.user_of)
_USERS_IN_REQUESTS = hooks_of(lambda each: each.user_in_request)
_DEPLOYMENT = ("deployment.environment.name", "deployment.environment")
_ENVIRONMENT = keys_of(lambda each: each.environments)
_VERSION = "gen_ai.agent.version"
_APPS = keys_of(lambda each: each.apps)
_ANY_APP = frozenset(_APPS)
_AGENT = keys_there(keys_of(lambda each: each.agents))
MAX_NAME_CHARS = MAX_SHORT_CHARS
_OPERATIONS = re.compile("(?:invoke_agent )+")
"""The operation of the standard, which some put before each name, and others before that again."""
_THRESHOLD = re.compile("[0-9a-fA-F]{1,14}")


def _agents_of(kind: Kind) -> tuple[Callable[[Span], str], ...]:
    return hooks_of(lambda each: each.agent_of.get(kind))


_AGENTS_OF = {kind: _agents_of(kind) for kind in get_args(Kind)}


def session_of(nodes: Sequence[Node]) -> str:
    """Returns the session id of the outermost span that has one; empty if no span has one.

    Args:
        nodes: The spans, outer ones before inner ones.
    """
    for keys in _SESSIONS:
        for node in nodes:
            if found := _session_in(node.span, keys.of(node.span.key_set)):
                return found
    for node in nodes:
        if found := next((session for tell in _SESSIONS_OF if (session := tell(node.span.attributes))), ""):
            return found
    return next((found for node in nodes if (found := usable_id(first_text(node.span.resource, "session.id")))), "")


def user_of(nodes: Sequence[Node]) -> str:
    """Returns the id of the user from the outermost span that has one; empty if no span has one."""
    for node in nodes:
        attributes = node.span.attributes
        user_id = "" if _ANY_USER.isdisjoint(attributes) else usable_id(first_text(attributes, *_USER))
        found = user_id or next((user for tell in _USERS_OF if (user := tell(attributes))), "")
        if found:
            return found
        for event in node.span.events:
            if found := usable_id(first_text(event.attributes, *_USER)):
                return found
    for node in nodes:
        if node.kind not in ("chain", "workflow", "agent"):
            continue
        for tell_user in _USERS_IN_REQUESTS:
            if (asking := tell_user(node.span.attributes)) is not None:
                return usable_id(asking)
    return ""


def _session_in(span: Span, keys: tuple[str, ...]) -> str:
    attributes = span.attributes
    found = usable_id(first_text(attributes, *keys)) if keys else ""
    if not found:
        return ""
    refused = {key for no_session in _NO_SESSIONS if (key := no_session(attributes))}
    if refused.isdisjoint(keys):
        return found
    return usable_id(first_text(attributes, *(key for key in keys if key not in refused)))


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
        # Kept, so that deep traces are not climbed again from each span.
        each.agent = name
    return name


def own_agent_name(node: Node) -> str:
    """Returns the name of the agent that a span itself tells; empty if it tells none."""
    name = first_text(node.span.attributes, *_AGENT.of(node.span.key_set))
    for tell in () if name else _AGENTS_OF[node.kind]:
        if name := tell(node.span):
            break
    begin = _OPERATIONS.match(name)
    return name[begin.end() if begin else 0 :][:MAX_NAME_CHARS]


def app_of(spans: Sequence[Span]) -> str:
    """Returns the name of the service, else of the application that the framework tells; empty if both are unknown.

    Args:
        spans: The spans, the one first whose service counts.
    """
    service = first_text(spans[0].resource, "service.name")
    # Which the SDK has made up.
    if service and not service.startswith("unknown_service"):
        return service[:MAX_NAME_CHARS]
    places = (place for each in spans for place in (each.resource, each.attributes))
    names = (first_text(place, *_APPS) for place in places if not _ANY_APP.isdisjoint(place))
    return next(filter(None, names), "")[:MAX_NAME_CHARS]


def dimensions(
    around: Sequence[Span], nodes: Iterable[Node], app: str, agent: str, model: str, user: str
) -> dict[str, Any]:
    """Returns the known fields by which scores can be grouped.

    Args:
        around: The outermost span of the invocation, then those above it, such as the span of a conversation.
        nodes: All spans of the invocation.
        app: Name of the application.
        agent: Name of the agent.
        model: Name of the model.
        user: Id of the user.
    """
    root = around[0]
    telling = (node.span.attributes for node in nodes if _VERSION in node.span.attributes)
    version = next((found for each in telling if (found := first_text(each, _VERSION))), "")
    fields: dict[str, Any] = {
        "app_name": app,
        "agent_name": agent,
        "agent_version": (version or first_text(root.resource, "service.version"))[:MAX_NAME_CHARS],
        "environment": next(filter(None, map(_environment, around)), "")[:MAX_NAME_CHARS],
        "model": model[:MAX_NAME_CHARS],
        "user_id": user,
    }
    known: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if labels := labels_of(around):
        known["labels"] = labels
    known["trace_context"] = {"trace_id": root.trace_id, "span_id": root.span_id}
    probability = sampling_probability(root)
    if probability is not None:
        known["sampling_probability"] = probability
    return known


def _environment(root: Span) -> str:
    return first_text(root.resource, *_DEPLOYMENT, *_ENVIRONMENT) or first_text(root.attributes, *_ENVIRONMENT)


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
                    # The smallest probabilities are rounded to 0.
                    if probability > 0:
                        return probability
    for key in ("sampling.probability", "sampling_probability", "sampler.probability", "SampleRate"):
        rate = span.attributes.get(key)
        if isinstance(rate, int | float) and not isinstance(rate, bool) and math.isfinite(rate) and rate > 0:
            probability = 1.0 / rate if key == "SampleRate" else float(rate)
            if 0 < probability <= 1:
                return probability
    return None
