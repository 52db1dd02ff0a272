"""Finds the invocations of a trace: the outermost agents and workflows, or else the model calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from traceweir.streams.intake.spans.conventions import keys_of
from traceweir.streams.intake.spans.conversations import (
    SpanStep,
    goes_on,
    is_turn,
    turns_below,
    turns_without_agent,
)
from traceweir.streams.intake.spans.interrupts import has_error, waits_for_person
from traceweir.streams.intake.spans.key_sets import keys_there
from traceweir.streams.intake.spans.tree import Node, below

_FRAMES = ("agent", "workflow", "chain")
_WORK = ("llm", "tool", "retriever", "agent")
_MAX_ABOVE = 16
_CONTENT = keys_there((*keys_of(lambda each: each.contents), *keys_of(lambda each: each.histories)))


@dataclass(slots=True)
class TurnSpans:
    """The spans of one invocation."""

    roots: list[Node]
    """The outermost spans; several if two instrumentations recorded the same, if several agents in turn served the same
    message of the user, or if the model calls have no agent."""
    beside: list[Node]
    """Outermost spans of steps that are beside those of the agents, though they belong to their work."""
    bare: bool
    """Whether model calls without an agent are the invocation."""
    is_fragment: bool = field(init=False)
    """Whether the spans above all outermost steps are missing, so that no span tells of the turn as a whole."""
    nodes: list[Node] = field(init=False)
    """All spans, in the order of their start."""
    start_ns: int = field(init=False)
    """When the invocation began."""
    end_ns: int = field(init=False)
    """When the invocation ended."""
    _outermost_beside: set[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.roots.sort(key=lambda node: node.order)
        self.is_fragment = all(_is_fragment(root) for root in self.roots)
        self.add([])

    def add(self, beside: Iterable[Node]) -> None:
        """Adds steps that are beside the agents."""
        self.beside += beside
        self._outermost_beside = {id(each) for each in self.beside}
        self.nodes = sorted(below([*self.roots, *self.beside]), key=lambda node: node.order)
        self.start_ns = min((node.span.start_ns for node in self.roots if node.span.start_ns), default=0)
        self.end_ns = max(node.span.end_ns for node in (*self.roots, *self.beside))

    def is_beside(self, node: Node) -> bool:
        """Returns whether a node is one of the steps beside the agents, or below one."""
        above: Node | None = node if self._outermost_beside else None
        while above is not None and id(above) not in self._outermost_beside:
            above = above.parent
        return above is not None

    @property
    def in_conversation(self) -> bool:
        """Whether the invocation is a turn of a conversation, of which earlier turns can have been in other readings."""
        return is_turn(self.roots[0])

    @property
    def above(self) -> list[Node]:
        """The spans around the invocation, the inner ones first; at most 16."""
        found: list[Node] = []
        node = self.roots[0].parent
        while node is not None and len(found) < _MAX_ABOVE:
            found.append(node)
            node = node.parent
        return found

    @property
    def has_lost_spans(self) -> bool:
        """Whether a span above the invocation is not in the trace, or not yet."""
        return any(_is_orphan(root) for root in self.roots)

    @property
    def last_roots(self) -> list[Node]:
        """The outermost spans without the agents after whose end another agent went on with the same message."""
        begins = [root.span.start_ns for root in self.roots if not _is_fragment(root)]
        last = max(begins, default=0)
        return [
            root for root in self.roots if _is_fragment(root) or root.span.end_ns > last or root.span.start_ns == last
        ]

    @property
    def failed(self) -> bool:
        """Whether the invocation failed: its outermost spans did, or the last of the model calls that are its outermost spans.

        Without a span around them, a tool that failed and a call that was tried again do not decide: the model went on.
        """
        models = [root for root in self.roots if root.kind == "llm"] if self.bare else []
        others = self.roots if self.bare else self.last_roots
        deciding = [max(models, key=lambda each: each.span.end_ns)] if models else others
        return any(has_error(root.span) for root in deciding)


def find_turns(roots: list[Node]) -> list[TurnSpans]:
    """Returns the invocations in the order of their start."""
    works = _works_with_all_above(below(roots))
    steps = _outermost(roots, works)
    frames = sorted((node for node in steps if node.kind in _FRAMES), key=lambda node: node.order)
    others = [node for node in steps if node.kind not in _FRAMES]
    if not frames:
        if not any(node.kind == "llm" for node in below(others)):
            return []
        return [TurnSpans(nodes, [], bare=True) for nodes in turns_without_agent(others)]
    groups = _doubles([node for node in frames if not _is_fragment(node)])
    agents_around = _agents_around(groups)
    groups = [group for group in groups if id(group[0]) not in agents_around]
    _join_fragments(groups, [node for node in frames if _is_fragment(node)])
    turns = [turn for group in _joined(groups) for turn in _turns_of(group, works)]
    turns.sort(key=lambda turn: turn.roots[0].order)
    turn_of = {id(node): turn for turn in turns for node in turn.nodes} if agents_around else {}
    for inner, agent in agents_around.values():
        if (turn := turn_of.get(id(agent))) is not None:
            turn.add(inner)
        else:
            others += inner
    for turn, beside in _beside(turns, others):
        turn.add(beside)
    return turns


def _outermost(roots: Iterable[Node], works: set[int]) -> list[Node]:
    """Returns the outermost agents, workflows and steps."""
    found: list[Node] = []
    waiting = [node for node in roots if node.kind != "judge"]
    for node in waiting:
        if id(node) not in works:
            continue
        if node.kind in _FRAMES or node.kind in _WORK:
            found.append(node)
        else:
            waiting.extend(child for child in node.children if child.kind != "judge")
    return found


def _works_with_all_above(everything: list[Node]) -> set[int]:
    """Returns the identities of the nodes that are work of an agent, or have such work below them."""
    works = {id(node) for node in everything if _works(node)}
    for node in reversed(everything):
        if node.parent is not None and id(node) in works:
            works.add(id(node.parent))
    return works


def _turns_of(group: list[Node], works: set[int]) -> Iterator[TurnSpans]:
    """Yields the turns of outermost spans: several if they last a conversation."""
    root = group[0]
    if len(group) == 1 and not _is_fragment(root):
        steps = _outermost(root.children, works)
        turns = turns_below(root, steps)
        if len(turns) > 1:
            for nodes in turns:
                frames = [node for node in nodes if node.kind in _FRAMES]
                beside = [node for node in nodes if node.kind not in _FRAMES]
                yield TurnSpans(frames, beside, bare=False) if frames else TurnSpans(beside, [], bare=True)
            return
    yield TurnSpans(group, [], bare=False)


def _joined(groups: list[list[Node]]) -> list[list[Node]]:
    """Joins the outermost spans that serve the same message of the user one after the other."""
    if len(groups) < 2:
        return groups
    joined: list[list[Node]] = []
    of_turn: list[SpanStep] = []
    for group in groups:
        step = SpanStep.of(group[0])
        if of_turn and goes_on(of_turn, step):
            joined[-1] += group
            of_turn.append(step)
        else:
            joined.append(group)
            of_turn = [step]
    return joined


def _beside(turns: list[TurnSpans], others: Iterable[Node]) -> Iterator[tuple[TurnSpans, list[Node]]]:
    """Yields the turns to which steps beside their agents belong: those that began last before the steps."""
    begins = [turn.roots[0].order for turn in turns]
    found: dict[int, list[Node]] = {}
    for node in others:
        found.setdefault(max(bisect_right(begins, node.order) - 1, 0), []).append(node)
    for place, nodes in found.items():
        yield turns[place], nodes


def _is_fragment(node: Node) -> bool:
    """Returns whether a step has lost the spans above it: the trace is not complete, and the step is no invocation."""
    return node.kind == "chain" and _is_orphan(node)


def _agents_around(groups: list[list[Node]]) -> dict[int, tuple[list[Node], Node]]:
    """Returns the groups that work for an agent of another one, by the identity of their first node, with that agent.

    Without the span of the tool that called it, a sub-agent would be an invocation. It works for the agent that ran
    when it did; if agents of several groups did, nothing tells for which.
    """
    orphans = [group for group in groups if all(_is_orphan(node) and not is_turn(node) for node in group)]
    if not orphans:
        return {}
    agents = [
        (node, number)
        for number, group in enumerate(groups)
        for node in below(each for each in group if not _is_orphan(each))
        if node.kind == "agent"
    ]
    agents.sort(key=lambda found: found[0].order)
    begins = [node.span.start_ns for node, _ in agents]
    # Of the agents up to each one: the one that ended last, and the end of the last one of another group.
    last: list[tuple[Node, int]] = []
    best: tuple[Node, int] | None = None
    other_end_ns = -1
    for node, number in agents:
        if best is None:
            best = (node, number)
        elif node.span.end_ns >= best[0].span.end_ns:
            other_end_ns = other_end_ns if number == best[1] else best[0].span.end_ns
            best = (node, number)
        elif number != best[1]:
            other_end_ns = max(other_end_ns, node.span.end_ns)
        last.append((best[0], other_end_ns))
    found: dict[int, tuple[list[Node], Node]] = {}
    for group in orphans:
        place = bisect_right(begins, group[0].span.start_ns) - 1
        if place < 0:
            continue
        agent, other_end_ns = last[place]
        if other_end_ns < group[0].span.end_ns <= agent.span.end_ns:
            found[id(group[0])] = group, agent
    return found


def _is_orphan(node: Node) -> bool:
    """Returns whether the span above a node is not in the trace."""
    return node.parent is None and bool(node.span.parent_id)


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
        has_content = bool(_CONTENT.of(node.span.key_set))
        return has_content or bool(node.span.events) or node.span.status == "ERROR"
    if _is_fragment(node) and node.span.status == "ERROR":
        # The failure of the turn, which the lost span would tell.
        return True
    return node.kind in _WORK or waits_for_person(node.span)


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
