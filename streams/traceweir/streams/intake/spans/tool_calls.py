"""Joins the tool calls that models asked for with the spans of the tools and with the results that models read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from traceweir.schemas.result_parts import read_result
from traceweir.schemas.tool_results import is_failure
from traceweir.streams.intake.spans.asked_calls import AskedCall, answered_before, asked_calls
from traceweir.streams.intake.spans.attributes import ABSENT, args_text, plain, structure
from traceweir.streams.intake.spans.conventions import hooks_of, keys_of
from traceweir.streams.intake.spans.free_runs import FreeRuns, asked_name
from traceweir.streams.intake.spans.identity import agent_name
from traceweir.streams.intake.spans.message import RequestedCall
from traceweir.streams.intake.spans.message_calls import arguments
from traceweir.streams.intake.spans.model_calls import ModelCall
from traceweir.streams.intake.spans.recorded_results import RecordedResults
from traceweir.streams.intake.spans.tool_runs import read_runs
from traceweir.streams.intake.spans.tool_spans import ToolRun, error_in, exception_type, unwrapped_result
from traceweir.streams.intake.spans.tree import Node

_ANSWERING = keys_of(lambda each: each.answering_tools)
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
    is_undecided: bool = False
    """Whether nothing tells which of several runs of the tool is that of the call, so that its result is unknown."""
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
    answers = list(asked_calls(models, has_whole_history=has_whole_history))
    repeated = _several(each.call.id for asked in answers for each in asked if each.call.id)
    single_ids = {each.call.id for asked in answers for each in asked} - repeated - {""}
    if resumes and models:
        # What the first model reads are results of the former invocation, also of equal calls.
        single_ids |= {result.id for message in models[0].inputs for result in message.results} - repeated - {""}
    results = RecordedResults(models, repeated | _several(run.call_id for _, run in runs), single_ids)
    free = FreeRuns(runs, asked_ids, results.answered, repeated)
    same: dict[int, ToolRun | None] = {}
    # Of calls with one id, each takes the run with its arguments before another one takes it for its id.
    if repeated:
        of_one_id = (each for asked in answers for each in asked if each.call.id in repeated)
        same = {id(each): free.take_same(each.call) for each in of_one_id}
    calls: list[ToolCall] = []
    for asked in answers:
        group = [(each, same.get(id(each)) or free.take(each, partial(results.value_of, each.call))) for each in asked]
        starts = [found.span.start_ns for _, found in group if found is not None and found.span.start_ns]
        at_ns = min(starts, default=asked[0].at_ns)
        # One span has the calls of several answers: only the tools tell the order.
        around = at_ns < asked[0].at_ns
        for each, found in group:
            own_ns = found.span.start_ns if around and found is not None else at_ns
            # The answers of one history have one time, and keep their order.
            calls.append(_joined(each, found, results, (own_ns, len(calls), each.source)))
            calls[-1].answer = "" if around else each.answer
    _leave_undecided(calls, free.undecided)
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
        alone = AskedCall(call, 0, agent_name(node), span_id, node)
        calls.append(_joined(alone, left, results, (left.span.start_ns, 0, span_id)))
        calls[-1].is_earlier = resumes and bool(left.call_id) and left.call_id not in asked_ids
    if resumes and models:
        ran = {call.call_id for call in calls}
        for each in answered_before(models[0]):
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


def _leave_undecided(calls: Iterable[ToolCall], undecided: Set[int]) -> None:
    """Takes the results out of the calls of which nothing tells which run is that of which call.

    Runs of equal calls can be exchanged.

    Args:
        calls: The calls.
        undecided: The identities of the runs of which several could be that of a call.
    """
    found = [call for call in calls if call.run is not None and id(call.run) in undecided] if undecided else []
    args_of_tool: dict[str, set[bytes | None]] = {}
    for call in found:
        args_of_tool.setdefault(call.name, set()).add(args_text(call.args))
    for call in found:
        if len(args_of_tool[call.name]) > 1:
            call.result = ABSENT
            call.error = None
            call.unread = Counter()
            call.is_undecided = True


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


def _joined(asked: AskedCall, run: ToolRun | None, results: RecordedResults, order: tuple[int, int, str]) -> ToolCall:
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
        error = in_result or ("" if value is ABSENT else json.dumps(plain(value), ensure_ascii=False))
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
