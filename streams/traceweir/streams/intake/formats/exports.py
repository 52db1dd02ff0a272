"""Takes the runs out of what other tools export: traces of Langfuse, results of promptfoo, rows of Braintrust, logs of Dify,
and the conversations that frameworks keep.

Each run becomes a chat transcript if the export tells its tool calls. Otherwise it becomes a row of an evaluation set,
of which nothing says whether tools were called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.answer_pieces import objects_in
from traceweir.streams.intake.formats.chat_times import time_of
from traceweir.streams.intake.formats.dify import conversation_of_dify
from traceweir.streams.intake.formats.exported_messages import (
    as_request,
    asked_messages,
    decoded,
    transcript_of_run,
    with_tokens,
)
from traceweir.streams.intake.formats.framework_histories import conversation_of_framework
from traceweir.streams.intake.formats.langfuse_traces import is_observation_of_langfuse, runs_of_langfuse

_OF_BRAINTRUST = {"span_id", "root_span_id", "experiment_id", "log_id", "project_id", "scores"}


_TOKENS_OF_BRAINTRUST = {"prompt_tokens": "prompt_tokens", "completion_tokens": "completion_tokens"}
_TOKENS_OF_PROMPTFOO = {"prompt_tokens": "prompt", "completion_tokens": "completion"}


def runs_in_export(found: JsonObject) -> list[JsonObject] | None:
    """Returns the runs in an export, as transcripts and rows; None for another document."""
    try:
        return next((runs for read in _READERS if (runs := read(found)) is not None), None)
    except ValueError:
        # It is nested too deeply to be written as JSON.
        return None


def is_step_of_braintrust(found: JsonObject) -> bool:
    """Returns whether a row of Braintrust is a step in a trace, of which another row is the root."""
    if not {"span_id", "root_span_id"} <= found.keys():
        return False
    return found.get("is_root") is False or bool(found.get("span_parents"))


def _of_promptfoo(found: JsonObject) -> list[JsonObject] | None:
    whole = found.get("results")
    inner = whole.get("results") if isinstance(whole, dict) else whole
    results = [found] if _is_result_of_promptfoo(found) else [*objects_in(inner)]
    if not results or not all(map(_is_result_of_promptfoo, results)):
        return None
    return [_run_of_promptfoo(each) for each in results]


def _is_result_of_promptfoo(found: JsonObject) -> bool:
    prompt = found.get("prompt")
    has_verdict = not found.keys().isdisjoint({"success", "gradingResult", "testCase", "failureReason"})
    return isinstance(prompt, dict) and isinstance(prompt.get("raw"), str) and has_verdict


def _run_of_promptfoo(result: JsonObject) -> JsonObject:
    prompt = result["prompt"]
    asked = decoded(prompt.get("raw") if isinstance(prompt, dict) else None)
    response = result.get("response")
    given = response if isinstance(response, dict) else {}
    output = given.get("output")
    name = result.get("id")
    error = result.get("error") if output is None else None
    calls = [each for each in objects_in(output) if "function" in each]
    if error or given.get("error") or calls:
        failed: JsonObject = {"error": error or given["error"]} if error or given.get("error") else {}
        steps: list[JsonValue] = [{"role": "assistant", "tool_calls": [*calls]}] if calls else []
        return transcript_of_run(name, asked_messages(asked), steps, None if calls else output, failed)
    row: JsonObject = {
        "request": as_request(asked),
        "response": with_tokens(output, given.get("tokenUsage"), _TOKENS_OF_PROMPTFOO),
    }
    test = result.get("testCase")
    for each in objects_in(test.get("assert")) if isinstance(test, dict) else ():
        if each.get("type") == "equals" and isinstance(each.get("value"), str):
            row |= {"expected_response": each["value"]}
    is_measured = isinstance(result.get("latencyMs"), int) and not given.get("cached")
    row |= {"execution_time_ms": result["latencyMs"]} if is_measured else {}
    return row | ({"request_id": name} if isinstance(name, str) and name else {})


def _of_braintrust(found: JsonObject) -> list[JsonObject] | None:
    is_row = "input" in found and "messages" not in found and not found.keys().isdisjoint({"output", "error"})
    is_known = not found.keys().isdisjoint(_OF_BRAINTRUST - {"scores"}) or isinstance(found.get("scores"), dict)
    if not (is_row and is_known) or is_step_of_braintrust(found) or is_observation_of_langfuse(found):
        return None
    name = next((found[key] for key in ("id", "span_id") if isinstance(found.get(key), str)), None)
    if found.get("error") and found.get("output") is None:
        return [transcript_of_run(name, asked_messages(found["input"]), [], None, {"error": found["error"]})]
    expected = found.get("expected")
    # An expectation that is no text is named as a column that is not read.
    wanted: JsonObject = {"expected_response" if isinstance(expected, str) else "expected": expected}
    metrics = found.get("metrics")
    row: JsonObject = {
        "request": as_request(found["input"]),
        "response": with_tokens(found.get("output"), metrics, _TOKENS_OF_BRAINTRUST),
        **_duration_of_braintrust(metrics),
    }
    return [row | (wanted if expected is not None else {}) | ({"request_id": name} if name else {})]


def _duration_of_braintrust(metrics: JsonValue) -> JsonObject:
    """Returns how long a run took, from its start and its end in seconds since 1970."""
    began, ended = (metrics.get(name) if isinstance(metrics, dict) else None for name in ("start", "end"))
    if time_of(began) is None or time_of(ended) is None:
        return {}
    if not isinstance(began, int | float) or not isinstance(ended, int | float) or ended < began:
        return {}
    return {"execution_time_ms": round((ended - began) * 1000, 3)}


def _of_dify(found: JsonObject) -> list[JsonObject] | None:
    listed = found.get("data")
    said = [*objects_in(listed)] if isinstance(listed, list) else [found]
    if not said or not all(isinstance(each.get("query"), str) and "answer" in each and "id" in each for each in said):
        return None
    if not all({"conversation_id", "message_files", "agent_thoughts"} & each.keys() for each in said):
        return None
    conversations: dict[str, list[JsonObject]] = {}
    for each in said:
        conversations.setdefault(str(each.get("conversation_id")), []).append(each)
    is_single = not isinstance(listed, list)
    return [conversation_of_dify(each, is_single=is_single) for each in conversations.values()]


_READERS: Sequence[Callable[[JsonObject], list[JsonObject] | None]] = (
    runs_of_langfuse,
    _of_promptfoo,
    _of_braintrust,
    _of_dify,
    conversation_of_framework,
)
