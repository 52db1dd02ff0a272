"""Finds the tool calls that models asked for, in their answers and in the histories that they read, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from traceweir.streams.intake.spans.attributes import ABSENT, args_text
from traceweir.streams.intake.spans.conventions import hooks_of
from traceweir.streams.intake.spans.message import RequestedCall, differs, is_first, newest_turn
from traceweir.streams.intake.spans.model_calls import ModelCall
from traceweir.streams.intake.spans.parallel_calls import answer_in, answers_of
from traceweir.streams.intake.spans.tree import Node

_HAVE_MADE_UP_IDS = hooks_of(lambda each: each.has_made_up_id)


@dataclass(slots=True)
class AskedCall:
    """A tool call that a model asked for, or whose run has no model call that asked for it."""

    call: RequestedCall
    at_ns: int
    """When the model asked for the call; 0 if unknown."""
    agent: str
    """Name of the agent that called; empty if unknown."""
    source: str
    """The place in the span of the model, or the span of the tool."""
    node: Node
    """The span of the model call, or else that of the tool."""
    since_ns: int = 0
    """When the model began to answer; 0 if unknown."""
    answer: str = ""
    """Id of the answer, as in `ToolCall`."""


def asked_calls(models: Sequence[ModelCall], *, has_whole_history: bool) -> Iterator[list[AskedCall]]:
    """Yields the calls that the models asked for, those of one answer together, each once."""
    seen: dict[str, list[RequestedCall]] = {}
    asked = [call for model in models for call in model.all_calls]
    answered = {_content_of(call) for call in asked}
    if has_whole_history and models:
        own = set() if _asks_again(models) else answered
        yield from _of_history(
            models[0], lambda call: is_first(call, seen) if call.id else _content_of(call) not in own
        )
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
                and answered.isdisjoint({_content_of(call), (call.name, None)})
                and is_first(call, seen)
            ),
        )
    for model in models:
        span = model.nodes[0].span
        span_id = span.span_id
        in_rounds = sum(len(message.calls) for message in model.rounds)
        read = {call.id: call for message in model.inputs for call in message.calls if identified(call).id}
        found = []
        answers = answers_of(model)
        for index, call in enumerate(model.all_calls):
            if identified(call).id:
                # A call that the model has read already is the rest of an earlier call on the same span.
                call = read[call.id] if call.id in read and not differs(read[call.id], call) else call
                if not is_first(call, seen):
                    continue
            elif ("error.type" in span.attributes or span.status == "ERROR") and _was_read(call, model):
                # A failed call wrote no answer: what is there is that of an earlier call on the same span.
                continue
            at_ns = span.start_ns if index < in_rounds else model.end_ns
            source = f"{span_id}:{index}"
            found.append(
                AskedCall(identified(call), at_ns, model.agent, source, model.nodes[0], span.start_ns, answers[index])
            )
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


def _of_history(model: ModelCall, is_wanted: Callable[[RequestedCall], bool]) -> Iterator[list[AskedCall]]:
    """Yields the wanted calls that a model has read after the question, those of one answer together."""
    span = model.nodes[0].span
    for place, message in enumerate(newest_turn(model.inputs)):
        name = f"{span.span_id}:history:{place}"
        answer = answer_in(message, name)
        found = [
            AskedCall(called, span.start_ns, model.agent, f"{name}:{index}", model.nodes[0], answer=answer)
            for index, call in enumerate(message.calls)
            if is_wanted(called := identified(call))
        ]
        if found:
            yield found


def answered_before(model: ModelCall) -> Iterator[AskedCall]:
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
        source = f"{span.span_id}:history:{last}:{index}"
        yield AskedCall(call, span.start_ns, model.agent, source, model.nodes[0])


def _was_read(call: RequestedCall, model: ModelCall) -> bool:
    return any(_content_of(call) == _content_of(each) for message in model.inputs for each in message.calls)


def _content_of(call: RequestedCall) -> tuple[str, bytes | None]:
    """Returns the name and the arguments of a call, by which a call without an id is recognised."""
    return call.name, args_text(call.args)


def identified(call: RequestedCall) -> RequestedCall:
    """Returns a call without the id that a framework made up."""
    return call._replace(id="") if has_made_up_id(call) else call


def has_made_up_id(call: RequestedCall) -> bool:
    """Returns whether a framework made up the id of a call, so that other calls have it as well."""
    return any(tell(call) for tell in _HAVE_MADE_UP_IDS)
