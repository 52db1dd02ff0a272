"""Finds the invocations of a trace: the outermost agents and workflows, or else the model calls."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from traceweir.streams.intake.spans.conventions import keys_of
from traceweir.streams.intake.spans.tree import Node, below

_FRAMES = ("agent", "workflow", "chain")
_WORK = ("llm", "tool", "retriever", "agent")
_CONTENT = keys_of(lambda each: each.contents)


@dataclass(slots=True)
class TurnSpans:
    """The spans of one invocation."""

    roots: list[Node]
    """The outermost spans; several if two instrumentations recorded the same, or if the model calls have no agent."""
    nodes: list[Node]
    """All spans, in the order of their start."""
    bare: bool
    """Whether model calls without an agent are the invocation."""
    start_ns: int = field(init=False)
    """When the invocation began."""
    end_ns: int = field(init=False)
    """When the invocation ended."""

    @property
    def is_fragment(self) -> bool:
        """Whether the spans above all outermost steps are missing, so that no span tells of the turn as a whole."""
        return all(_is_fragment(root) for root in self.roots)

    @property
    def failed(self) -> bool:
        """Whether the invocation failed: its outermost spans did, or the last of the model calls that are its outermost spans.

        Without a span around them, a tool that failed and a call that was tried again do not decide: the model went on.
        """
        models = [root for root in self.roots if root.kind == "llm"] if self.bare else []
        deciding = [max(models, key=lambda each: each.span.end_ns)] if models else self.roots
        return any(root.span.status == "ERROR" for root in deciding)

    def __post_init__(self) -> None:
        self.start_ns = min((node.span.start_ns for node in self.roots if node.span.start_ns), default=0)
        self.end_ns = max(node.span.end_ns for node in self.roots)


def find_turns(roots: list[Node]) -> list[TurnSpans]:
    """Returns the invocations in the order of their start."""
    everything = below(roots)
    works = {id(node) for node in everything if _works(node)}
    for node in reversed(everything):
        if node.parent is not None and id(node) in works:
            works.add(id(node.parent))
    frames: list[Node] = []
    bare: list[Node] = []
    waiting = [node for node in roots if node.kind != "judge"]
    for node in waiting:
        if id(node) not in works:
            continue
        if node.kind in _FRAMES:
            frames.append(node)
        elif node.kind in _WORK:
            bare.append(node)
        else:
            waiting.extend(child for child in node.children if child.kind != "judge")
    frames.sort(key=lambda node: node.order)
    groups = _doubles([node for node in frames if not _is_fragment(node)])
    _join_fragments(groups, [node for node in frames if _is_fragment(node)])
    turns = [_turn(group, bare=False) for group in groups]
    if not turns and any(node.kind == "llm" for node in below(bare)):
        turns.append(_turn(bare, bare=True))
    return sorted(turns, key=lambda turn: turn.roots[0].order)


def _is_fragment(node: Node) -> bool:
    """Returns whether a step has lost the spans above it: the trace is not complete, and the step is no invocation."""
    return node.kind == "chain" and node.parent is None and bool(node.span.parent_id)


def _join_fragments(groups: list[list[Node]], fragments: list[Node]) -> None:
    """Adds each fragment to the invocation that began last before it; without an invocation, all fragments are one."""
    if fragments and not groups:
        groups.append(fragments)
        return
    begins = [group[0].order for group in groups]
    for node in fragments:
        groups[max(bisect_right(begins, node.order) - 1, 0)].append(node)


def _works(node: Node) -> bool:
    """Returns whether a span is work of an agent; an agent's own span is, if it has something to tell."""
    if node.kind == "agent":
        has_content = any(key in node.span.attributes for key in _CONTENT)
        return has_content or bool(node.span.events) or node.span.status == "ERROR"
    if _is_fragment(node) and node.span.status == "ERROR":
        # The failure of the turn, which the lost span would tell.
        return True
    return node.kind in _WORK


def _turn(roots: list[Node], *, bare: bool) -> TurnSpans:
    ordered = sorted(roots, key=lambda node: node.order)
    return TurnSpans(ordered, sorted(below(ordered), key=lambda node: node.order), bare)


def _doubles(frames: list[Node]) -> list[list[Node]]:
    """Groups the outermost spans of two instrumentations that recorded the same at the same time."""
    groups: list[list[Node]] = []
    for node in frames:
        first = groups[-1][0].span if groups else None
        if first is not None and _overlap(first.start_ns, first.end_ns, node) and first.scope != node.span.scope:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _overlap(start_ns: int, end_ns: int, node: Node) -> bool:
    """Returns whether a span lies for at least nine tenths within the interval, or the interval within the span."""
    common = min(end_ns, node.span.end_ns) - max(start_ns, node.span.start_ns)
    shorter = min(end_ns - start_ns, node.span.end_ns - node.span.start_ns)
    longer = max(end_ns - start_ns, node.span.end_ns - node.span.start_ns)
    return common > 0 and common >= 0.9 * shorter and shorter >= 0.5 * longer
