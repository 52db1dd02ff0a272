"""Reads what frameworks keep of a conversation, as chat transcripts: Pydantic AI, Llama Stack and Semantic Kernel."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.answer_pieces import objects_in
from traceweir.streams.intake.formats.exported_messages import as_text, result_message

_TAKEN = "Final result processed."
"""What Pydantic AI returns to the call whose arguments are the answer."""
_TOKENS = {"request_tokens": "input_tokens", "response_tokens": "output_tokens"}
"""Pydantic AI's former names of the numbers of tokens."""
_ENDS = {"out_of_tokens": "length", "end_of_turn": "stop", "end_of_message": "stop"}
"""Why an answer ended, in Llama Stack's words and in OpenAI's."""


def conversation_of_framework(found: JsonObject) -> list[JsonObject] | None:
    """Returns the transcript in what a framework keeps of a conversation, in a list; None for another document."""
    turns = _objects_alone(found.get("turns"))
    if turns and all("input_messages" in each and "output_message" in each for each in turns):
        messages = [message for turn in turns for message in _of_turn(turn)]
        return [{**{key: value for key, value in found.items() if key != "turns"}, "messages": [*messages]}]
    listed = _objects_alone(found.get("messages"))
    if listed and all(map(is_message_of_pydantic_ai, listed)):
        return [{**found, "messages": [*_of_pydantic_ai(listed)]}]
    if listed and all(map(is_message_of_semantic_kernel, listed)):
        return [{**found, "messages": [_of_semantic_kernel(each) for each in listed]}]
    return None


def _objects_alone(value: JsonValue) -> list[JsonObject]:
    """Returns the objects in a list that has nothing else; none for another value."""
    found = [*objects_in(value)]
    return found if isinstance(value, list) and len(found) == len(value) else []


def is_message_of_pydantic_ai(found: JsonObject) -> bool:
    """Returns whether a document is a message of Pydantic AI."""
    parts = _objects_alone(found.get("parts"))
    return bool(parts) and found.get("kind") in ("request", "response") and all("part_kind" in each for each in parts)


def is_message_of_semantic_kernel(found: JsonObject) -> bool:
    """Returns whether a document is a message of a ChatHistory of Semantic Kernel."""
    named = _named(found)
    items = _objects_alone(named.get("items"))
    return (
        "role" in named and bool(items) and all(not each.keys().isdisjoint(("content_type", "$type")) for each in items)
    )


def _of_pydantic_ai(listed: list[JsonObject]) -> Iterator[JsonObject]:
    parts = [part for message in listed for part in objects_in(message.get("parts"))]
    taken = {_call_of(part) for part in parts if part.get("content") == _TAKEN}
    for message in listed:
        inner = [*objects_in(message.get("parts"))]
        if message["kind"] == "request":
            yield from (read for part in inner if part.get("content") != _TAKEN for read in _of_request(part))
            continue
        usage = message.get("usage")
        counts = {_TOKENS.get(key, key): each for key, each in usage.items()} if isinstance(usage, dict) else {}
        about: JsonObject = {key: message[key] for key in ("timestamp", "finish_reason") if message.get(key)}
        content: list[JsonValue] = [_of_response(part, taken) for part in inner]
        yield {"role": "assistant", "content": content, "usage": counts, "model": message.get("model_name"), **about}


def _call_of(part: JsonObject) -> tuple[str, str]:
    """Returns the id and the tool of a call: without ids, the tool alone tells which call had its answer."""
    return str(part.get("tool_call_id")), str(part.get("tool_name"))


def _of_request(part: JsonObject) -> Iterator[JsonObject]:
    """Yields the message that a part of a request is: of the user, of a tool, or none."""
    at: JsonObject = {"timestamp": part["timestamp"]} if part.get("timestamp") else {}
    content = part.get("content")
    match part["part_kind"]:
        case "system-prompt":
            return
        case "user-prompt":
            pieces: list[JsonValue] = [
                {"type": each.get("kind", "part")} if isinstance(each, dict) else each
                for each in (content if isinstance(content, list) else [content])
            ]
            yield {"role": "user", "content": pieces, **at}
        case "tool-return" | "retry-prompt" if part.get("tool_name"):
            failed = part["part_kind"] == "retry-prompt" or part.get("outcome", "success") != "success"
            yield {**result_message(part.get("tool_call_id"), content, failed=failed), "name": part["tool_name"], **at}
        case kind:
            # What the framework says to the model in the user's name, for example that an answer is not valid.
            yield {"role": "assistant", "content": [{"type": str(kind)}]}


def _of_response(part: JsonObject, taken: set[tuple[str, str]]) -> JsonObject:
    """Returns a part of a response as a part of a chat message."""
    name: JsonObject = {"id": part.get("tool_call_id"), "name": part.get("tool_name")}
    match part["part_kind"]:
        case "text" | "thinking" as kind:
            return {"type": kind, "text": part.get("content")}
        case "tool-call" if _call_of(part) in taken:
            return {"type": "text", "text": as_text(part.get("args"))}
        case "tool-call" | "builtin-tool-call":
            return {"type": "tool_call", **name, "arguments": part.get("args")}
        case "builtin-tool-return":
            return {
                "type": "tool_result",
                "tool_call_id": name["id"],
                "name": name["name"],
                "content": part.get("content"),
            }
        case kind:
            return {"type": str(kind)}


def _of_turn(turn: JsonObject) -> Iterator[JsonObject]:
    """Yields the messages of a turn of Llama Stack."""
    asked = [*objects_in(turn.get("input_messages"))]
    for place, each in enumerate(asked):
        yield {**each, "timestamp": turn.get("started_at")} if place == 0 else each
    answer = turn.get("output_message")
    said: list[JsonObject] = []
    for step in objects_in(turn.get("steps")):
        response = step.get("model_response")
        if isinstance(response, dict):
            said.append(_ended(response))
        elif "tool_responses" in step:
            said += [{"role": "tool", **each} for each in objects_in(step["tool_responses"])]
        else:
            said.append({"role": "assistant", "content": [{"type": str(step.get("step_type"))}]})
    last = next((each for each in reversed(said) if each["role"] == "assistant"), None)
    if isinstance(answer, dict) and (last is None or last.get("content") != answer.get("content")):
        said.append(_ended(answer))
    if said and turn.get("completed_at"):
        said[-1] = {**said[-1], "timestamp": turn["completed_at"]}
    yield from said


def _ended(message: JsonObject) -> JsonObject:
    others: JsonObject = {key: value for key, value in message.items() if key != "stop_reason"}
    reason = str(message.get("stop_reason"))
    return {"role": "assistant", **others, "finish_reason": _ENDS.get(reason, reason)}


def _named(found: JsonObject) -> JsonObject:
    """Returns an object with keys as JSON has them, where .NET writes its own names."""
    return {f"{key[:1].lower()}{key[1:]}": value for key, value in found.items()}


def _of_semantic_kernel(message: JsonObject) -> JsonObject:
    named = _named(message)
    role = named["role"]
    role = _named(role).get("label") if isinstance(role, dict) else role
    content: list[JsonValue] = []
    for item in map(_named, objects_in(named["items"])):
        kind = str(item.get("content_type", item.get("$type")))
        plugin = item.get("plugin_name", item.get("pluginName"))
        function = item.get("function_name", item.get("functionName", item.get("name")))
        name = f"{plugin}-{function}" if plugin else function
        match kind:
            case "text" | "TextContent":
                content.append({"type": "text", "text": item.get("text")})
            case "function_call" | "FunctionCallContent":
                content.append(
                    {"type": "tool_call", "id": item.get("id"), "name": name, "arguments": item.get("arguments")}
                )
            case "function_result" | "FunctionResultContent":
                result: JsonObject = {
                    "tool_call_id": item.get("callId", item.get("call_id", item.get("id"))),
                    "name": name,
                }
                content.append({"type": "tool_result", **result, "content": item.get("result")})
            case _:
                content.append({"type": kind})
    others: JsonObject = {key: value for key, value in named.items() if key in ("metadata", "finish_reason", "name")}
    return {**others, "role": role, "content": content}
