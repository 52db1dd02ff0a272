"""Arranges the spans of a trace as trees, whatever the order in which they came, also with missing and cyclic parents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from traceweir.streams.intake.spans.kinds import kind_of
from traceweir.streams.intake.spans.span import Kind, Span, SpanEvent

_AROUND = ("llm", "tool", "agent", "workflow")


@dataclass(slots=True, eq=False)
class Node:
    """A span with its place in the trace."""

    span: Span
    kind: Kind
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    around: Node | None = None
    """The nearest model call, tool, agent or workflow above; None if there is none."""
    agent: str | None = None
    """Name of the agent to which the span belongs; None until `identity.agent_name` has read it."""

    @property
    def order(self) -> tuple[int, int, str]:
        """The key of the order of start; of two spans that start together, the one that ends last is the outer one."""
        return (self.span.start_ns, -self.span.end_ns, self.span.span_id)


def unique(spans: Iterable[Span]) -> list[Span]:
    """Returns each span once, in an order that does not depend on the order of arrival.

    Of several versions of a span the one with the most attributes and events counts, with the events and log records
    of all.
    """
    versions: dict[str, dict[int, Span]] = {}
    for span in spans:
        versions.setdefault(span.span_id, {})[id(span)] = span
    joined = (_joined(list(known.values())) for known in versions.values())
    return sorted(joined, key=lambda span: (span.start_ns, -span.end_ns, span.span_id))


def _joined(versions: list[Span]) -> Span:
    if len(versions) == 1:
        return versions[0]
    heaviest_first = sorted(versions, key=_weight, reverse=True)
    fullest = heaviest_first[0]
    known = {_identity_of(event) for event in fullest.events}
    others: dict[str, SpanEvent] = {}
    for span in heaviest_first[1:]:
        for event in span.events:
            if (identity := _identity_of(event)) not in known:
                others.setdefault(identity, event)
    return replace(fullest, events=[*fullest.events, *others.values()]) if others else fullest


def _identity_of(event: SpanEvent) -> str:
    return repr(event._replace(attributes=dict(sorted(event.attributes.items()))))


def _weight(span: Span) -> tuple[int, int, int, str]:
    return (len(span.attributes), len(span.events), span.end_ns, repr((sorted(span.attributes.items()), span.events)))


def trees(spans: list[Span]) -> list[Node]:
    """Returns the outermost nodes. A span whose parent is missing is outermost; a cycle is opened at its first span."""
    nodes = {span.span_id: Node(span, kind_of(span)) for span in spans}
    roots = [
        node for node in nodes.values() if node.span.parent_id not in nodes or node.span.parent_id == node.span.span_id
    ]
    inner: dict[str, list[Node]] = {}
    outermost = {id(node) for node in roots}
    for node in nodes.values():
        if id(node) not in outermost:
            inner.setdefault(node.span.parent_id, []).append(node)
    reached: set[int] = set()
    for root in roots:
        _link(root, inner, reached)
    for node in nodes.values():
        if id(node) not in reached:
            roots.append(node)
            _link(node, inner, reached)
    return sorted(roots, key=lambda node: node.order)


def _link(root: Node, inner: dict[str, list[Node]], reached: set[int]) -> None:
    reached.add(id(root))
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for child in inner.get(node.span.span_id, ()):
            if id(child) not in reached:
                reached.add(id(child))
                child.parent = node
                child.around = node if node.kind in _AROUND else node.around
                node.children.append(child)
                waiting.append(child)


def below(nodes: Iterable[Node]) -> list[Node]:
    """Returns the nodes and all below them, parents before children, without those that judge an agent's work."""
    found = [node for node in nodes if node.kind != "judge"]
    for node in found:
        if node.children:
            found += [child for child in node.children if child.kind != "judge"]
    return found
