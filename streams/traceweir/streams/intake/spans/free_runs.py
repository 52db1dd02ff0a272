"""Finds the run of a tool for each call that a model asked for; each run belongs to one call."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice
from typing import Any

from traceweir.streams.intake.spans.asked_calls import AskedCall
from traceweir.streams.intake.spans.attributes import ABSENT, args_text, text_of
from traceweir.streams.intake.spans.message import RequestedCall
from traceweir.streams.intake.spans.tool_spans import ToolRun
from traceweir.streams.intake.spans.tree import Node
from traceweir.streams.intake.spans.waiting import Waiting

_SERVER = re.compile(r"\A.*(?:__|[./:])")
"""What clients put before the name of a server's tool: `mcp__shop__look`, `shop.look`."""
_MAX_COMPARED = 64
"""Maximum number of runs with which a call is compared."""
_MAX_ABOVE = 64
"""Maximum number of spans above a run that are looked at."""


class FreeRuns:
    """The runs of tools that belong to no call yet.

    Args:
        runs: The runs, in the order of their start.
        asked_ids: The ids of all calls that models asked for.
        answered: The ids of all results that models read.
        repeated: The ids of several calls.
    """

    def __init__(
        self, runs: Sequence[tuple[Node, ToolRun]], asked_ids: Set[str], answered: Set[str], repeated: Set[str]
    ) -> None:
        self.undecided: set[int] = set()
        """The identities of the runs that began together, and of which nothing tells which is that of which call."""
        self._free = dict(enumerate(runs))
        self._asked_ids = asked_ids
        self._answered = answered
        self._by_id: dict[str, OrderedDict[int, None]] = {}
        self._by_name: dict[str, OrderedDict[int, None]] = {}
        self._of_repeated: Waiting[int] = Waiting()
        for index, (_, run) in self._free.items():
            self._by_name.setdefault(asked_name(run), OrderedDict())[index] = None
            if run.call_id:
                self._by_id.setdefault(run.call_id, OrderedDict())[index] = None
            if run.call_id in repeated and run.args is not ABSENT:
                self._of_repeated.add(index, (run.call_id, asked_name(run), args_text(run.args)))

    def __iter__(self) -> Iterator[tuple[Node, ToolRun]]:
        """Yields the runs that are left."""
        return iter(self._free.values())

    def take_same(self, call: RequestedCall) -> ToolRun | None:
        """Takes the first run with the repeated id, the name and the arguments of a call, if there is one."""
        return self._taken(self._of_repeated.take((call.id, call.name, args_text(call.args))))

    def take(self, asked: AskedCall, recorded: Callable[[], Any]) -> ToolRun | None:
        """Takes the run of a call: by the id; else by name and arguments; else by name, result and order of start.

        An id that neither a span nor a result has is another id of the call, such as that of an item of the answer.
        Of several runs, those count that share the nearest span above with the model call: agents that work at the same
        time call the same tools.

        Args:
            asked: The call, as the model asked for it.
            recorded: Returns the result of the call that a model read; ABSENT if none did.
        """
        call = asked.call
        named = self._by_id.get(call.id) if call.id else None
        if named is not None:
            # Several runs can have one id; one that ended before with other arguments is the run of a lost call.
            found = [i for i in islice(named, _MAX_COMPARED) if not self._is_earlier(i, call, asked.since_ns)]
        else:
            found = list(islice(self._by_name.get(call.name, ()), _MAX_COMPARED)) or self._of_server(call.name)
            is_other_id = bool(call.id) and call.id not in self._answered
            found = [
                i
                for i in found
                if not (run := self._free[i][1]).call_id
                or (
                    run.call_id not in self._asked_ids
                    and (not call.id or (is_other_id and run.args in (ABSENT, call.args)))
                )
            ]
        later = [i for i in found if self._free[i][1].span.end_ns >= asked.at_ns] or found
        near = self._nearest(later, asked.node)
        equal = [i for i in near if self._free[i][1].args == call.args]
        equal = equal or [i for i in later if self._free[i][1].args == call.args]
        index = equal[0] if len(equal) < 2 and equal else self._with_result(equal, recorded)
        if index is None and equal:
            # Runs of equal calls can be exchanged.
            index = equal[0]
        if index is None and len(near) > 1 and isinstance(call.args, dict) and call.args:
            # Some frameworks add arguments that the model does not write.
            index = next((i for i in near if _contains(self._free[i][1].args, call.args)), None)
        return self._taken(self._first(near, recorded) if index is None else index)

    def _nearest(self, found: list[int], node: Node) -> list[int]:
        """Returns the runs that share the nearest span above with a model call; all if none shares one."""
        free = self._free
        parent = free[found[0]][0].parent if found else None
        for index in found:
            if free[index][0].parent is not parent:
                break
        else:
            # As most are.
            return found
        place_of: dict[int, int] = {}
        above: Node | None = node
        while above is not None and len(place_of) < _MAX_ABOVE:
            place_of[id(above)] = len(place_of)
            above = above.parent
        nearest = _MAX_ABOVE
        near: list[int] = []
        for index in found:
            each: Node | None = free[index][0]
            climbed = 0
            while each is not None and climbed < _MAX_ABOVE and id(each) not in place_of:
                each = each.parent
                climbed += 1
            place = _MAX_ABOVE if each is None else place_of.get(id(each), _MAX_ABOVE)
            if place < nearest:
                nearest = place
                near = []
            if place == nearest:
                near.append(index)
        return near

    def _first(self, found: list[int], recorded: Callable[[], Any]) -> int | None:
        """Returns the run with the result that a model read; else the one that began first."""
        if len(found) < 2:
            return found[0] if found else None
        if (index := self._with_result(found, recorded)) is not None:
            return index
        runs = [self._free[index][1] for index in found]
        together = [run for run in runs if run.span.start_ns == runs[0].span.start_ns]
        outcomes = [(run.result, run.error) for run in together]
        if any(each != outcomes[0] for each in outcomes):
            self.undecided |= {id(run) for run in together}
        return found[0]

    def _with_result(self, found: Sequence[int], recorded: Callable[[], Any]) -> int | None:
        """Returns the first run with the result that a model read; None without one."""
        if not found or (value := recorded()) is ABSENT:
            return None
        text = text_of(value)
        results = ((index, self._free[index][1].result) for index in found)
        return next((index for index, result in results if result is not ABSENT and text_of(result) == text), None)

    def _of_server(self, name: str) -> list[int]:
        """Returns the runs of an MCP server's tool, before whose name clients put that of the server."""
        own = _SERVER.sub("", name)
        runs = islice(self._by_name.get(own, ()), _MAX_COMPARED) if own != name else ()
        return [index for index in runs if self._free[index][1].is_server_call]

    def _is_earlier(self, index: int, call: RequestedCall, since_ns: int) -> bool:
        run = self._free[index][1]
        differs = isinstance(run.args, dict) and isinstance(call.args, dict) and run.args != call.args
        return differs and 0 < run.span.end_ns <= since_ns

    def _taken(self, index: int | None) -> ToolRun | None:
        if index is None:
            return None
        _, run = self._free.pop(index)
        del self._by_name[asked_name(run)][index]
        if run.call_id:
            del self._by_id[run.call_id][index]
        return run


def _contains(args: Any, asked: dict[str, Any]) -> bool:
    return isinstance(args, dict) and all(key in args and args[key] == value for key, value in asked.items())


def asked_name(run: ToolRun) -> str:
    """Returns the name under which a model asks for a span's tool."""
    return run.handoff or run.name
