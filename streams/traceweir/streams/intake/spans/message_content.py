"""Reads the content of a message: texts, tool calls, results, and parts that are no text, in the shapes of all APIs."""

from __future__ import annotations

from typing import Any

from traceweir.schemas.part_kinds import MEDIA_KINDS, transcript_in
from traceweir.schemas.reasoning_text import REASONING_KINDS
from traceweir.schemas.result_parts import has_media
from traceweir.schemas.text import printable
from traceweir.streams.intake.spans.ai_sdk_messages import read_ui_tool, unframed_output
from traceweir.streams.intake.spans.attributes import ABSENT, structure, text_of
from traceweir.streams.intake.spans.hosted_tools import read_hosted
from traceweir.streams.intake.spans.message import SpanMessage, ToolResult
from traceweir.streams.intake.spans.message_calls import read_call

MAX_DEPTH = 12
KIND_CHARS = 40
"""Maximum length of the name of an unknown kind of part."""
_NO_CONTENT = {
    *("cachePoint", "cache_point", "step-start", "text", "output_text", "input_text"),
    *("tool-approval-request", "tool-approval-response"),
}
"""The kinds of blocks that tell only the provider something, or whose text is not there."""
_BLOCK_KINDS = MEDIA_KINDS | {
    *("text", "tool_use", "tool_result", "tool-call", "tool-result", "tool_call", "tool_call_response"),
}
"""The kinds by which a list in a text is that of blocks."""
_CONVERSE_BLOCKS = {
    *("image", "document", "video", "audio", "reasoningContent", "citationsContent", "guardContent", "cachePoint"),
    "searchResult",
}
"""The keys of blocks of a Converse API, beside texts, calls and results: a block has one of them, and no kind."""
_SAY_NOTHING = REASONING_KINDS | {
    *("type", "role", "id", "index", "name", "metadata", "text", "content", "thoughtSignature", "thought_signature"),
    *(
        "cachePoint",
        "cache_point",
        "cache_control",
        "videoMetadata",
        "video_metadata",
        "mediaResolution",
        "media_resolution",
    ),
}
"""The keys of a block without a kind that are no kind: what is beside its content, and content that is empty."""
_RESULT_BLOCKS = ("toolResult", "functionResponse", "function_response", "tool_call_result", "toolResponse")
"""The keys of blocks with a tool's result: of Bedrock, Gemini, Haystack and Genkit."""


def read_content(content: Any, message: SpanMessage, depth: int) -> None:
    """Adds the texts, the calls and the results of a message's content."""
    if depth > MAX_DEPTH:
        return
    if isinstance(content, str):
        blocks = structure(content) if message.role != "system" and content.startswith('[{"') else content
        known = isinstance(blocks, list) and blocks and all(isinstance(b, dict) and _known(b) for b in blocks)
        if not known:
            message.add_text(content)
            return
        content = blocks
    if isinstance(content, dict):
        content = content.get("parts", [content])
    if isinstance(content, list):
        for block in content:
            if isinstance(block, str):
                message.add_text(block)
            elif isinstance(block, dict):
                _read_block(block, message, depth)


def _known(block: dict[str, Any]) -> bool:
    if {"toolUse", "toolResult", "functionCall", "functionResponse", "function_call"} & set(block):
        return True
    if set(block) <= {"text"}:
        return bool(block)
    return is_converse_block(block) or text_of(block.get("type")) in _BLOCK_KINDS


def is_converse_block(block: dict[str, Any]) -> bool:
    """Returns whether an object is a block of a Converse API that is no text, such as an image or reasoning."""
    return len(block) == 1 and all(key in _CONVERSE_BLOCKS and isinstance(block[key], dict) for key in block)


def _read_block(block: dict[str, Any], message: SpanMessage, depth: int) -> None:
    # OpenInference.
    if isinstance(block.get("message_content"), dict):
        block = block["message_content"]
    if read_hosted(block, message) or read_ui_tool(block, message):
        return
    call = next(
        (
            block[k]
            for k in ("toolUse", "functionCall", "function_call", "tool_call", "toolRequest")
            if _is_map(block, k)
        ),
        None,
    )
    result = next((block[k] for k in _RESULT_BLOCKS if _is_map(block, k)), None)
    kind = str(block.get("type", ""))
    if call is not None:
        read_call(call, message)
    elif result is not None:
        _read_result(result, message, framed="functionResponse" in block or "function_response" in block)
    elif kind in ("tool_use", "tool-call", "tool_call", "function_call"):
        read_call(block, message)
    elif kind in ("tool_result", "tool-result", "tool_call_response", "function_call_output"):
        _read_result(block, message)
    elif kind in REASONING_KINDS:
        return
    elif _is_map(block, "citationsContent"):
        # The answer's text, beside its sources.
        read_content(block["citationsContent"].get("content"), message, depth + 1)
    elif kind == "refusal" and isinstance(block.get("refusal"), str):
        message.texts.append(block["refusal"])
    elif kind in MEDIA_KINDS and not isinstance(block.get("text"), str):
        if spoken := transcript_in(block):
            message.texts.append(spoken)
        else:
            message.unread[kind] += 1
    elif isinstance(block.get("text"), str):
        if not block.get("thought"):
            message.in_pieces = message.in_pieces or bool(block.get("citations"))
            message.add_text(block["text"])
    elif isinstance(block.get("content"), str | list | dict) and block.get("content") != "":
        read_content(block["content"], message, depth + 1)
    elif kind in ("text", "output_text", "input_text") and not {"text", "content"} & set(block):
        message.hidden = True
    elif not kind or kind not in _NO_CONTENT:
        message.unread.update([printable(kind, KIND_CHARS)] if kind else _kinds_without_type(block))


def _kinds_without_type(block: dict[str, Any]) -> list[str]:
    """Returns the kinds of a block that has no type, which are its keys."""
    return [printable(key, KIND_CHARS) for key, value in block.items() if value and key not in _SAY_NOTHING]


def _is_map(block: dict[str, Any], key: str) -> bool:
    return isinstance(block.get(key), dict)


def _read_result(value: dict[str, Any], message: SpanMessage, *, framed: bool = False) -> None:
    keys = ("id", "tool_use_id", "toolUseId", "toolCallId", "call_id", "tool_call_id", "ref")
    # Haystack: the call.
    origin = value["origin"] if isinstance(value.get("origin"), dict) else {}
    fields = {**origin, **value}
    call = text_of(next((fields[key] for key in keys if isinstance(fields.get(key), str)), ""))
    name = text_of(fields.get("name") or fields.get("toolName") or origin.get("tool_name") or "")
    found = next((value[key] for key in ("response", "result", "output", "content") if key in value), ABSENT)
    found, is_error = unframed_output(found)
    are_blocks = isinstance(found, list) and found and all(isinstance(each, dict) and _known(each) for each in found)
    if are_blocks and not has_media(found):
        inner = SpanMessage("tool")
        read_content(found, inner, 1)
        found = inner.text if inner.texts else json_blocks(found)
    failed = is_error or value.get("status") == "error" or value.get("is_error") is True or value.get("error") is True
    message.hidden = message.hidden or found is ABSENT
    tells = value.get("type") != "tool_call_response" or not {"status", "is_error", "error"}.isdisjoint(value)
    message.results.append(ToolResult(call, name, found, failed, framed, tells))


def json_blocks(blocks: list[Any]) -> Any:
    """Returns the value of Bedrock's block `{"json": x}`; other blocks unchanged."""
    return blocks[0]["json"] if len(blocks) == 1 and isinstance(blocks[0], dict) and "json" in blocks[0] else blocks
