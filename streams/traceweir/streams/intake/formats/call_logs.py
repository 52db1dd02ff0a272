"""Takes the stored answer with its request out of a log of one model call, as LiteLLM, Helicone and proxies write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.answer_pieces import STORED, EventsOfAnthropic
from traceweir.streams.intake.formats.batch_lines import FIRST_FAILED_STATUS, error_of_status
from traceweir.streams.intake.formats.chat_keys import MESSAGE_LISTS
from traceweir.streams.intake.formats.chat_times import duration_of, time_after, time_of
from traceweir.streams.intake.formats.exported_messages import decoded, is_of_user, question_place
from traceweir.streams.intake.formats.open_streams import answer_in
from traceweir.streams.intake.formats.shown_text import described

_REQUESTS = (*MESSAGE_LISTS, "input", "prompt")
"""The keys under which a request has its messages."""
_SESSIONS = ("id", "request_id", "requestId", "litellm_call_id", "trace_id")
"""The keys under which a log has the id of the call."""
_TIMES = ("startTime", "request_created_at", "created_at")
_ENDS = ("endTime", "response_created_at")
_MILLISECONDS = ("delay_ms", "latency")
"""The keys under which Helicone has how long the call took; LiteLLM has `response_time`, in seconds."""
_USERS = ("end_user", "request_user_id", "user_id")
_MODELS = ("response_model", "model", "request_model")
"""The keys under which a log has the model."""
_TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")
_OF_LITELLM = {
    *("id", "trace_id", "litellm_call_id", "call_type", "stream", "response_cost", "cost_breakdown", "status_fields"),
    *("response_cost_failure_debug_info", "status", "custom_llm_provider", "total_tokens", "prompt_tokens"),
    *("completion_tokens", "startTime", "endTime", "completionStartTime", "response_time", "model_map_information"),
    *("model_id", "model_group", "api_base", "cache_hit", "cache_key", "saved_cache_cost", "request_tags", "end_user"),
    *("requester_ip_address", "user_agent", "messages", "response", "error_str", "error_information", "metadata"),
    *("model_parameters", "hidden_params", "guardrail_information", "standard_built_in_tools_params", "exception"),
}
_OF_BODIES = {
    *("request_id", "response_id", "request_created_at", "response_created_at", "request_body", "response_body"),
    *(
        "requestBody",
        "responseBody",
        "requestId",
        "request_path",
        "response_status",
        "request_user_id",
        "helicone_user",
    ),
    *(
        "request_properties",
        "request_feedback",
        "latency",
        "delay_ms",
        "prompt_tokens",
        "completion_tokens",
        "provider",
    ),
    *("total_tokens", "target_url", "request_model", "response_model", "time_to_first_token", "scores", "properties"),
    *("country_code", "asset_ids", "asset_urls", "assets", "cost", "costUSD", "cache_enabled", "user_id", "status"),
    *("request", "response", "providerRequest", "providerResponse", "timing", "path", "method", "error"),
}
_ERRORS = ("error_str", "error", "exception")


class LoggedCall(NamedTuple):
    """The two bodies of a model call."""

    request: JsonValue
    response: JsonValue
    status: JsonValue = None
    """The status of the HTTP response, if the log has it."""


def stored_in_call_log(found: JsonObject) -> JsonObject | None:
    """Returns the stored answer, or the error, in a log of one model call, with the messages of its request.

    The id of the call is the session. None: the document is no such log, or has neither an answer of a chat nor an error.
    """
    call = next((call for read in _READERS if (call := read(found)) is not None), None)
    if call is None or not isinstance(call.request, dict):
        return None
    asked: JsonObject = {name: call.request[name] for name in _REQUESTS if call.request.get(name)}
    answer = _answer_of(call.response)
    error = _error_of(found, call) if answer is None else None
    if not asked or (answer is None and error is None):
        return None
    ended: JsonObject = {"error": error} if answer is None else {**_measured(found, call.request), **answer}
    if isinstance(asked.get("input"), list) and ended.get("object") != "response":
        asked = {"messages": asked["input"]}
    began, ended_at = _times_of(found)
    if began is not None and ended_at is not None and answer is not None:
        asked = _with_time(asked, began)
        ended = _answer_with_time(ended, ended_at)
    if call.request is found:
        others: JsonObject = {name: value for name, value in found.items() if name != "response" and value is not None}
        return {**ended, **others, **asked, "object": STORED if answer is None else answer["object"]}
    # What else the log has is read, or named, as in a transcript.
    others = {name: value for name, value in found.items() if name not in _OF_LITELLM | _OF_BODIES}
    return {**others, **ended, **asked, **_about(found)}


def is_call_log(found: JsonObject) -> bool:
    """Returns whether a document is a log of one model call, whatever it has in place of an answer."""
    return _of_litellm(found) is not None or _of_bodies(found) is not None


def shown_call(found: JsonObject) -> str:
    """Returns what a log has in place of the answer of a chat, for a message."""
    call = _of_litellm(found) or _of_bodies(found)
    return "" if call is None else f"its response is {described(call.response)}"


def _measured(found: JsonObject, request: JsonObject) -> JsonObject:
    """Returns the model and the tokens of a log, which count where its response has none."""
    named: tuple[JsonValue, ...] = (*(found.get(key) for key in _MODELS), request.get("model"))
    model = next((each for each in named if isinstance(each, str) and each), None)
    usage: JsonObject = {key: found[key] for key in _TOKENS if found.get(key)}
    return {**({"model": model} if model else {}), **({"usage": usage} if usage else {})}


def _about(found: JsonObject) -> JsonObject:
    """Returns whose call a log has, and when it began."""
    about: JsonObject = {}
    for name, keys in (("session_id", _SESSIONS), ("user_id", _USERS)):
        value = next((found[key] for key in keys if isinstance(found.get(key), str) and found[key]), None)
        about |= {} if value is None else {name: value}
    created = next((found[key] for key in _TIMES if time_of(found.get(key)) is not None), None)
    return about if created is None else {**about, "created_at": created}


def _times_of(found: JsonObject) -> tuple[datetime | None, datetime | None]:
    """Returns when a call began and ended; None for each that the log does not say."""
    timing = found.get("timing")
    values = (
        {key: _parts_of_time(timing.get(key)) for key in ("startTime", "endTime")}
        if isinstance(timing, dict)
        else found
    )
    began = next((time for key in _TIMES if (time := time_of(values.get(key))) is not None), None)
    ended = next((time for key in _ENDS if (time := time_of(values.get(key))) is not None), None)
    if began is None or ended is not None:
        return began, ended
    durations = [duration_of(found.get("response_time"))]
    if "request_created_at" in found:
        durations += [duration_of(found.get(key), per_second=1000) for key in _MILLISECONDS]
    lasted = next((each for each in durations if each is not None), None)
    return began, None if lasted is None else time_after(began, lasted)


def _parts_of_time(value: JsonValue) -> JsonValue:
    """Returns the seconds since 1970 of a time that Helicone's loggers write in two parts; another value unchanged."""
    seconds = value.get("seconds") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(seconds, int):
        return value
    rest = value.get("milliseconds")
    return seconds + (rest / 1000 if isinstance(rest, int) else 0)


def _with_time(asked: JsonObject, began: datetime) -> JsonObject:
    """Returns the messages of a request with the time of the call at the newest one of the user."""
    found: JsonObject = {}
    for name, value in asked.items():
        listed: JsonValue = (
            [{"role": "user", "content": value}] if isinstance(value, str) and name == "input" else value
        )
        if isinstance(listed, list):
            asked_at = question_place([each if isinstance(each, dict) else {} for each in listed])
            listed = [
                {"timestamp": began.isoformat(), **each}
                if place == asked_at and isinstance(each, dict) and is_of_user(each)
                else each
                for place, each in enumerate(listed)
            ]
        found[name] = listed
    return found


def _answer_with_time(stored: JsonObject, ended: datetime) -> JsonObject:
    """Returns a stored answer with the time at which the call ended at its messages."""
    time: JsonObject = {"timestamp": ended.isoformat()}
    found = dict(stored)
    for name in ("choices", "candidates"):
        if isinstance(listed := found.get(name), list):
            inner = "message" if name == "choices" else "content"
            found[name] = [
                {**each, inner: {**time, **content}}
                if isinstance(each, dict) and isinstance(content := each.get(inner), dict)
                else each
                for each in listed
            ]
    if isinstance(items := found.get("output"), list):
        found["output"] = [{**time, **each} if isinstance(each, dict) and each.get("role") else each for each in items]
    return found


def _error_of(found: JsonObject, call: LoggedCall) -> JsonValue:
    """Returns the error with which a call has ended; None without one."""
    inner = call.response.get("error") if isinstance(call.response, dict) else None
    given = inner or next((found[name] for name in _ERRORS if found.get(name)), None)
    if given:
        return given
    status = call.status
    if isinstance(status, int) and status >= FIRST_FAILED_STATUS:
        return error_of_status(status, call.response)
    return "the request has failed" if found.get("status") == "failure" else None


def _of_litellm(found: JsonObject) -> LoggedCall | None:
    # StandardLoggingPayload.
    if not (isinstance(found.get("call_type"), str) and {"messages", "response"} <= found.keys()):
        return None
    messages = decoded(found["messages"])
    is_body = isinstance(messages, dict)
    return LoggedCall(messages if is_body else {"messages": _as_messages(messages)}, decoded(found["response"]))


def _as_messages(value: JsonValue) -> JsonValue:
    return [{"role": "user", "content": value}] if isinstance(value, str) and value else value


def _of_bodies(found: JsonObject) -> LoggedCall | None:
    # Rows of Helicone, and of other proxies.
    for asked, answered in (("request_body", "response_body"), ("requestBody", "responseBody")):
        if asked in found and answered in found:
            status = found.get("response_status", found.get("status"))
            return LoggedCall(decoded(found[asked]), decoded(found[answered]), status)
    return None


def _of_exchange(found: JsonObject) -> LoggedCall | None:
    # A request and a response of HTTP, each with its body; those of Helicone's own loggers have it as `json`.
    for asked, answered in (("request", "response"), ("providerRequest", "providerResponse")):
        request = found.get(asked)
        response = found.get(answered)
        for body in ("body", "json"):
            if isinstance(request, dict) and isinstance(response, dict) and body in request and body in response:
                status = response.get("status", response.get("status_code"))
                return LoggedCall(decoded(request[body]), decoded(response[body]), status)
    return None


def _of_request_with_response(found: JsonObject) -> LoggedCall | None:
    # The messages beside the whole answer of the API.
    response = found.get("response")
    is_row = not found.keys().isdisjoint({"request", "inputs", "trace"})
    is_asked = any(isinstance(found.get(name), list) for name in (*MESSAGE_LISTS, "input"))
    if is_row or not is_asked or not isinstance(response, dict) or _answer_of(response) is None:
        return None
    return LoggedCall(found, response)


_READERS: tuple[Callable[[JsonObject], LoggedCall | None], ...] = (
    _of_litellm,
    _of_bodies,
    _of_exchange,
    _of_request_with_response,
)


def _answer_of(body: JsonValue) -> JsonObject | None:
    """Returns the body of a response as a stored answer; None if it has no answer of a chat."""
    if (streamed := answer_in(body.get("streamed_data") if isinstance(body, dict) else body)) is not None:
        return streamed
    if isinstance(body, str) and body:
        return {"object": STORED, "choices": [{"message": {"role": "assistant", "content": body}}]}
    if not isinstance(body, dict):
        return None
    if isinstance(body.get("choices"), list) and body["choices"]:
        return {"object": STORED, **body}
    if body.get("object") == "response":
        return body
    if body.get("role") == "assistant" and isinstance(body.get("content"), list):
        return EventsOfAnthropic.stored(body)
    if isinstance(body.get("candidates"), list) and body["candidates"]:
        return {"object": STORED, **body}
    return None
