"""States what the spans of an invocation do not contain of its tool calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from traceweir.schemas.result_parts import not_text_of_result
from traceweir.schemas.text import printable
from traceweir.streams.intake.spans.attributes import ABSENT, is_cut
from traceweir.streams.intake.spans.interrupts import waits_for_person
from traceweir.streams.intake.spans.model_calls import ModelCall
from traceweir.streams.intake.spans.reasons import reason_of
from traceweir.streams.intake.spans.tool_calls import ToolCall
from traceweir.streams.intake.spans.turns import TurnSpans

_MAX_BROKEN_CHARS = 100
_ENDS_WITH_CALL = "the invocation ends with the call, which has no span; the application can run the tool after it"
_HOSTED = (
    "the provider of the model ran the tool, and its answer is without the result; where its API can add results to "
    "answers, as OpenAI's does with `include`, ask for them"
)
_UNNAMED = (
    "the span of the tool has values without the names of their parameters; call the function with all its arguments by "
    "name, or instrument the client of the model too, whose answers have the names"
)
_UNDECIDED = (
    "calls of the tool began at the same time, and no span tells which result is that of which call; write "
    "gen_ai.tool.call.id or gen_ai.tool.call.arguments on the spans of the tool"
)
_NO_FLAG = (
    "the provider was told whether the tool failed, and the instrumentation of its client leaves that out; put a span of "
    "the operation execute_tool around the run of the tool"
)


def missing_of_calls(
    turn: TurnSpans, calls: Sequence[ToolCall], last: ModelCall | None, why: Callable[[], str]
) -> dict[str, str]:
    """Tells what is missing of each tool call: its arguments, its result, its error message, or whether it failed."""
    parts: dict[str, str] = {}
    has_cut_texts = any(node.span.cut_texts for node in turn.nodes)
    for place, call in enumerate(calls):
        reason = partial(reason_of, [call.run.span]) if call.run is not None else why
        if call.args is ABSENT or call.args is None or is_cut(call.args):
            # If the span of the tool is whole, what was cut can be the answer of the model.
            source = why if has_cut_texts and not (call.run and call.run.span.cut_texts) else reason
            cause = _UNNAMED if call.run is not None and call.run.has_unnamed_args else _broken(turn, call) or source()
            parts[f"args:{place}"] = f"the arguments of the call of tool {call.name!r} are not in the spans: {cause}"
        run_error = call.run.error if call.run is not None else call.error
        if run_error == "" and call.result is ABSENT:
            parts[f"error:{place}"] = (
                f"the error message of the call of tool {call.name!r} is not in the spans: {reason()}"
            )
        if call.error is None and (call.result is ABSENT or is_cut(call.result)):
            if turn.bare and call.run is None and not has_cut_texts and not call.hosted:
                # Another trace can have it; that the answer is missing says so.
                continue
            if (call.run is not None and call.run.waits) or (is_open(call, last) and is_interrupted(turn)):
                # It comes when a person has answered; that the answer is missing says so.
                continue
            ended = _HOSTED if call.hosted else _ENDS_WITH_CALL if is_open(call, last) else ""
            ended = _UNDECIDED if call.is_undecided else ended or reason()
            parts[f"result:{place}"] = f"the result of the call of tool {call.name!r} is not in the spans: {ended}"
        for sentence in not_text_of_result(call.name, call.result, call.unread):
            parts[f"parts:{place}"] = sentence
        if call.has_unknown_outcome:
            parts[f"outcome:{place}"] = f"the outcome of the call of tool {call.name!r} is not in the spans: {_NO_FLAG}"
    return parts


def _broken(turn: TurnSpans, call: ToolCall) -> str:
    """Tells that arguments in a message are no JSON; empty if they are a value of a span, which a limit can have cut."""
    if not is_cut(call.args) or any(
        value == call.args for node in turn.nodes for value in node.span.attributes.values()
    ):
        return ""
    return f"what stands there is no JSON, as a model can write it: {printable(call.args, _MAX_BROKEN_CHARS)!r}"


def is_interrupted(turn: TurnSpans) -> bool:
    """Returns whether a step of an invocation stopped to wait for a person."""
    return any(waits_for_person(node.span) for node in turn.nodes)


def is_open(call: ToolCall, last: ModelCall | None) -> bool:
    """Returns whether the last answer of a model asks for a call that no span tells of."""
    asked_last = last is not None and call.asked_ns >= last.end_ns
    return asked_last and call.run is None and call.result is ABSENT and call.args is not ABSENT
