"""Reads the runs of tools from their spans: each run once, also if several spans tell of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traceweir.streams.intake.spans.attributes import ABSENT, args_text
from traceweir.streams.intake.spans.conventions import hooks_of, keys_of
from traceweir.streams.intake.spans.tool_spans import ToolRun, read_tool
from traceweir.streams.intake.spans.tree import Node

_NO_RUNS = frozenset(keys_of(lambda each: each.no_runs))
_ARE_NO_RUNS = hooks_of(lambda each: each.is_no_run)
_ARE_LATE_RESULTS = hooks_of(lambda each: each.is_late_result)
_MAX_OF_NAME = 8
"""Maximum number of earlier runs of a tool with which a run without a known id is compared."""
_MAX_OF_ID = 16
"""Maximum number of earlier runs with the same id with which a run is compared."""


@dataclass(slots=True, eq=False)
class _Known:
    """A run with the instrumentations that recorded it: each records a run once, or in spans inside each other."""

    node: Node
    run: ToolRun
    scopes: set[str]


def read_runs(nodes: Iterable[Node]) -> list[tuple[Node, ToolRun]]:
    """Returns what the spans of tools tell, each run once.

    Equal ids of calls alone make no run the same: models that number their calls repeat ids.

    Args:
        nodes: The spans, in the order of their start.
    """
    known: list[_Known] = []
    by_id: dict[str, list[_Known]] = {}
    by_node: dict[int, _Known] = {}
    by_name: dict[str, list[_Known]] = {}
    for node in nodes:
        if node.kind != "tool":
            continue
        run = read_tool(node.span)
        if run.name in _NO_RUNS or any(is_no_run(run.name, run.result) for is_no_run in _ARE_NO_RUNS):
            continue
        this = _Known(node, run, {run.span.scope})
        same = _around(this, by_node)
        if same is None and any(tell(node.span) for tell in _ARE_LATE_RESULTS):
            same = next(iter(by_id.get(run.call_id, [])[-1:]), None)
        if same is None and run.call_id:
            same = _with_id(this, by_id.get(run.call_id, ()))
        if same is None:
            near = by_name.get(run.name, [])[-_MAX_OF_NAME:]
            same = next((each for each in near if _is_same(each, this)), None)
        if same is None:
            same = this
            known.append(this)
            by_name.setdefault(run.name, []).append(this)
        else:
            _complete(same, this)
        by_node[id(node)] = same
        if run.call_id and (not (others := by_id.setdefault(run.call_id, [])) or others[-1] is not same):
            others.append(same)
    kept = _once_per_id(known)
    if any(each.run.waits for each in kept):
        kept = _without_interrupted(kept)
    return [(each.node, each.run) for each in kept]


def _without_interrupted(known: Iterable[_Known]) -> list[_Known]:
    """Leaves out the runs that waited for a person if the same tool began again with the same arguments."""
    kept: list[_Known] = []
    again: set[tuple[str, bytes | None]] = set()
    for each in reversed(list(known)):
        call = (each.run.name, args_text(each.run.args))
        if each.run.waits and call in again:
            continue
        again.add(call)
        kept.append(each)
    return kept[::-1]


def _once_per_id(known: Iterable[_Known]) -> list[_Known]:
    """Joins the runs of which a later span has told the id by which they are the same."""
    kept: list[_Known] = []
    by_id: dict[str, list[_Known]] = {}
    for each in known:
        others = by_id.setdefault(each.run.call_id, []) if each.run.call_id else []
        same = _with_id(each, others)
        if same is None:
            kept.append(each)
            others.append(each)
        else:
            _complete(same, each)
    return kept


def _around(this: _Known, by_node: dict[int, _Known]) -> _Known | None:
    """Returns the run of the tool's span around this one, if that is the same run recorded twice."""
    run = this.run
    each = this.node.around
    while each is not None and each.kind in ("tool", "workflow"):
        outer = by_node.get(id(each))
        if outer is not None and run.is_server_call:
            # What the tool does; the server's name of the tool can be another one.
            return outer
        if outer is not None:
            if outer.run.call_id and run.call_id:
                return outer if outer.run.call_id == run.call_id else None
            return outer if outer.run.name == run.name else None
        each = each.around
    return None


def _with_id(this: _Known, others: Sequence[_Known]) -> _Known | None:
    """Returns the run with the same id that another instrumentation recorded; None if this is another run.

    Runs at the same time come first, then those with the same arguments.
    """
    best = None
    best_rank = (2, 2)
    for each in others[-_MAX_OF_ID:]:
        if each.scopes & this.scopes:
            continue
        is_apart = not _overlap(each.run, this.run)
        if is_apart and not _may_be_equal(each.run, this.run):
            continue
        rank = (int(is_apart), int(each.run.args != this.run.args))
        if rank < best_rank:
            best = each
            best_rank = rank
    return best


def _is_same(one: _Known, other: _Known) -> bool:
    """Returns whether two instrumentations recorded the same run of a tool, of which not both tell an id."""
    if one.scopes & other.scopes or (one.run.call_id and other.run.call_id):
        return False
    return _overlap(one.run, other.run) and _may_be_equal(one.run, other.run)


def _overlap(one: ToolRun, other: ToolRun) -> bool:
    return min(one.span.end_ns, other.span.end_ns) > max(one.span.start_ns, other.span.start_ns)


def _may_be_equal(one: ToolRun, other: ToolRun) -> bool:
    return one.args is ABSENT or other.args is ABSENT or bool(one.args == other.args)


def _complete(known: _Known, other: _Known) -> None:
    """Adds to a run what another span of the same run tells."""
    run = known.run
    other_run = other.run
    known.scopes |= other.scopes
    run.call_id = run.call_id or other_run.call_id
    if run.args is ABSENT or (not isinstance(run.args, dict) and isinstance(other_run.args, dict)):
        run.args = other_run.args
    # A tool can call a server and live with its error; the tool's own span tells whether the tool failed.
    is_lived_with = other_run.is_server_call and (run.result is not ABSENT or run.error is not None)
    run.result = other_run.result if run.result is ABSENT else run.result
    if not is_lived_with:
        run.error = run.error or other_run.error if run.error is not None or other_run.error is not None else None
