"""Takes the runs out of traces that Langfuse exports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.answer_pieces import objects_in
from traceweir.streams.intake.formats.chat_times import duration_of, time_after, time_of
from traceweir.streams.intake.formats.chat_usage import USES
from traceweir.streams.intake.formats.exported_messages import (
    as_request,
    asked_messages,
    call_and_result,
    decoded,
    messages_in,
    question_place,
    set_times,
    transcript_of_run,
    with_tokens,
    without_arguments,
)
from traceweir.streams.intake.formats.langfuse_tokens import tokens_of_observations

_OF_TRACE = {
    "timestamp",
    "session_id",
    "sessionId",
    "htmlPath",
    "totalCost",
    "scores",
    "projectId",
    "userId",
    "bookmarked",
}
_READ_OBSERVATIONS = {"GENERATION", "TOOL", "AGENT", "CHAIN", "SPAN", "EVENT", "EVALUATOR", "EMBEDDING", "GUARDRAIL"}
"""The types of observations that are read, or that have no part of question, calls or answer of their own."""
_TYPES = _READ_OBSERVATIONS | {"RETRIEVER"}
_STEPS = {"AGENT", "CHAIN", "SPAN", "RETRIEVER"}
"""The types of which an observation can be the call of a tool, in exports of programs that do not name their tools."""
_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?")
_TOKENS_OF_ROW = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


class TurnOfSession(NamedTuple):
    """A run that is a turn of a session."""

    session: str
    """The id of the session."""
    began: datetime | None
    """When the run began; None if the export does not say it."""
    ended: datetime | None
    """When the run ended; None if the export does not say it."""
    are_calls_known: bool
    """Whether the run has all its tool calls; False if the export does not tell whether there were any."""
    transcript: JsonObject
    """The run as a transcript without its session."""


def is_observation_of_langfuse(found: JsonObject) -> bool:
    """Returns whether a document is an observation of Langfuse without its trace, from its API or from a bucket."""
    return not found.keys().isdisjoint({"traceId", "trace_id"}) and found.get("type") in _TYPES


def turn_of_langfuse(found: JsonObject) -> TurnOfSession | None:
    """Returns the run in a trace that names the session whose turn it is; None for another document."""
    name = found.get("sessionId") or found.get("session_id")
    if not (isinstance(name, str) and name and _is_trace_of_langfuse(found)):
        return None
    observed = _observed(found)
    steps = _tools_of(observed) or _calls_of_models(observed)
    began, ended = _times_of(found)
    asked = asked_messages(without_arguments(_text_of(found, "input")))
    transcript = _with_tokens(
        transcript_of_run(None, asked, steps, _text_of(found, "output"), _about_langfuse(found, observed)), observed
    )
    return TurnOfSession(name, began, ended, bool(steps) or _are_calls_known(found, observed), transcript)


def _is_trace_of_langfuse(found: JsonObject) -> bool:
    is_listed = isinstance(found.get("observations"), list) or "htmlPath" in found or "bookmarked" in found
    return bool(is_listed and "id" in found and {"input", "output"} & found.keys() and _OF_TRACE & found.keys())


def _text_of(trace: JsonObject, key: str) -> JsonValue:
    """Returns the input or the output of a trace; a file that Langfuse writes into a bucket has JSON as texts."""
    return decoded(trace.get(key)) if _is_of_bucket(trace) else trace.get(key)


def _began_at(trace: JsonObject) -> JsonValue:
    """Returns the time of a trace; those in a bucket are in UTC, without a zone."""
    value = trace.get("timestamp")
    is_utc = isinstance(value, str) and _is_of_bucket(trace) and _WITHOUT_ZONE.fullmatch(value)
    return f"{str(value).replace(' ', 'T')}Z" if is_utc else value


def _is_of_bucket(trace: JsonObject) -> bool:
    return "project_id" in trace or "session_id" in trace


def _observed(trace: JsonObject) -> list[JsonObject]:
    """Returns the observations of a trace of Langfuse, in order of time."""
    return sorted(objects_in(trace.get("observations")), key=lambda each: str(each.get("startTime")))


def _are_calls_known(trace: JsonObject, observed: Sequence[JsonObject]) -> bool:
    """Returns whether a trace of Langfuse without calls of tools had none."""
    listed = trace.get("observations")
    are_all_read = isinstance(listed, list) and len(observed) == len(listed)
    return are_all_read and _STEPS.isdisjoint(str(each.get("type")) for each in observed)


def _about_langfuse(trace: JsonObject, observed: Sequence[JsonObject]) -> JsonObject:
    """Returns what a trace of Langfuse tells beside question, calls and answer, and the observations that are not read."""
    known: JsonObject = {
        "created_at": _began_at(trace),
        "user_id": trace.get("userId"),
        "environment": trace.get("environment"),
        "agent_version": trace.get("version"),
    }
    return _unread_observations(observed) | {name: value for name, value in known.items() if value}


def _unread_observations(observed: Sequence[JsonObject]) -> JsonObject:
    unread: list[JsonValue] = [each for each in observed if str(each.get("type")) not in _READ_OBSERVATIONS]
    return {"observations": unread} if unread else {}


def runs_of_langfuse(found: JsonObject) -> list[JsonObject] | None:
    if not _is_trace_of_langfuse(found):
        return None
    observed = _observed(found)
    steps = _tools_of(observed) or _calls_of_models(observed)
    asked = without_arguments(_text_of(found, "input"))
    output = _text_of(found, "output")
    if not steps and not _are_calls_known(found, observed):
        latency = duration_of(found.get("latency"))
        timed: JsonObject = {} if latency is None else {"execution_time_ms": latency * 1000}
        output = with_tokens(output, _sums(tokens_of_observations(observed)), _TOKENS_OF_ROW)
        row: JsonObject = {"request_id": found["id"], "request": as_request(asked), "response": output}
        return [{**row, **timed, **_unread_observations(observed)}]
    about = _about_langfuse(found, observed)
    run = _with_tokens(transcript_of_run(found["id"], asked_messages(asked), steps, output, about), observed)
    messages = [dict(each) for each in objects_in(run.get("messages"))]
    began, ended = _times_of(found)
    if ended is not None:
        set_times(messages, question_place(messages), began, ended)
    return [{**run, "messages": [*messages]}]


def _times_of(trace: JsonObject) -> tuple[datetime | None, datetime | None]:
    """Returns when a run began and ended; None for each that the export does not say."""
    began = time_of(_began_at(trace))
    latency = duration_of(trace.get("latency"))
    return began, None if began is None or latency is None else time_after(began, latency)


def _with_tokens(transcript: JsonObject, observed: Sequence[JsonObject]) -> JsonObject:
    """Returns the transcript of a run with the tokens of its model calls at its last message."""
    messages = [*objects_in(transcript.get("messages"))]
    uses: list[JsonValue] = [*tokens_of_observations(observed)]
    if uses and messages and messages[-1].get("role") == "assistant":
        return {**transcript, "messages": [*messages[:-1], {**messages[-1], USES: uses}]}
    return transcript


def _sums(uses: Sequence[JsonObject]) -> JsonObject:
    """Returns the sums of the tokens of model calls, of those counts that every call has."""
    found: JsonObject = {}
    for name in _TOKENS_OF_ROW.values():
        counts = [each.get(name) for each in uses]
        numbers = [count for count in counts if isinstance(count, int)]
        if numbers and len(numbers) == len(counts):
            found[name] = sum(numbers)
    return found


def _tools_of(observed: Sequence[JsonObject]) -> list[JsonValue]:
    """Returns the messages of the calls of tools that Langfuse has as observations."""
    steps: list[JsonValue] = []
    for each in observed:
        if each.get("type") == "TOOL":
            failed = each.get("level") == "ERROR"
            given = each.get("statusMessage") if failed and each.get("output") is None else each.get("output")
            steps += call_and_result(each.get("id"), each.get("name"), each.get("input"), given, failed=failed)
    return steps


def _calls_of_models(observed: Sequence[JsonObject]) -> list[JsonValue]:
    """Returns the messages of the calls that models asked for, each with the results that a later model has read."""
    models = [each for each in observed if each.get("type") == "GENERATION"]
    results = {str(each.get("tool_call_id")): each for model in models for each in messages_in(model.get("input"))}
    steps: list[JsonValue] = []
    known: set[str] = set()
    for model in models:
        for message in messages_in(model.get("output")):
            calls = [each for each in objects_in(message.get("tool_calls")) if str(each.get("id")) not in known]
            names = [str(each["id"]) for each in calls if each.get("id")]
            known.update(names)
            if calls:
                steps.append({"role": "assistant", "content": message.get("content"), "tool_calls": [*calls]})
                steps += [results[name] for name in names if name in results]
    return steps
