"""Logs of coding agents and results of benchmarks that no format reads: what they are, and what to do with them."""

from __future__ import annotations

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.base import Sureness
from traceweir.streams.intake.formats.other_document import OtherDocument, possible

_TITLES_OF_CLAUDE_CODE = ("leafUuid", "aiTitle", "customTitle", "lastPrompt", "permissionMode")
"""The keys of lines that Claude Code writes beside the messages of a session, of which each names the kind of the line."""
_OUTPUT_OF_CLAUDE_CODE = ("system", "assistant", "user", "stream_event", "result")
"""The types of the messages that Claude Code and its SDK write as JSON."""


def _is_line_of_claude_code(found: JsonObject) -> Sureness:
    if not {"sessionId", "message"} <= found.keys():
        return Sureness.NO
    if {"uuid", "parentUuid"} <= found.keys():
        return Sureness.CERTAIN
    message = found["message"]
    # Some tools copy the lines without what links them.
    return possible(found.get("type") in ("user", "assistant") and isinstance(message, dict) and "role" in message)


def _is_note_of_claude_code(found: JsonObject) -> bool:
    kind = found.get("type")
    is_beside = {"sessionId", "uuid", "parentUuid"} <= found.keys() and "message" not in found
    is_title = isinstance(kind, str) and not found.keys().isdisjoint(_TITLES_OF_CLAUDE_CODE)
    is_copy = kind == "file-history-snapshot" and "messageId" in found
    is_of_session = isinstance(kind, str) and isinstance(found.get("sessionId"), str) and "message" not in found
    return is_beside or is_title or is_copy or is_of_session


def _is_output_of_claude_code(found: JsonObject) -> bool:
    is_message = "parent_tool_use_id" in found or isinstance(found.get("subtype"), str)
    return isinstance(found.get("session_id"), str) and found.get("type") in _OUTPUT_OF_CLAUDE_CODE and is_message


def _is_line_of_codex(found: JsonObject) -> Sureness:
    kinds = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
    return possible(isinstance(found.get("payload"), dict) and found.get("type") in kinds)


def _is_log_of_inspect(found: JsonObject) -> bool:
    return (
        isinstance(found.get("eval"), dict)
        and "version" in found
        and {"samples", "plan", "status"} & found.keys() != set()
    )


def _is_summary_of_inspect(found: JsonObject) -> Sureness:
    return possible({"id", "epoch", "input", "target"} <= found.keys() and "messages" not in found)


def _is_results_of_tau2(found: JsonObject) -> bool:
    return isinstance(found.get("simulations"), list) and "tasks" in found


def _is_entry_of_bfcl(found: JsonObject) -> Sureness:
    question = found.get("question")
    nested = isinstance(question, list) and bool(question) and isinstance(question[0], list)
    # An entry with several turns has the names of classes in place of functions.
    has_tools = isinstance(found.get("function", found.get("involved_classes")), list)
    return possible("id" in found and nested and has_tools)


def _is_result_of_bfcl(found: JsonObject) -> Sureness:
    measured = {"input_token_count", "output_token_count", "inference_log", "latency", "traceback"}
    return possible({"id", "result"} <= found.keys() and not measured.isdisjoint(found))


def _is_verdict_of_bfcl(found: JsonObject) -> Sureness:
    is_truth = found.keys() == {"id", "ground_truth"}
    is_score = {"id", "valid", "test_category"} <= found.keys()
    return possible(is_truth or is_score or {"accuracy", "correct_count", "total_count"} <= found.keys())


OF_RUN_LOGS = (
    OtherDocument(
        "a line of a log of Claude Code",
        "write the `message` of each line of one session, in order and without the lines of subagents (`isSidechain`), into "
        'one object: {"messages": [...]}',
        _is_line_of_claude_code,
    ),
    OtherDocument(
        "a line of a log of Claude Code that has no message",
        "the messages of the session are in its lines of the types `user` and `assistant`; leave this one out",
        _is_note_of_claude_code,
    ),
    OtherDocument(
        "a message that Claude Code or its SDK has written as JSON",
        "write the prompt and the `message` of each line of the types `assistant` and `user`, in order, into one object: "
        '{"messages": [...]}',
        _is_output_of_claude_code,
    ),
    OtherDocument(
        "a line of a log of Codex",
        'write the `payload` of each response_item of one session, in order, into one object: {"messages": [...]}',
        _is_line_of_codex,
    ),
    OtherDocument(
        "a log of Inspect",
        "write each of its `samples` on a line of its own: the format openai-chat reads their `messages`",
        _is_log_of_inspect,
    ),
    OtherDocument(
        "the summary of a sample of Inspect, which has no messages",
        "`inspect log dump` writes the log whose `samples` have them",
        _is_summary_of_inspect,
    ),
    OtherDocument(
        "the results of tau2-bench",
        "write each of its `simulations` on a line of its own: the format openai-chat reads their `messages`",
        _is_results_of_tau2,
    ),
    OtherDocument(
        "an entry of the Berkeley Function Calling Leaderboard",
        "it has questions and no answers; write what the agent said and called as a chat transcript",
        _is_entry_of_bfcl,
    ),
    OtherDocument(
        "a result of the Berkeley Function Calling Leaderboard",
        "it has no questions; write what the agent was asked, said and called as a chat transcript",
        _is_result_of_bfcl,
    ),
    OtherDocument(
        "a score or a possible answer of the Berkeley Function Calling Leaderboard",
        "it has no messages of an agent; write what the agent was asked, said and called as a chat transcript",
        _is_verdict_of_bfcl,
    ),
)
