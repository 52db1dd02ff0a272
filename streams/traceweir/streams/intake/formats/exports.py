"""Takes the runs out of what other tools export: traces of Langfuse, results of promptfoo, rows of Braintrust, logs of Dify.

Each run becomes a chat transcript if the export tells its tool calls. Otherwise it becomes a row of an evaluation set,
of which nothing says whether tools were called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.evaluation_row_turn import request_text, response_text
from traceweir.streams.base.json_values import read_json, write_json
from traceweir.streams.intake.formats.answer_pieces import objects_in

_OF_TRACE = {"timestamp", "sessionId", "htmlPath", "totalCost", "scores", "projectId", "userId", "bookmarked"}
_READ_OBSERVATIONS = {"GENERATION", "TOOL", "AGENT", "CHAIN", "SPAN", "EVENT", "EVALUATOR", "EMBEDDING", "GUARDRAIL"}
"""The types of observations that are read, or that have no part of question, calls or answer of their own."""
_STEPS = {"AGENT", "CHAIN", "SPAN", "RETRIEVER"}
"""The types of which an observation can be the call of a tool, in exports of programs that do not name their tools."""
_OF_BRAINTRUST = {"span_id", "root_span_id", "experiment_id", "log_id", "project_id", "scores"}


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


def _of_langfuse(found: JsonObject) -> list[JsonObject] | None:
    observations = found.get("observations")
    is_listed = isinstance(observations, list) or "htmlPath" in found or "bookmarked" in found
    if not (is_listed and "id" in found and {"input", "output"} & found.keys() and _OF_TRACE & found.keys()):
        return None
    observed = sorted(objects_in(observations), key=lambda each: str(each.get("startTime")))
    steps = _tools_of(observed) or _calls_of_models(observed)
    kinds = {str(each.get("type")) for each in observed}
    are_all_known = isinstance(observations, list) and len(observed) == len(observations)
    asked = _unwrapped(found.get("input"))
    unread: list[JsonValue] = [each for each in observed if str(each.get("type")) not in _READ_OBSERVATIONS]
    common: JsonObject = {"observations": unread} if unread else {}
    if not steps and (not are_all_known or kinds & _STEPS):
        latency = found.get("latency")
        is_measured = isinstance(latency, int | float) and latency > 0
        timed: JsonObject = {"execution_time_ms": float(str(latency)) * 1000} if is_measured else {}
        row: JsonObject = {"request_id": found["id"], "request": _as_request(asked), "response": found.get("output")}
        return [{**row, **timed, **common}]
    known = {"created_at": "timestamp", "user_id": "userId", "environment": "environment", "agent_version": "version"}
    common |= {name: found[key] for name, key in known.items() if found.get(key)}
    return [_transcript(found["id"], _asked(asked), steps, found.get("output"), common)]


def _tools_of(observed: Sequence[JsonObject]) -> list[JsonValue]:
    """Returns the messages of the calls of tools that Langfuse has as observations."""
    steps: list[JsonValue] = []
    for each in observed:
        if each.get("type") == "TOOL":
            failed = each.get("level") == "ERROR"
            given = each.get("statusMessage") if failed and each.get("output") is None else each.get("output")
            steps += _call_and_result(each.get("id"), each.get("name"), each.get("input"), given, failed=failed)
    return steps


def _call_and_result(
    call_id: JsonValue, name: JsonValue, args: JsonValue, result: JsonValue, *, failed: bool = False
) -> list[JsonValue]:
    call: JsonObject = {"id": call_id, "function": {"name": name, "arguments": _unwrapped(args)}}
    answered: JsonObject = {"role": "tool", "tool_call_id": call_id, "content": _text(result)}
    return [{"role": "assistant", "tool_calls": [call]}, answered | ({"is_error": True} if failed else {})]


def _calls_of_models(observed: Sequence[JsonObject]) -> list[JsonValue]:
    """Returns the messages of the calls that models asked for, each with the results that a later model has read."""
    models = [each for each in observed if each.get("type") == "GENERATION"]
    results = {str(each.get("tool_call_id")): each for model in models for each in _messages(model.get("input"))}
    steps: list[JsonValue] = []
    known: set[str] = set()
    for model in models:
        for message in _messages(model.get("output")):
            calls = [each for each in objects_in(message.get("tool_calls")) if str(each.get("id")) not in known]
            names = [str(each["id"]) for each in calls if each.get("id")]
            known.update(names)
            if calls:
                steps.append({"role": "assistant", "content": message.get("content"), "tool_calls": [*calls]})
                steps += [results[name] for name in names if name in results]
    return steps


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
    asked = _decoded(prompt.get("raw") if isinstance(prompt, dict) else None)
    response = result.get("response")
    given = response if isinstance(response, dict) else {}
    output = given.get("output")
    name = result.get("id")
    error = result.get("error") if output is None else None
    calls = [each for each in objects_in(output) if "function" in each]
    if error or given.get("error") or calls:
        failed: JsonObject = {"error": error or given["error"]} if error or given.get("error") else {}
        steps: list[JsonValue] = [{"role": "assistant", "tool_calls": [*calls]}] if calls else []
        return _transcript(name, _asked(asked), steps, None if calls else output, failed)
    usage = given.get("tokenUsage")
    counts = usage if isinstance(usage, dict) else {}
    names = {"prompt_tokens": "prompt", "completion_tokens": "completion"}
    tokens: JsonObject = {key: counts[each] for key, each in names.items() if isinstance(counts.get(each), int)}
    row: JsonObject = {"request": _as_request(asked), "response": output}
    if tokens and isinstance(output, str):
        row["response"] = {"content": output, "usage": tokens}
    test = result.get("testCase")
    for each in objects_in(test.get("assert")) if isinstance(test, dict) else ():
        if each.get("type") == "equals" and isinstance(each.get("value"), str):
            row |= {"expected_response": each["value"]}
    is_measured = isinstance(result.get("latencyMs"), int) and not given.get("cached")
    row |= {"execution_time_ms": result["latencyMs"]} if is_measured else {}
    return row | ({"request_id": name} if isinstance(name, str) and name else {})


def _of_braintrust(found: JsonObject) -> list[JsonObject] | None:
    is_row = "input" in found and not found.keys().isdisjoint({"output", "error"})
    is_known = not found.keys().isdisjoint(_OF_BRAINTRUST - {"scores"}) or isinstance(found.get("scores"), dict)
    if not (is_row and is_known) or is_step_of_braintrust(found):
        return None
    name = next((found[key] for key in ("id", "span_id") if isinstance(found.get(key), str)), None)
    if found.get("error") and found.get("output") is None:
        return [_transcript(name, _asked(found["input"]), [], None, {"error": found["error"]})]
    expected = found.get("expected")
    # An expectation that is no text is named as a column that is not read.
    wanted: JsonObject = {"expected_response" if isinstance(expected, str) else "expected": expected}
    row: JsonObject = {"request": _as_request(found["input"]), "response": found.get("output")}
    return [row | (wanted if expected is not None else {}) | ({"request_id": name} if name else {})]


def _of_dify(found: JsonObject) -> list[JsonObject] | None:
    listed = found.get("data")
    said = [*objects_in(listed)] if isinstance(listed, list) else [found]
    if not said or not all(isinstance(each.get("query"), str) and "answer" in each and "id" in each for each in said):
        return None
    if not all({"conversation_id", "message_files", "agent_thoughts"} & each.keys() for each in said):
        return None
    said.sort(key=lambda each: float(at) if isinstance(at := each.get("created_at"), int | float) else 0.0)
    messages: list[JsonValue] = []
    for each in said:
        messages.append({"role": "user", "content": each["query"]})
        for number, thought in enumerate(objects_in(each.get("agent_thoughts"))):
            if thought.get("tool"):
                call_id = thought.get("id") or f"{each['id']}-{number}"
                inputs = _decoded(thought.get("tool_input"))
                messages += _call_and_result(call_id, thought["tool"], inputs, thought.get("observation"))
        messages.append({"role": "assistant", "content": each["answer"]})
    name = said[0].get("conversation_id") if isinstance(listed, list) else found["id"]
    failed = said[-1].get("error")
    created = {"created_at": said[0]["created_at"]} if said[0].get("created_at") else {}
    return [{"session_id": name, "messages": messages, **created, **({"error": failed} if failed else {})}]


def _transcript(
    name: JsonValue, asked: list[JsonValue], steps: list[JsonValue], output: JsonValue, more: JsonObject
) -> JsonObject:
    answer = response_text(output)
    said: list[JsonValue] = []
    if output is not None:
        said = [{"role": "assistant", "content": _text(output) if answer is None else answer}]
    named: JsonObject = {"session_id": name} if name else {}
    return {**named, "messages": [*asked, *steps, *said], **more}


def _asked(value: JsonValue) -> list[JsonValue]:
    """Returns the messages that an input has, or the one that its text is; none without either."""
    if messages := _messages(value):
        return [*messages]
    text = request_text(value)
    return [] if value is None else [{"role": "user", "content": _text(value) if text is None else text}]


def _as_request(value: JsonValue) -> JsonValue:
    messages = _messages(value)
    return {"messages": [*messages]} if messages else value


def _messages(value: JsonValue) -> list[JsonObject]:
    listed = value.get("messages", [value]) if isinstance(value, dict) else value
    found = listed if isinstance(listed, list) else []
    messages = [each for each in found if isinstance(each, dict) and "role" in each]
    return messages if len(messages) == len(found) else []


def _unwrapped(value: JsonValue) -> JsonValue:
    """Returns the argument of a function that Langfuse's decorator has recorded; another value unchanged."""
    if not (isinstance(value, dict) and value.keys() == {"args", "kwargs"}):
        return value
    args = value["args"]
    if not args:
        return value["kwargs"]
    return args[0] if isinstance(args, list) and len(args) == 1 and not value["kwargs"] else value


def _decoded(value: JsonValue) -> JsonValue:
    """Returns the list or the object in a text of JSON; another value unchanged."""
    if not (isinstance(value, str) and value.lstrip().startswith(("[", "{"))):
        return value
    try:
        found = read_json(value)
    except ValueError:
        return value
    return value if found.replaced else found.value


def _text(value: JsonValue) -> JsonValue:
    return value if value is None or isinstance(value, str) else write_json(value).decode()


_READERS: Sequence[Callable[[JsonObject], list[JsonObject] | None]] = (
    _of_langfuse,
    _of_promptfoo,
    _of_braintrust,
    _of_dify,
)
