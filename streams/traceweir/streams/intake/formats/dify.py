"""Makes a chat transcript of the messages of a conversation that Dify has logged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.answer_pieces import objects_in
from traceweir.streams.intake.formats.exported_messages import call_message, decoded, result_message

_BETWEEN_TOOLS = ";"
"""What stands between the names of the tools of one thought."""
_RETRIEVED = "retriever_resources"


def conversation_of_dify(said: Sequence[JsonObject], *, is_single: bool) -> JsonObject:
    """Returns the transcript of messages, each of which has a question and its answer.

    Args:
        said: The messages of one conversation.
        is_single: Whether the document is a message and no list, so that its conversation can have others.
    """
    ordered = sorted(said, key=lambda each: float(at) if isinstance(at := each.get("created_at"), int | float) else 0.0)
    messages: list[JsonValue] = []
    for each in ordered:
        messages.append({"role": "user", "content": _content(each, "query", "user")})
        for thought in objects_in(each.get("agent_thoughts")):
            messages += _calls_of(thought, f"{each['id']}-{len(messages)}")
        answered: JsonObject = {"role": "assistant", "content": _content(each, "answer", "assistant")}
        if each.get("error") and each is not ordered[-1]:
            # Only the last turn of a transcript can have failed; of another one it is said that its answer is not whole.
            answered["finish_reason"] = "error"
        messages.append(answered)
    first = ordered[0]
    last = ordered[-1]
    retrieved: list[JsonValue] = [piece for each in ordered for piece in objects_in(each.get(_RETRIEVED))]
    optional: JsonObject = {
        "created_at": first.get("created_at"),
        "error": last.get("error"),
        # Named as a key that is not read.
        _RETRIEVED: retrieved,
    }
    name = first["id"] if is_single else first.get("conversation_id")
    return {"session_id": name, "messages": messages, **{key: value for key, value in optional.items() if value}}


def _content(message: JsonObject, key: str, role: str) -> JsonValue:
    """Returns the text of the user or of the assistant, with the files that belong to it as parts that are no text."""
    files = objects_in(message.get("message_files"))
    own = [each for each in files if each.get("belongs_to") == role or (role == "user" and not each.get("belongs_to"))]
    kinds = (kind if isinstance(kind := each.get("type"), str) and kind else "file" for each in own)
    parts: list[JsonValue] = [{"type": kind} for kind in kinds]
    return [{"type": "text", "text": message[key]}, *parts] if parts else message[key]


def _calls_of(thought: JsonObject, other_id: str) -> Iterator[JsonValue]:
    """Yields the messages of the tools that one thought has called.

    The input and the results are objects with the names of the tools, in which a tool that was called twice has the last
    call alone. Former versions write those of a single tool as they are.
    """
    named = thought.get("tool")
    tools = named.split(_BETWEEN_TOOLS) if isinstance(named, str) and named else []
    inputs = _by_tool(thought.get("tool_input"), tools)
    results = _by_tool(thought.get("observation"), tools)
    call_id = thought.get("id") or other_id
    for number, tool in enumerate(tools):
        own_id = call_id if len(tools) == 1 else f"{call_id}-{number}"
        is_last = tool not in tools[number + 1 :]
        yield call_message(own_id, tool, inputs.get(tool) if is_last else None)
        if is_last and results.get(tool) is not None:
            yield result_message(own_id, results[tool])


def _by_tool(value: JsonValue, tools: Sequence[str]) -> JsonObject:
    found = decoded(value)
    if isinstance(found, dict) and found and found.keys() <= set(tools):
        return found
    return {tools[0]: found} if len(tools) == 1 else {}
