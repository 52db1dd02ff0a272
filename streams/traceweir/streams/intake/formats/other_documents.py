"""Documents that no input format reads, but that people pass to commands: what they are, and where they belong."""

from __future__ import annotations

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.base import Sureness
from traceweir.streams.intake.formats.batch_lines import is_input_of_batch, is_line_of_batch, shown_body
from traceweir.streams.intake.formats.exports import is_step_of_braintrust
from traceweir.streams.intake.formats.framework_histories import (
    is_message_of_pydantic_ai,
    is_message_of_semantic_kernel,
)
from traceweir.streams.intake.formats.langfuse_traces import is_observation_of_langfuse
from traceweir.streams.intake.formats.open_streams import is_piece
from traceweir.streams.intake.formats.other_document import OtherDocument, possible
from traceweir.streams.intake.formats.other_tools import OF_OTHER_TOOLS
from traceweir.streams.intake.formats.run_logs import OF_RUN_LOGS
from traceweir.streams.intake.formats.stored_endings import ADD_QUESTION, WITHOUT_QUESTION, error_alone, shown_error
from traceweir.streams.intake.formats.trajectories import OF_TRAJECTORIES

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_OTLP_KEYS = {
    *("resourceSpans", "resource_spans", "resourceLogs", "resource_logs"),
    *("resourceMetrics", "resource_metrics"),
}


def _is_message(found: JsonObject) -> Sureness:
    has_content = not found.keys().isdisjoint({"content", "tool_calls", "function_call"})
    return possible(found.get("role") in _ROLES and has_content)


def _is_trace_without_type(found: JsonObject) -> Sureness:
    is_untyped = found.keys().isdisjoint({"@type", "type"})
    return possible(isinstance(found.get("steps"), list) and is_untyped and "task" in found)


def _is_run_of_langsmith(found: JsonObject) -> bool:
    return isinstance(found.get("run_type"), str) and not found.keys().isdisjoint({"inputs", "outputs"})


def _is_event_of_dify(found: JsonObject) -> bool:
    return isinstance(found.get("event"), str) and "conversation_id" in found and "query" not in found


def _is_preference(found: JsonObject) -> bool:
    return {"chosen", "rejected"} <= found.keys()


def _is_message_of_thread(found: JsonObject) -> bool:
    listed = found.get("data")
    first = listed[0] if isinstance(listed, list) and listed else found
    return isinstance(first, dict) and first.get("object") == "thread.message"


def _is_test_case(found: JsonObject) -> Sureness:
    of_deepeval = {"input", "actual_output"} <= found.keys()
    of_ragas = "user_input" in found and not found.keys().isdisjoint({"response", "reference", "retrieved_contexts"})
    return possible(of_deepeval or of_ragas or isinstance(found.get("user_input"), list))


def _is_untyped_response(found: JsonObject) -> Sureness:
    output = found.get("output")
    first = output[0] if isinstance(output, list) and output else None
    kinds = ("message", "function_call", "reasoning")
    return possible("object" not in found and isinstance(first, dict) and first.get("type") in kinds)


def _is_eval_set(found: JsonObject) -> bool:
    return "eval_cases" in found or "evalCases" in found


def _is_eval_case(found: JsonObject) -> bool:
    has_id = "eval_id" in found or "evalId" in found
    return has_id and bool({"conversation", "conversation_scenario", "conversationScenario"} & found.keys())


def _is_stored_error(found: JsonObject) -> Sureness:
    # The error of a provider's answer, or of a line of a batch, without the request.
    blocked = isinstance(found.get("promptFeedback"), dict) and "contents" not in found
    return possible(blocked or error_alone(found) is not None)


def _is_result_of_other_api(found: JsonObject) -> Sureness:
    listed = next((found[name] for name in ("data", "results") if isinstance(found.get(name), list)), [])
    first = listed[0] if isinstance(listed, list) and listed else None
    keys = first.keys() if isinstance(first, dict) else set()
    is_embedding = isinstance(first, dict) and first.get("object") == "embedding"
    is_moderation = "results" in found and {"flagged", "categories"} <= keys
    is_image = "created" in found and bool(keys & {"b64_json", "url"})
    is_spoken = isinstance(found.get("text"), str) and found.get("task") in ("transcribe", "translate")
    return possible(is_embedding or is_moderation or is_image or is_spoken)


EVAL_SET = OtherDocument(
    "an eval set of Google ADK",
    "`traceweir eval EVALSET --sessions FILE` compares recorded sessions with an eval set",
    _is_eval_set,
)
EVAL_CASE = OtherDocument(
    "a case of an eval set of Google ADK",
    "put the case into `eval_cases` of an eval set, for `traceweir eval`",
    _is_eval_case,
)
SCORE = OtherDocument(
    "a score of Traceweir",
    "`traceweir diff` compares scores; pass the traces, events or transcripts that were scored",
    lambda found: possible("result_id" in found and "metric" in found),
)
CONFIG = OtherDocument(
    "an evaluation config",
    "pass the config with --config",
    lambda found: possible(isinstance(found.get("criteria"), dict)),
)
OTHER_DOCUMENTS = (
    OtherDocument(
        "an OTLP request",
        "add --format otlp",
        lambda found: not _OTLP_KEYS.isdisjoint(found),
    ),
    EVAL_SET,
    EVAL_CASE,
    OtherDocument(
        "a turn of an old test file of Google ADK",
        "`traceweir eval EVALSET --sessions FILE` compares recorded sessions with a test file",
        lambda found: possible("query" in found and ("expected_tool_use" in found or "reference" in found)),
    ),
    OtherDocument(
        "a session of the topic `sessions`",
        "pass the file to `traceweir eval` with --sessions",
        lambda found: possible("session_id" in found and isinstance(found.get("events"), list)),
    ),
    SCORE,
    OtherDocument(
        "an exported dead letter",
        "`traceweir dlq replay --from FILE` sends mended dead letters",
        lambda found: {"id", "reason", "topic", "offset"} <= found.keys(),
    ),
    OtherDocument(
        "a run of LangSmith",
        "no format reads runs; send spans with LANGSMITH_OTEL_ENABLED=true, or write the messages as a chat transcript",
        _is_run_of_langsmith,
    ),
    OtherDocument(
        "a step of a trace of Braintrust",
        "the row of its root has question and answer: remove the rows whose `is_root` is false",
        is_step_of_braintrust,
    ),
    OtherDocument(
        "an observation of Langfuse",
        "export the traces with their `observations`: a trace has question and answer",
        is_observation_of_langfuse,
    ),
    OtherDocument(
        "an event of a stream of Dify, which has no question",
        "export the messages of the conversation, which have `query` and `answer`",
        _is_event_of_dify,
    ),
    OtherDocument(
        "a pair of answers of a preference data set",
        "it has two answers to one question, and neither is that of an agent: write the one to be scored and the prompt as a "
        'chat transcript, {"messages": [...]}',
        _is_preference,
    ),
    *OF_RUN_LOGS,
    *OF_TRAJECTORIES,
    OtherDocument(
        "a message of a thread of OpenAI's Assistants API",
        'put the messages of the thread, oldest first, into one object: {"messages": [...]}',
        _is_message_of_thread,
    ),
    OtherDocument(
        "a message of Pydantic AI",
        'put all messages of a conversation into one object: {"messages": [...]}',
        is_message_of_pydantic_ai,
    ),
    OtherDocument(
        "a message of a ChatHistory of Semantic Kernel",
        'put all messages of the history into one object: {"messages": [...]}',
        is_message_of_semantic_kernel,
    ),
    OtherDocument(
        "a turn of an agent of Llama Stack without its session",
        'put all turns of a session into one object: {"session_id": ..., "turns": [...]}',
        lambda found: possible({"turn_id", "input_messages", "output_message"} <= found.keys()),
    ),
    OtherDocument(
        "a test case of DeepEval or Ragas",
        "write it as a row with the columns request, response, expected_response and retrieved_context, or its messages as a "
        "chat transcript",
        _is_test_case,
    ),
    OtherDocument(
        "a response of OpenAI's Responses API without its `object`",
        'add "object": "response"',
        _is_untyped_response,
    ),
    OtherDocument(
        "a line of the input of a batch, which has no answer",
        "pass the file of its output, whose lines have the same ids; to score an answer with its question, write both into "
        'one object: {"messages": [...], "choices": [...]}',
        is_input_of_batch,
    ),
    OtherDocument(
        "a line of a batch without the answer of a chat",
        "bodies of chat completions, completions, responses, messages and generateContent are read; embeddings, moderation, "
        "images and audio have no answer of an agent: remove the line",
        is_line_of_batch,
        shown_body,
    ),
    OtherDocument(
        "a result of embeddings, moderation, images or audio",
        "it has no answer of an agent; remove it",
        _is_result_of_other_api,
    ),
    OtherDocument(
        "a piece of a streamed answer, without the pieces that have its text",
        "write all pieces of the stream into the file, in their order",
        lambda found: possible(is_piece(found)),
    ),
    OtherDocument(
        WITHOUT_QUESTION,
        ADD_QUESTION,
        _is_stored_error,
        shown_error,
    ),
    OtherDocument(
        "a single message of a chat",
        'put all messages of a conversation into one object: {"messages": [...]}',
        _is_message,
    ),
    OtherDocument("a trace without its `@type`", 'add "@type": "ReasoningTrace"', _is_trace_without_type),
    CONFIG,
    *OF_OTHER_TOOLS,
)
