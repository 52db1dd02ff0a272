"""Reads results of `adk eval`, the `*.evalset_result.json` of Google ADK: each case is a session of its invocations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import orjson
from pydantic import JsonValue, ValidationError

from traceweir.schemas.base import MAX_IDENTIFIER_CHARS, JsonObject, explain
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.invocation_results import with_text_results
from traceweir.schemas.reference import Reference
from traceweir.schemas.text import printable
from traceweir.streams.intake.formats.adk_invocations import (
    IGNORED_OF_ADK,
    AdkConversation,
    RecordedTurn,
    conversation_records,
    moment,
)
from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    PartlyReadError,
    Recognition,
    RecordsOfObject,
    records_of_objects,
)
from traceweir.streams.intake.formats.documents import Document, InputError
from traceweir.streams.intake.formats.unread_keys import KnownKeys


def case_results(found: JsonObject) -> list[JsonValue] | None:
    """Returns the results of the cases in a result of `adk eval`; None if the document is not one."""
    results = found.get("eval_case_results", found.get("evalCaseResults"))
    return results if isinstance(results, list) else None


def invocation_pairs(result: JsonObject) -> list[tuple[JsonValue, JsonValue]] | None:
    """Returns the actual and the expected invocations of a case's result, in order; None if the result has none."""
    turns = _value(result, "eval_metric_result_per_invocation", "evalMetricResultPerInvocation")
    if not isinstance(turns, list):
        return None
    return [
        (
            _value(turn, "actual_invocation", "actualInvocation"),
            _value(turn, "expected_invocation", "expectedInvocation"),
        )
        if isinstance(turn, dict)
        else (turn, None)
        for turn in turns
    ]


def _value(document: JsonObject, snake_case: str, camel_case: str) -> JsonValue:
    return document.get(snake_case, document.get(camel_case))


def read_adk_eval_result(found: JsonObject, document: Document, context: InputContext) -> list[AgentRecord]:
    """Returns the records of all cases: for each, its actual invocations with their expectations, and the session's end.

    The session id is the one of ADK's run. The final response and the tool calls of an expected invocation become the
    reference of the actual invocation, so that criteria compare the two as `adk eval` did.

    Raises:
        PartlyReadError: the result of a case cannot be used; the error has the records of the others.
    """
    context.unread_keys.note(found, _RESULT)
    records: list[AgentRecord] = []
    problems: list[str] = []
    for number, result in enumerate(case_results(found) or ()):
        try:
            records += _records_of_case(result, document, context)
        except InputError as error:
            problems.append(f"eval_case_results.{number}: {error}")
    if not (records or problems):
        problems.append("eval_case_results: has no result; remove the document")
    if problems:
        raise PartlyReadError(str(context.document_error(document, "; ".join(problems))), records)
    return records


_RESULT = KnownKeys(
    "key of a result of `adk eval`",
    ("eval_case_results", "evalCaseResults"),
    (
        *("eval_set_result_id", "evalSetResultId", "eval_set_result_name", "evalSetResultName", "eval_set_id"),
        *("evalSetId", "creation_timestamp", "creationTimestamp", "name"),
    ),
)
_CASE = KnownKeys(
    "key of a case",
    (
        *("eval_id", "evalId", "session_id", "sessionId", "user_id", "userId"),
        *("eval_metric_result_per_invocation", "evalMetricResultPerInvocation"),
    ),
    (
        *("eval_set_file", "evalSetFile", "eval_set_id", "evalSetId", "final_eval_status", "finalEvalStatus"),
        *("eval_metric_results", "evalMetricResults", "overall_eval_metric_results", "overallEvalMetricResults"),
        *("session_details", "sessionDetails"),
    ),
)


def _records_of_case(result: JsonValue, document: Document, context: InputContext) -> list[AgentRecord]:
    pairs = invocation_pairs(result) if isinstance(result, dict) else None
    if not isinstance(result, dict) or pairs is None:
        raise InputError("must be an object with eval_metric_result_per_invocation")
    context.unread_keys.note(result, _CASE)
    for invocation in (each for pair in pairs for each in pair):
        context.unread_keys.note_model(Invocation, invocation, IGNORED_OF_ADK)
    eval_id = _text(_value(result, "eval_id", "evalId"))
    case = f"case {printable(eval_id, 80)!r}"
    if not pairs:
        raise InputError(f"{case} has no invocation, so there is nothing to score; its agent probably failed")
    try:
        turns = [_turn(actual, expected) for actual, expected in pairs]
    except ValidationError as error:
        raise InputError(f"{case}: {explain(error)}") from None
    except InputError as error:
        raise InputError(f"{case}: {error}") from None
    except ValueError as error:
        raise InputError(f"{case}: creation_timestamp: {error}") from None
    session_id = _text(_value(result, "session_id", "sessionId"))
    if len(session_id) > MAX_IDENTIFIER_CHARS:
        raise InputError(f"{case}: session_id must have at most {MAX_IDENTIFIER_CHARS} characters")
    user_id = _text(_value(result, "user_id", "userId"))
    return conversation_records(
        AdkConversation(session_id, "", user_id, turns), context.base_time, lambda what: InputError(f"{case} {what}")
    )


def _turn(actual: JsonValue, expected: JsonValue) -> RecordedTurn:
    invocation = with_text_results(_invocation(actual))
    return RecordedTurn(invocation, moment(invocation.creation_timestamp), _reference(expected))


def _reference(expected: JsonValue) -> Reference | None:
    if expected is None:
        return None
    found = _invocation(expected)
    if found.final_response is None and found.intermediate_data is None:
        return None
    tool_uses = None if found.intermediate_data is None else found.tool_uses
    return Reference(final_response=found.final_response, tool_uses=tool_uses)


def _invocation(value: JsonValue) -> Invocation:
    try:
        return Invocation.model_validate_json(orjson.dumps(value))
    except orjson.JSONEncodeError:
        raise InputError("an invocation is nested too deeply to be read") from None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _recognizes(found: JsonObject) -> bool:
    return case_results(found) is not None


def _reader(context: InputContext) -> RecordsOfObject:
    return partial(read_adk_eval_result, context=context)


def _read(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    def records(found: JsonObject, document: Document) -> list[AgentRecord]:
        if not _recognizes(found):
            raise context.document_error(document, "has no list eval_case_results, so it is no result of `adk eval`")
        return read_adk_eval_result(found, document, context)

    return records_of_objects(documents, records, context, "a result of `adk eval` must be an object")


ADK_EVAL_RESULT = InputFormat(
    name="adk-eval-result",
    description="results of `adk eval` (`*.evalset_result.json`)",
    read_documents=_read,
    recognition=Recognition("a result of `adk eval`", _recognizes, _reader),
)
