"""Tells the tool calls of a run of Google ADK apart, also if the model gives several of them the same id, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from traceweir.client.invocation_record import InvocationRecord


@dataclass(slots=True, eq=False)
class _Call:
    """A call that is written. ADK tells each of these four facts at most once, in an order that is not certain."""

    call_id: str
    """The id under which the call is written."""
    name: str
    author: str = ""
    """The agent whose event told the call; empty before the event."""
    is_told: bool = False
    """Whether an event told the call."""
    context: object | None = None
    """What ADK passes to all callbacks of this call; None before the tool began."""
    is_answered: bool = False
    """Whether an event told the result."""
    is_returned: bool = False
    """Whether the result, or an error, is written."""


class AdkCalls:
    """The tool calls of one run.

    Models that number their calls repeat ids: `call_0` in each answer, or in the answers of two agents. An event or a
    callback therefore means the first call with its id of which it has not told yet.
    """

    def __init__(self, record: InvocationRecord) -> None:
        """Begins without calls.

        Args:
            record: Writes the calls.
        """
        self._record = record
        self._calls: dict[str, list[_Call]] = {}

    def note(self, name: str, args: Any, adk_id: str, author: str, model_call_id: str = "") -> None:
        """Notes a call that an event tells, and writes it if it is new.

        Args:
            name: Name of the tool.
            args: The arguments by name.
            adk_id: ADK's id of the call; can be empty.
            author: The agent that called.
            model_call_id: Id of the event, if it tells several calls; empty otherwise.
        """
        call = self._first(name, adk_id, lambda each: not each.is_told)
        call = call or self._new(name, args, adk_id, model_call_id)
        call.is_told = True
        call.author = author

    def began(self, name: str, args: Any, adk_id: str, context: object) -> None:
        """Notes that a tool begins, and writes the call if no event has told it.

        Args:
            name: Name of the tool.
            args: The arguments by name.
            adk_id: ADK's id of the call; can be empty.
            context: What ADK passes to all callbacks of this call.
        """
        call = self._first(name, adk_id, lambda each: each.context is None) or self._new(name, args, adk_id)
        call.context = context

    def failed(self, name: str, args: Any, adk_id: str, context: object, error: str) -> None:
        """Writes the error of a call, and the call itself if nothing has told it.

        Args:
            name: Name of the tool.
            args: The arguments by name.
            adk_id: ADK's id of the call; can be empty.
            context: What ADK passes to all callbacks of this call.
            error: The message.
        """
        call = self._first(name, adk_id, lambda each: each.context is context)
        if call is None:
            self.began(name, args, adk_id, context)
            call = self._first(name, adk_id, lambda each: each.context is context)
        if call is not None:
            self._return(call, None, error)

    def answered(self, name: str, adk_id: str, author: str, response: Any) -> None:
        """Writes a result that an event tells, unless the error of its call is written.

        Args:
            name: Name of the tool.
            adk_id: ADK's id of the call; can be empty.
            author: The agent that called.
            response: The result.
        """
        call = self._first(name, adk_id, lambda each: not each.is_answered and each.author == author)
        call = call or self._first(name, adk_id, lambda each: not each.is_answered)
        if call is not None:
            call.is_answered = True
            self._return(call, response, None)
        elif not self._calls.get(adk_id or name):
            # A long-running tool, whose call an earlier run has written.
            self._record.tool_returned(name, adk_id, response)

    def _return(self, call: _Call, response: Any, error: str | None) -> None:
        if not call.is_returned:
            call.is_returned = True
            self._record.tool_returned(call.name, call.call_id, response, error)

    def _first(self, name: str, adk_id: str, suits: Callable[[_Call], bool]) -> _Call | None:
        """Returns the first suitable call with an id, if possible of the same tool: ADK can rename a tool's result."""
        known = [call for call in self._calls.get(adk_id or name, ()) if suits(call)]
        return next((call for call in known if call.name == name), known[0] if known else None)

    def _new(self, name: str, args: Any, adk_id: str, model_call_id: str = "") -> _Call:
        call = _Call(self._record.tool_called(name, args, adk_id, model_call_id), name)
        self._calls.setdefault(adk_id or name, []).append(call)
        return call
