"""Finds the run of a tool for each call that a model asked for; each run belongs to one call."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence, Set
from itertools import islice

from traceweir.streams.intake.spans.attributes import ABSENT, args_text
from traceweir.streams.intake.spans.message import RequestedCall
from traceweir.streams.intake.spans.tool_spans import ToolRun
from traceweir.streams.intake.spans.tree import Node
from traceweir.streams.intake.spans.waiting import Waiting

_SERVER = re.compile(r"\A.*(?:__|[./:])")
"""What clients put before the name of a server's tool: `mcp__shop__look`, `shop.look`."""
_MAX_COMPARED = 64
"""Maximum number of runs with which a call is compared."""


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

    def take(self, call: RequestedCall, at_ns: int, since_ns: int) -> ToolRun | None:
        """Takes the run of a call: by the id; else by name and arguments; else by name and order of start.

        An id that neither a span nor a result has is another id of the call, such as that of an item of the answer.

        Args:
            call: The call.
            at_ns: When the model asked for the call.
            since_ns: When the model began to answer; 0 if unknown.
        """
        named = self._by_id.get(call.id) if call.id else None
        if named is not None:
            # Several runs can have one id; one that ended before with other arguments is the run of a lost call.
            found = [i for i in islice(named, _MAX_COMPARED) if not self._is_earlier(i, call, since_ns)]
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
        later = [i for i in found if self._free[i][1].span.end_ns >= at_ns] or found
        equal = (i for i in later if self._free[i][1].args == call.args)
        return self._taken(next(equal, later[0] if later else None))

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


def asked_name(run: ToolRun) -> str:
    """Returns the name under which a model asks for a span's tool."""
    return run.handoff or run.name
