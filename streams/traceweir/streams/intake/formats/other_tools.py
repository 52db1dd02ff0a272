"""Documents that other tools write and no format reads: what they are, and what to do with them."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.base import Sureness
from traceweir.streams.intake.formats.call_logs import is_call_log, shown_call
from traceweir.streams.intake.formats.other_document import OtherDocument, possible

_AS_CHAT = 'write what was asked, called and answered as a chat transcript, {"messages": [...]}'
_PAIRS = (("question", "answer"), ("prompt", "completion"), ("instruction", "output"), ("query", "answer"))
"""The names under which data sets have a question and an answer."""


def _is_log_of_openai_evals(found: JsonObject) -> Sureness:
    is_event = {"run_id", "event_id", "sample_id"} <= found.keys()
    is_frame = len(found) == 1 and isinstance(found.get("spec", found.get("final_report")), dict)
    return possible(is_event or is_frame or found.get("object") == "eval.run.output_item")


def _is_sample_of_openai_evals(found: JsonObject) -> Sureness:
    return possible("input" in found and "ideal" in found)


def _is_answer_of_cohere(found: JsonObject) -> Sureness:
    message = found.get("message")
    of_v2 = isinstance(message, dict) and message.get("role") == "assistant" and "finish_reason" in found
    return possible(of_v2 or {"text", "generation_id"} <= found.keys())


def _is_answer_of_mistral(found: JsonObject) -> Sureness:
    return possible(isinstance(found.get("outputs"), list) and "conversation_id" in found)


def _is_activity(found: JsonObject) -> Sureness:
    first = _first(found.get("activities"))
    activity = first if isinstance(first, dict) else found
    has_sender = isinstance(activity.get("from"), dict)
    return possible(has_sender and isinstance(activity.get("type"), str) and "text" in activity)


def _is_row_of_azure(found: JsonObject) -> Sureness:
    return possible({"query", "response"} <= found.keys() and "messages" not in found)


def _is_answer_of_bedrock_agent(found: JsonObject) -> bool:
    trace = found.get("trace")
    steps = {"orchestrationTrace", "preProcessingTrace", "postProcessingTrace", "routingClassifierTrace"}
    inner = trace.get("trace") if isinstance(trace, dict) else None
    kinds = {*(trace if isinstance(trace, dict) else ()), *(inner if isinstance(inner, dict) else ())}
    return not kinds.isdisjoint(steps)


def _is_message_of_slack(found: JsonObject) -> Sureness:
    has_sender = not found.keys().isdisjoint({"user", "bot_id"})
    return possible(found.get("type") == "message" and "ts" in found and has_sender)


def _is_output_of_crewai(found: JsonObject) -> Sureness:
    is_task = {"raw", "agent", "description"} <= found.keys()
    is_line = {"task_name", "task", "agent", "status"} <= found.keys()
    return possible(is_task or is_line or isinstance(found.get("tasks_output"), list))


def _is_memory_of_smolagents(found: JsonObject) -> Sureness:
    steps = [each for each in (found, _second(found.get("steps"))) if isinstance(each, dict)]
    return possible(any("step_number" in each and "observations" in each for each in steps))


def _is_message_of_autogen(found: JsonObject) -> Sureness:
    def is_one(message: JsonObject) -> bool:
        kind = message.get("type")
        is_named = isinstance(kind, str) and kind.endswith(("Message", "Event"))
        return is_named and isinstance(message.get("source"), str) and "content" in message

    return _alone_or_listed(found, is_one)


def _is_export_of_assistant(found: JsonObject) -> Sureness:
    return possible(isinstance(found.get("mapping"), dict) or isinstance(found.get("chat_messages"), list))


def _is_tracker_of_rasa(found: JsonObject) -> Sureness:
    first = _first(found.get("events"))
    return possible("sender_id" in found and isinstance(first, dict) and "event" in first)


def _is_task_of_a2a(found: JsonObject) -> Sureness:
    result = found.get("result") if "jsonrpc" in found else found
    return possible(isinstance(result, dict) and {"contextId", "status"} <= result.keys())


def _is_event_of_agui(found: JsonObject) -> Sureness:
    kind = found.get("type")
    begins = ("TEXT_MESSAGE_", "TOOL_CALL_", "RUN_", "STEP_", "STATE_", "MESSAGES_")
    return possible(isinstance(kind, str) and kind.startswith(begins))


def _is_message_of_letta(found: JsonObject) -> Sureness:
    return _alone_or_listed(found, lambda message: isinstance(message.get("message_type"), str))


def _is_session_of_gemini_cli(found: JsonObject) -> bool:
    message = _first_without_role(found)
    return "sessionId" in found and message is not None and message.get("type") in ("user", "gemini")


def _is_chat_of_copilot(found: JsonObject) -> Sureness:
    first = _first(found.get("requests"))
    return possible(isinstance(first, dict) and {"message", "response"} <= first.keys())


def _is_chat_history_of_cohere(found: JsonObject) -> Sureness:
    first = _first(found.get("chat_history"))
    return possible(isinstance(first, dict) and {"role", "message"} <= first.keys())


def _is_call_of_weave(found: JsonObject) -> bool:
    return str(found.get("op_name")).startswith("weave:///") and "inputs" in found


def _is_event_of_realtime(found: JsonObject) -> bool:
    kind = found.get("type")
    begins = ("conversation.item.", "input_audio_buffer.", "session.")
    # An event of Traceweir names its session.
    return isinstance(kind, str) and kind.startswith(begins) and "session_id" not in found


def _is_pair(found: JsonObject) -> Sureness:
    return possible(any(question in found and answer in found for question, answer in _PAIRS))


def _alone_or_listed(found: JsonObject, is_one: Callable[[JsonObject], bool]) -> Sureness:
    """Returns how sure it is that a document is such a message, or that its `messages` are; those with roles are a chat."""
    message = _first_without_role(found)
    if message is not None:
        return Sureness.of(is_one(message))
    return possible("messages" not in found and "role" not in found and is_one(found))


def _first_without_role(found: JsonObject) -> JsonObject | None:
    """Returns the first of the `messages` if each has neither `role` nor `message`; None otherwise."""
    listed = found.get("messages")
    if not isinstance(listed, list) or not listed:
        return None
    messages = [each for each in listed if isinstance(each, dict) and each.keys().isdisjoint({"role", "message"})]
    return messages[0] if len(messages) == len(listed) else None


def _is_of_voice(found: JsonObject) -> Sureness:
    said = _first(found.get("transcript_object", found.get("transcript")))
    of_transcript = isinstance(said, dict) and "role" in said and not said.keys().isdisjoint({"message", "words"})
    of_bot = any(each.get("role") == "bot" and isinstance(each.get("message"), str) for each in _without_content(found))
    return Sureness.CERTAIN if of_bot else possible(of_transcript)


def _is_of_desk(found: JsonObject) -> Sureness:
    answer = found.get("queryResult")
    of_dialogflow = isinstance(answer, dict) and not answer.keys().isdisjoint({"queryText", "responseMessages"})
    of_botpress = any({"direction", "payload"} <= each.keys() for each in _without_content(found)[:1])
    of_intercom = isinstance(found.get("conversation_parts"), dict)
    return Sureness.CERTAIN if of_botpress else possible(of_dialogflow or of_intercom)


def _without_content(found: JsonObject) -> list[JsonObject]:
    """Returns the `messages` if none of them has a content, as a chat transcript has; none otherwise."""
    listed = found.get("messages")
    messages = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [] if any("content" in each for each in messages) else messages


def _first(listed: JsonValue) -> JsonValue:
    return listed[0] if isinstance(listed, list) and listed else None


def _second(listed: JsonValue) -> JsonValue:
    # The first step of an agent is its task.
    return listed[1] if isinstance(listed, list) and len(listed) > 1 else _first(listed)


OF_OTHER_TOOLS = (
    OtherDocument(
        "a log of a model call without messages and the answer of a chat",
        "logs with the messages of the request and the response of a chat completion, a response, a message or generateContent "
        "are read; embeddings, moderation, images and audio have no answer of an agent: remove the line",
        is_call_log,
        shown_call,
    ),
    OtherDocument("a line of a log of OpenAI Evals", _AS_CHAT, _is_log_of_openai_evals),
    OtherDocument(
        "a sample of a data set of OpenAI Evals, which has no answer",
        "add the answer of the agent, and write both as a row with the columns request, response and expected_response",
        _is_sample_of_openai_evals,
    ),
    OtherDocument("an answer of Cohere's API", f"it has no question: {_AS_CHAT}", _is_answer_of_cohere),
    OtherDocument("an answer of Mistral's conversations", f"it has no question: {_AS_CHAT}", _is_answer_of_mistral),
    OtherDocument(
        "activities of the Bot Framework or of Copilot Studio",
        f"{_AS_CHAT}: the `text` of each message, with the role user or assistant",
        _is_activity,
    ),
    OtherDocument(
        "a row of Azure AI Evaluation",
        "name its texts request and response, so that it is a row of Agent Evaluation; if `query` and `response` are lists "
        'of messages, put all of them into one object: {"messages": [...]}',
        _is_row_of_azure,
    ),
    OtherDocument(
        "an answer or a trace of an agent of Amazon Bedrock",
        f"send its spans, or {_AS_CHAT}",
        _is_answer_of_bedrock_agent,
    ),
    OtherDocument(
        "a message of an export of Slack",
        f"nothing says which messages are those of the agent: {_AS_CHAT}",
        _is_message_of_slack,
    ),
    OtherDocument(
        "an output of CrewAI",
        f"it has no calls of tools: send spans, or {_AS_CHAT}",
        _is_output_of_crewai,
    ),
    OtherDocument("the memory of an agent of smolagents", f"send its spans, or {_AS_CHAT}", _is_memory_of_smolagents),
    OtherDocument("a message of AutoGen", f"send its spans, or {_AS_CHAT}", _is_message_of_autogen),
    OtherDocument(
        "an exported conversation of ChatGPT or Claude",
        f"{_AS_CHAT}: of ChatGPT, the branch that was shown",
        _is_export_of_assistant,
    ),
    OtherDocument("a tracker of Rasa", _AS_CHAT, _is_tracker_of_rasa),
    OtherDocument(
        "a call of a voice agent of Vapi, Retell or ElevenLabs",
        f"{_AS_CHAT}: the text of each message as its `content`, with the role user or assistant",
        _is_of_voice,
    ),
    OtherDocument("a conversation of Dialogflow, Botpress or Intercom", _AS_CHAT, _is_of_desk),
    OtherDocument("a task of A2A", f"send the spans of the agent, or {_AS_CHAT}", _is_task_of_a2a),
    OtherDocument("an event of AG-UI", f"send the spans of the agent, or {_AS_CHAT}", _is_event_of_agui),
    OtherDocument("messages of Letta", f"{_AS_CHAT}: each with a `role`", _is_message_of_letta),
    OtherDocument("a session of Gemini CLI", f"{_AS_CHAT}: each with a `role`", _is_session_of_gemini_cli),
    OtherDocument("an exported chat of GitHub Copilot", _AS_CHAT, _is_chat_of_copilot),
    OtherDocument(
        "a chat history of Cohere's first API", f"{_AS_CHAT}: user and assistant", _is_chat_history_of_cohere
    ),
    OtherDocument("a call of Weave", f"send spans, or {_AS_CHAT}", _is_call_of_weave),
    OtherDocument(
        "an event of OpenAI's Realtime API",
        f"{_AS_CHAT}: the transcript of each item is its text",
        _is_event_of_realtime,
    ),
    OtherDocument(
        "a pair of a question and an answer",
        "name them request and response, so that it is a row of Agent Evaluation",
        _is_pair,
    ),
)
"""The kinds; last those for which others can be taken."""
