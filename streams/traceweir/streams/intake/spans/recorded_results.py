"""Finds the results of tool calls that models read in their input."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from traceweir.streams.intake.spans.asked_calls import has_made_up_id
from traceweir.streams.intake.spans.attributes import ABSENT, args_text, structure
from traceweir.streams.intake.spans.conventions import hooks_of
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage, ToolResult, differs, newest_turn
from traceweir.streams.intake.spans.message_calls import arguments
from traceweir.streams.intake.spans.model_calls import ModelCall
from traceweir.streams.intake.spans.tool_spans import unwrapped_result
from traceweir.streams.intake.spans.waiting import Waiting

_NAMES_IN_IDS = hooks_of(lambda each: each.name_in_id)


class RecordedResults:
    """Finds the results that models read in their input.

    Args:
        models: The model calls.
        repeated: The ids of several calls, by which no result is found.
        single: The ids that are each of one call, whose result no other call with the same arguments takes.
    """

    def __init__(self, models: Sequence[ModelCall], repeated: Set[str], single: Set[str]) -> None:
        self.answered: set[str] = set()
        """The ids of all results."""
        self.told_of_failures = {model.agent for model in models if model.is_told_of_failures}
        """The names of the agents whose model's provider is told whether a tool failed."""
        self._by_id: dict[str, tuple[ToolResult, RequestedCall | None]] = {}
        histories: dict[str, list[SpanMessage]] = {}
        several: set[str] = set()
        for model in models:
            history = [*newest_turn(model.inputs), *model.rounds]
            if len(history) > len(histories.get(model.agent, ())):
                histories[model.agent] = history
            in_input: set[str] = set()
            asked: dict[str, RequestedCall] = {}
            for message in (*model.inputs, *model.rounds):
                asked |= {call.id: call for call in message.calls}
                for result in message.results:
                    self.answered.add(result.id)
                    if result.id in in_input:
                        known, call = self._by_id[result.id]
                        if _is_same_result(known, result):
                            # An event of the tool, and the message of the user with the same result.
                            self._by_id[result.id] = (_merged(known, result), call)
                        else:
                            several.add(result.id)
                    elif result.id and result.id not in repeated:
                        in_input.add(result.id)
                        self._by_id.setdefault(result.id, (result, asked.get(result.id)))
        # One history has results of several calls, of which only one is known here.
        for call_id in several:
            self._by_id.pop(call_id, None)
        self._pairs: Waiting[ToolResult] = Waiting()
        for history in histories.values():
            for call, result in _paired(history):
                if result.id in single and result.id in self._by_id:
                    continue
                self._pairs.add(result, (call.name, None), (call.name, args_text(arguments(call.args))))
                if has_made_up_id(call):
                    self._by_id.pop(call.id, None)
        self._asked: Waiting[RequestedCall] = Waiting()
        for history in histories.values():
            for message in history:
                for call in message.calls:
                    values = (None, args_text(_only(call.args)))
                    self._asked.add(call, *((call.name, value, name) for value in values for name in (None, call.id)))

    def args_of(self, call: RequestedCall) -> Any:
        """Returns the arguments that a later input of a model repeats; ABSENT if there are none.

        Some instrumentations write the only argument of a tool without its name, and tell equal names apart.
        """
        value = args_text(call.args)
        asked = self._asked.take(*((call.name, value, name) for name in (("", call.id) if call.id else (None,))))
        return ABSENT if asked is None else asked.args

    def of(self, name: str, call_id: str, args: Any) -> ToolResult | None:
        """Takes the result of a call: by the id; else of the first call with the same name and arguments."""
        if (found := self._with_id(name, call_id, args)) is not None:
            return found
        return self._pairs.take((name, args_text(arguments(args)))) if self._pairs else None

    def value_of(self, call: RequestedCall) -> Any:
        """Returns the value of the result that `of` would take next for a call; ABSENT if there is none."""
        found = self._with_id(call.name, call.id, call.args)
        found = found or self._pairs.first((call.name, args_text(arguments(call.args))))
        return ABSENT if found is None else unwrapped_result(structure(found.value))[0]

    def _with_id(self, name: str, call_id: str, args: Any) -> ToolResult | None:
        result, asked = self._by_id.get(call_id, (None, None)) if call_id else (None, None)
        is_other = asked is not None and differs(asked, RequestedCall(call_id, name, args))
        return None if is_other else result


def _is_same_result(one: ToolResult, other: ToolResult) -> bool:
    """Returns whether two results with one id have the same value."""
    values = [unwrapped_result(structure(each.value))[0] for each in (one, other)]
    return bool(values[0] == values[1])


def _merged(one: ToolResult, other: ToolResult) -> ToolResult:
    """Returns a result that was told twice; either can say that the tool failed."""
    return one._replace(
        failed=one.failed or other.failed,
        tells_failure=one.tells_failure or other.tells_failure,
        name=one.name or other.name,
    )


def _only(args: Any) -> Any:
    """Returns the value of the only argument; ABSENT if there are several or none."""
    return next(iter(args.values())) if isinstance(args, dict) and len(args) == 1 else ABSENT


def _paired(history: Sequence[SpanMessage]) -> list[tuple[RequestedCall, ToolResult]]:
    """Returns the calls of a history with their results: by the id, the arguments, the name, or the order of the calls."""
    pairs: list[tuple[RequestedCall, ToolResult]] = []
    waiting: Waiting[RequestedCall] = Waiting()
    answered = {result.id for message in history for result in message.results}
    known: set[str] = set()
    for message in history:
        for call in message.calls:
            known.add(call.id)
            named = (("name", call.name), ("name", ""))
            without = [("without id", name) for _, name in named] if call.id not in answered or not call.id else []
            call_key = ("arguments", call.name, args_text(arguments(call.args)))
            waiting.add(call, call_key, *named, *without, *([("id", call.id)] if call.id else []))
        for result in message.results:
            if not result.id:
                result_key = ("arguments", result.name, args_text(result.args))
                call_of = waiting.take(result_key) or waiting.take(("name", result.name))
            elif result.id in known:
                call_of = waiting.take(("id", result.id))
            else:
                # An id of its own, as an item of an answer has.
                name = result.name or next((found for tell in _NAMES_IN_IDS if (found := tell(result.id))), "")
                call_of = waiting.take(("without id", name))
                call_of = call_of or waiting.take(("without id", result.name))
            if call_of is not None:
                pairs.append((call_of, result))
    return pairs
