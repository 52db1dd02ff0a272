"""Joins the tool calls that models asked for with the spans of the tools and with the results that models read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from traceweir.schemas.result_parts import read_result
from traceweir.schemas.tool_results import is_failure
from traceweir.streams.intake.spans.attributes import ABSENT, args_text, plain, structure
from traceweir.streams.intake.spans.conventions import hooks_of, keys_of
from traceweir.streams.intake.spans.free_runs import FreeRuns, asked_name
from traceweir.streams.intake.spans.identity import agent_name
from traceweir.streams.intake.spans.message import (
    RequestedCall,
    SpanMessage,
    ToolResult,
    differs,
    is_first,
    newest_turn,
)
from traceweir.streams.intake.spans.messages import arguments
from traceweir.streams.intake.spans.model_calls import ModelCall
from traceweir.streams.intake.spans.parallel_calls import answer_in, answers_of
from traceweir.streams.intake.spans.tool_runs import read_runs
from traceweir.streams.intake.spans.tool_spans import ToolRun, error_in, exception_type, unwrapped_result
from traceweir.streams.intake.spans.tree import Node
from traceweir.streams.intake.spans.waiting import Waiting

_ANSWERING = keys_of(lambda each: each.answering_tools)
_HAVE_MADE_UP_IDS = hooks_of(lambda each: each.has_made_up_id)
_NAMES_IN_IDS = hooks_of(lambda each: each.name_in_id)
_FRAME_RECORDED = hooks_of(lambda each: each.frames_recorded)
_ARE_SUBMISSIONS = hooks_of(lambda each: each.is_submission)


@dataclass(slots=True)
class ToolCall:
    """One call of a tool."""

    name: str
    call_id: str
    args: Any
    """The arguments: an object, another value, or ABSENT."""
    result: Any
    """The result, or ABSENT."""
    error: str | None
    """The error message of a failed call; None if nothing says that the call failed."""
    agent: str
    """Name of the agent that called; empty if unknown."""
    run: ToolRun | None
    """What the tool's span tells; None if the call has no span."""
    asked_ns: int
    """When the model asked for the call; 0 if unknown."""
    place: str
    """Where the call is told: the span of the tool, or else the place in the model's span. Unique in the trace."""
    order: tuple[int, int, str] = (0, 0, "")
    hosted: bool = False
    """Whether the provider of the model ran the tool."""
    has_unknown_outcome: bool = False
    """Whether the tool can have failed though nothing says so: the provider was told of it, and the spans leave it out."""
    unread: Counter[str] = field(default_factory=Counter)
    """How many parts of each kind of the result are no text, such as images, and are not in the result."""
    answer: str = ""
    """Id of the model's answer that asked for the call; empty if unknown. The calls of one answer are parallel."""
    is_earlier: bool = False
    """Whether an invocation before this one made the call, so that this one tells its result alone."""


def read_tool_calls(
    nodes: Sequence[Node],
    models: Sequence[ModelCall],
    *,
    has_whole_history: bool,
    answering: Set[str],
    resumes: bool = False,
) -> list[ToolCall]:
    """Returns the tool calls of an invocation in the order in which the model asked for them.

    Args:
        nodes: The spans of the invocation, in the order of their start.
        models: The model calls of the invocation, in the order of their start.
        has_whole_history: Whether what the first model call has read after the question belongs to the invocation too.
        answering: The names of the calls in which models had to write an answer.
        resumes: Whether the invocation goes on with a former one, whose open calls it answers.
    """
    runs = read_runs(nodes)
    asked_ids = {call.id for model in models for call in model.all_calls}
    answers = list(_asked(models, has_whole_history=has_whole_history))
    repeated = _several(each.call.id for asked in answers for each in asked if each.call.id)
    single_ids = {each.call.id for asked in answers for each in asked} - repeated - {""}
    results = _Results(models, repeated | _several(run.call_id for _, run in runs), single_ids)
    free = FreeRuns(runs, asked_ids, results.answered, repeated)
    same: dict[int, ToolRun | None] = {}
    # Of calls with one id, each takes the run with its arguments before another one takes it for its id.
    if repeated:
        of_one_id = (each for asked in answers for each in asked if each.call.id in repeated)
        same = {id(each): free.take_same(each.call) for each in of_one_id}
    calls: list[ToolCall] = []
    for asked in answers:
        group = [(each, same.get(id(each)) or free.take(each.call, each.at_ns, each.since_ns)) for each in asked]
        starts = [found.span.start_ns for _, found in group if found is not None and found.span.start_ns]
        at_ns = min(starts, default=asked[0].at_ns)
        # One span has the calls of several answers: only the tools tell the order.
        around = at_ns < asked[0].at_ns
        for each, found in group:
            own_ns = found.span.start_ns if around and found is not None else at_ns
            # The answers of one history have one time, and keep their order.
            calls.append(_joined(each, found, results, (own_ns, len(calls), each.source)))
            calls[-1].answer = "" if around else each.answer
    is_cut = any(node.span.cut_texts for model in models for node in model.nodes)
    for node, left in free:
        call = RequestedCall(left.call_id, asked_name(left), left.args)
        if not isinstance(left.args, dict):
            recorded_args = results.args_of(call)
            if recorded_args is ABSENT and is_cut:
                # The only argument without its name, which the answer that was cut would tell.
                left.args = ABSENT
            call = call._replace(args=left.args if recorded_args is ABSENT else recorded_args)
        span_id = left.span.span_id
        alone = _Asked(call, 0, agent_name(node), span_id)
        calls.append(_joined(alone, left, results, (left.span.start_ns, 0, span_id)))
        calls[-1].is_earlier = resumes and bool(left.call_id) and left.call_id not in asked_ids
    if resumes and models:
        ran = {call.call_id for call in calls}
        for each in _answered_before(models[0]):
            if each.call.id not in ran:
                earlier = _joined(each, None, results, (each.at_ns, 0, each.source))
                earlier.is_earlier = True
                calls.append(earlier)
    calls = [
        call
        for call in calls
        if call.name not in _ANSWERING and not _is_submission(call) and (call.run or call.name not in answering)
    ]
    return sorted(calls, key=lambda call: call.order)


def _several(ids: Iterable[str]) -> set[str]:
    """Returns the ids that are there more than once."""
    known: set[str] = set()
    several: set[str] = set()
    for each in ids:
        (several if each in known else known).add(each)
    return several - {""}


def _is_submission(call: ToolCall) -> bool:
    """Returns whether a call hands in the answer of the agent, so that it is no call of a tool."""
    return call.run is not None and any(
        tell(call.name, call.run.span, call.args, call.result) for tell in _ARE_SUBMISSIONS
    )


@dataclass(slots=True)
class _Asked:
    call: RequestedCall
    at_ns: int
    agent: str
    source: str
    since_ns: int = 0
    """When the model began to answer; 0 if unknown."""
    answer: str = ""
    """Id of the answer, as in `ToolCall`."""


def _asked(models: Sequence[ModelCall], *, has_whole_history: bool) -> Iterator[list[_Asked]]:
    """Yields the calls that the models asked for, those of one answer together, each once."""
    seen: dict[str, list[RequestedCall]] = {}
    asked = [call for model in models for call in model.all_calls]
    answered = {_told(call) for call in asked}
    if has_whole_history and models:
        own = set() if _asks_again(models) else answered
        yield from _of_history(models[0], lambda call: is_first(call, seen) if call.id else _told(call) not in own)
    # What an agent that goes on with a former invocation begins with belongs to that.
    known = {call.id for call in asked}
    known |= {call.id for message in (models[0].inputs if models else ()) for call in message.calls}
    # An answer can tell a call under another id than the input, or without its arguments.
    for model in models[1:]:
        yield from _of_history(
            model,
            lambda call: (
                call.id not in known
                and bool(call.id)
                and answered.isdisjoint({_told(call), (call.name, None)})
                and is_first(call, seen)
            ),
        )
    for model in models:
        span = model.nodes[0].span
        span_id = span.span_id
        in_rounds = sum(len(message.calls) for message in model.rounds)
        read = {call.id: call for message in model.inputs for call in message.calls if _identified(call).id}
        found = []
        answers = answers_of(model)
        for index, call in enumerate(model.all_calls):
            if _identified(call).id:
                # A call that the model has read already is the rest of an earlier call on the same span.
                call = read[call.id] if call.id in read and not differs(read[call.id], call) else call
                if not is_first(call, seen):
                    continue
            elif ("error.type" in span.attributes or span.status == "ERROR") and _was_read(call, model):
                # A failed call wrote no answer: what is there is that of an earlier call on the same span.
                continue
            at_ns = span.start_ns if index < in_rounds else model.end_ns
            source = f"{span_id}:{index}"
            found.append(_Asked(_identified(call), at_ns, model.agent, source, span.start_ns, answers[index]))
        if found:
            yield found


def _asks_again(models: Sequence[ModelCall]) -> bool:
    """Returns whether the only model call has read results and then asks for calls alone, which are further ones.

    Of a span of several rounds, the messages that were read can tell the calls that the span itself asked for.
    """
    if len(models) != 1 or models[0].rounds or len(models[0].outputs) != 1:
        return False
    history = newest_turn(models[0].inputs)
    return bool(models[0].outputs[0].calls and not models[0].outputs[0].text and history and history[-1].results)


def _of_history(model: ModelCall, is_wanted: Callable[[RequestedCall], bool]) -> Iterator[list[_Asked]]:
    """Yields the wanted calls that a model has read after the question, those of one answer together."""
    span = model.nodes[0].span
    for place, message in enumerate(newest_turn(model.inputs)):
        name = f"{span.span_id}:history:{place}"
        answer = answer_in(message, name)
        found = [
            _Asked(called, span.start_ns, model.agent, f"{name}:{index}", answer=answer)
            for index, call in enumerate(message.calls)
            if is_wanted(called := _identified(call))
        ]
        if found:
            yield found


def _answered_before(model: ModelCall) -> Iterator[_Asked]:
    """Yields the calls of the last answer that a model has read, if it has read their results too.

    A model that continues a conversation at its provider reads the results alone, which do not tell the tools.
    """
    history = newest_turn(model.inputs)
    last = max((place for place, message in enumerate(history) if message.calls), default=-1)
    results = {result.id: result for message in history[last + 1 :] for result in message.results if result.id}
    answered = [RequestedCall(each.id, each.name, ABSENT) for each in results.values()]
    if last >= 0:
        answered = [call for call in history[last].calls if call.id in results]
    span = model.nodes[0].span
    for index, call in enumerate(answered):
        yield _Asked(call, span.start_ns, model.agent, f"{span.span_id}:history:{last}:{index}")


def _was_read(call: RequestedCall, model: ModelCall) -> bool:
    return any(_told(call) == _told(each) for message in model.inputs for each in message.calls)


def _told(call: RequestedCall) -> tuple[str, bytes | None]:
    """Returns the name and the arguments of a call, by which a call without an id is recognised."""
    return call.name, args_text(call.args)


def _identified(call: RequestedCall) -> RequestedCall:
    return call._replace(id="") if _has_made_up_id(call) else call


class _Results:
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
                if _has_made_up_id(call):
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
        """Returns the result of a call: by the id; else of the first call with the same name and arguments."""
        result, asked = self._by_id.get(call_id, (None, None)) if call_id else (None, None)
        if result is not None and (asked is None or not differs(asked, RequestedCall(call_id, name, args))):
            return result
        return self._pairs.take((name, args_text(arguments(args)))) if self._pairs else None


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


def _has_made_up_id(call: RequestedCall) -> bool:
    """Returns whether a framework made up the id of a call, so that other calls have it as well."""
    return any(tell(call) for tell in _HAVE_MADE_UP_IDS)


def _paired(history: Sequence[SpanMessage]) -> list[tuple[RequestedCall, ToolResult]]:
    """Returns the calls of a history with their results: by the id, by the name, or in the order of the calls."""
    pairs: list[tuple[RequestedCall, ToolResult]] = []
    waiting: Waiting[RequestedCall] = Waiting()
    answered = {result.id for message in history for result in message.results}
    known: set[str] = set()
    for message in history:
        for call in message.calls:
            known.add(call.id)
            named = (("name", call.name), ("name", ""))
            without = [("without id", name) for _, name in named] if call.id not in answered or not call.id else []
            waiting.add(call, *named, *without, *([("id", call.id)] if call.id else []))
        for result in message.results:
            if not result.id:
                call_of = waiting.take(("name", result.name))
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


def _joined(asked: _Asked, run: ToolRun | None, results: _Results, order: tuple[int, int, str]) -> ToolCall:
    call = asked.call
    # Before those of the span, to which frameworks add what the model did not write.
    args = arguments(call.args)
    if run is not None and not isinstance(args, dict) and run.args is not ABSENT and not run.handoff:
        args = run.args
    call_id = call.id or (run.call_id if run else "")
    recorded = results.of(call.name, call_id, args)
    value: Any = run.result if run else ABSENT
    failed = recorded is not None and recorded.failed
    if value is ABSENT and recorded is not None and recorded.value is not ABSENT:
        span = run.span if run is not None else None
        framed = recorded.framed or any(frames(call_id, span) for frames in _FRAME_RECORDED)
        value, _, is_error = unwrapped_result(structure(recorded.value), framed=framed)
        failed = failed or is_error
    unread: Counter[str] = Counter()
    if value is not ABSENT:
        value, unread = read_result(value)
    error = run.error if run is not None else None
    failed = failed or (error is None and is_failure(value))
    in_result = error_in(value) or (value if isinstance(value, str) else "")
    if error is None and failed:
        error = in_result or json.dumps(plain(value), ensure_ascii=False)
    elif error == "":
        error = in_result or (exception_type(run.span) if run is not None else "")
    place = asked.source if run is None else run.span.span_id
    leaves_out = run is None and recorded is not None and not recorded.tells_failure
    is_unknown = leaves_out and error is None and value is not ABSENT and asked.agent in results.told_of_failures
    return ToolCall(
        *(call.name, call_id, args, value, error, asked.agent, run, asked.at_ns, place, order),
        hosted=call.hosted,
        has_unknown_outcome=is_unknown,
        unread=unread,
    )
