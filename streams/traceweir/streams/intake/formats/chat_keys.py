"""The keys of chat transcripts and of their messages: those that are read, and those that are well known and not read."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.text import printable
from traceweir.streams.intake.formats.unread_keys import KnownKeys, UnreadKeys

MESSAGE_LISTS = ("messages", "traj", "contents", "conversations")
"""The keys that can have the messages: of OpenAI and Anthropic, of KnowledgePulse, of Gemini, and of ShareGPT."""
_KEY_CHARS = 40
MESSAGE_TIMES = ("created_at", "createdAt", "timestamp", "create_time")
"""The keys that can have the time of a message."""
_DOCUMENT = KnownKeys(
    "key of a transcript",
    (
        *("candidates", "usageMetadata", "modelId", "modelVersion"),
        *(*MESSAGE_LISTS, "choices", "input", "output", "object", "usage", "metadata", "user", "task_id", "trial"),
        *("session_id", "id", "conversation_id", "created", "created_at", "task_domain", "success", "confidence"),
        *Dimensions.model_fields,
    ),
    (
        # Of a request and of a response.
        *("tools", "functions", "tool_choice", "function_call", "parallel_tool_calls", "system", "system_prompt"),
        *("systemInstruction", "system_instruction", "instructions", "generationConfig", "generation_config"),
        *("safetySettings", "safety_settings", "toolConfig", "tool_config", "cachedContent", "cached_content"),
        *("response_format", "text", "reasoning", "reasoning_effort", "stop", "stop_reason", "stop_sequence"),
        *("stop_sequences", "service_tier", "system_fingerprint", "status", "error", "incomplete_details", "include"),
        *("previous_response_id", "truncation", "prompt", "prompt_cache_key", "safety_identifier", "type", "role"),
        *("thinking", "logit_bias", "modalities", "audio", "request_id", "responseId", "stopReason"),
        *("metrics", "inferenceConfig"),
        # Of a recording or of a data set.
        *("title", "name", "description", "source", "dataset", "split", "language", "tags", "uuid", "url"),
        *("updated_at", "createTime", "updateTime", "timestamp", "start_time", "end_time", "termination_reason"),
        *("reward", "reward_info", "score", "rating", "label", "labels", "info", "task", "category", "difficulty"),
        *("seed", "agent_cost", "user_cost", "duration", "environment_info", "version"),
    ),
)
_MESSAGE = KnownKeys(
    "key of a message",
    (
        *("role", "from", "content", "parts", "value", "tool_calls", "function_call", "tool_call_id", "tool_use_id"),
        *("call_id", "toolCallId", "toolUseId", "toolName", "tool_name", "name", "refusal", "type", "data", "id"),
        *("error", "is_error", "isError", "status", "requestor", "output", "result", "response", *MESSAGE_TIMES),
        *("audio", "toolInvocations", "invalid_tool_calls", "images", "blocks", "missing"),
        *("usage", "usage_metadata", "usageMetadata", "model_calls", "model", "response_metadata"),
    ),
    (
        *("reasoning", "reasoning_content", "reasoning_details", "reasoningContent", "thinking", "annotations"),
        *("additional_kwargs", "metadata", "object"),
        *("stop_reason", "stop_sequence", "index", "logprobs", "finish_reason", "weight", "example"),
        *("artifact", "uuid", "parent_id", "parentUuid", "raw_data", "turn_idx", "cost", "author", "recipient"),
        *("channel", "end_turn", "update_time", "phase", "provider_specific_fields"),
    ),
)


def note_unread_keys(document: JsonObject, unread_keys: UnreadKeys) -> None:
    """Notes the keys of a transcript and of its messages that nothing reads."""
    unread_keys.note(document, _DOCUMENT)
    choices = document.get("choices")
    found = [message for name in MESSAGE_LISTS for message in _listed(document.get(name))]
    found += [choice.get("message") for choice in _listed(choices) if isinstance(choice, dict)]
    for message in found:
        # The items of the Responses API have keys of their own, and a type that tells what they are.
        if isinstance(message, dict) and ("role" in message or "from" in message):
            unread_keys.note(message, _MESSAGE)


_CONTENTS = (
    *("content", "parts", "value", "blocks", "tool_calls", "function_call", "toolInvocations", "refusal", "audio"),
    *("images", "output", "result", "response", "error", "data", "invalid_tool_calls", "additional_kwargs", "text"),
)

_KNOWN_IN_MESSAGE = frozenset((*_MESSAGE.read, *_MESSAGE.ignored))


def other_contents(message: JsonObject) -> list[str]:
    """Returns the keys of lists that no format has in a message, if it has nothing under any key that is read."""
    if any(key in message for key in _CONTENTS):
        return []
    return [
        printable(key, _KEY_CHARS)
        for key, value in message.items()
        if key not in _KNOWN_IN_MESSAGE and isinstance(value, list) and value
    ]


def _listed(found: JsonValue) -> list[JsonValue]:
    return found if isinstance(found, list) else []
