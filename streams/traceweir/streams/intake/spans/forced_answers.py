"""Finds the calls that are no calls of tools: those in whose arguments a model had to write its answer."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.spans.attributes import decoded, plain
from traceweir.streams.intake.spans.message import RequestedCall
from traceweir.streams.intake.spans.model_calls import ModelCall, last_of


class ForcedAnswers(NamedTuple):
    """What models wrote as the arguments of calls that nobody ran."""

    names: frozenset[str] = frozenset()
    """The names under which they had to call."""
    text: str = ""
    """The answer of the last model, in JSON; empty if it wrote none so."""


def forced_answers(models: Sequence[ModelCall], ran: Set[str], given: str) -> ForcedAnswers:
    """Returns the answers that models had to write as the arguments of a call.

    A call is such an answer if no tool of its name ran, and either the model had to call that tool and read no result,
    or it is the last call and the agent answered with its arguments.

    Args:
        models: The model calls of an invocation.
        ran: The names of the tools that ran.
        given: The answer that the span of the agent has; empty if it has none.
    """
    results = [result for model in models for message in model.inputs for result in message.results]
    read = {result.id for result in results if result.id}
    read_by_name = {result.name for result in results if not result.id}
    last = last_of(models)
    names = set()
    text = ""
    for model in models:
        call = _only_call(model)
        if call is None or call.name in ran:
            continue
        is_read = call.id in read if call.id else bool(read_by_name & {call.name, ""})
        forced = call.name == model.forced_tool and not model.text and not is_read
        if forced or (model is last and _is_given(given, call.args)):
            names.add(call.name)
            # `plain`: the arguments of a model can have half of a surrogate pair.
            text = write_json(plain(call.args)).decode() if model is last else text
    return ForcedAnswers(frozenset(names), text)


def _only_call(model: ModelCall) -> RequestedCall | None:
    calls = model.calls
    return calls[0] if len(calls) == 1 and isinstance(calls[0].args, dict) else None


def _is_given(given: str, args: dict[str, Any]) -> bool:
    """Returns whether an answer has all arguments; the schema can add fields with their defaults."""
    answer = decoded(given) if given.startswith("{") else None
    return isinstance(answer, dict) and bool(args) and all(answer.get(key) == value for key, value in args.items())
