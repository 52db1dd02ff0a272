"""Joins the pieces of streamed answers into stored answers, and takes those out of lines of a batch, logs and exports.

A stream is read as a whole: its first piece is no answer. The formats see the stored answer in place of the pieces, which
are documents of their own, or a list in one document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.base.json_values import write_as_written, write_json
from traceweir.streams.intake.formats.batch_lines import stored_in_batch
from traceweir.streams.intake.formats.call_logs import stored_in_call_log
from traceweir.streams.intake.formats.chat_keys import MESSAGE_LISTS
from traceweir.streams.intake.formats.documents import Document, document_as_written, read_document
from traceweir.streams.intake.formats.exported_sessions import ExportedSessions
from traceweir.streams.intake.formats.exports import runs_in_export
from traceweir.streams.intake.formats.framework_histories import conversation_of_framework
from traceweir.streams.intake.formats.ollama_pieces import stored_beside_request
from traceweir.streams.intake.formats.open_streams import OpenStreams, StoredAnswer, answer_in, answers_in

_CAN_BE_PIECE = re.compile(
    rb'"(?:chat\.completion\.chunk|text_completion|message_(?:start|delta|stop)|content_block_(?:start|delta|stop)|ping'
    rb"|error|response\.[a-z_.]+|candidates|usageMetadata|usage_metadata|promptFeedback|custom_id|processed_time|recordId"
    rb"|contentBlock(?:Start|Delta|Stop)|message(?:Start|Stop)|[a-z][A-Za-z]*Exception|done"
    rb"|observations|htmlPath|bookmarked|span_id|experiment_id|scores|testCase|gradingResult|evalId|failureReason|agent_thoughts"
    rb"|message_files|part_kind|input_messages|content_type|\$type|call_type|request_body|response_body|requestBody|responseBody|provider(?:Request|Response)"
    rb'|status)"|"metadata":\s*\{\s*"(?:usage|metrics)"|"response":\s*\{'
    # A text of server-sent events.
    rb'|"(?:[a-z]*:[^"\\]*(?:\\[rn])+)*data: ?\{'
)
"""What a document contains that can be a piece, a line of a batch, a log or an export. Quotation marks inside of texts are escaped."""
_OF_ROW = {"request", "inputs", "trace"}
"""What a row of an evaluation set has beside its response."""


def with_whole_answers(documents: Iterable[Document]) -> Iterator[Document]:
    """Yields the documents of a file, with a stored answer in place of the pieces of each stream and of each batch line.

    The pieces can also be a list that is a document, or that an object has beside what else it tells of the answer.

    Lines of server-sent events are read, too. A stream that ends early is a stored answer whose reason of finishing is
    `cut_off`. An answer has the number of its first piece, and comes when the next document is none of its pieces; what
    a server sends as a frame between them ends no stream. A session whose turns are several documents comes last.
    """
    streams = OpenStreams()
    sessions = ExportedSessions()
    frames: list[Document] = []
    after_data = False
    as_written = False
    for document in documents:
        raw = document.raw
        if after_data and raw.startswith(b":"):
            # A comment, which servers send to keep a connection open.
            continue
        if raw.startswith((b"event:", b"id:", b"retry:", b":")):
            # A frame of server-sent events, unless something else follows.
            frames.append(document)
            continue
        after_data = raw.startswith(b"data:")
        if after_data:
            frames.clear()
            raw = raw.removeprefix(b"data:").strip()
            if raw == b"[DONE]":
                yield from _documents(streams.close(), as_written=as_written)
                continue
            if not raw:
                # It keeps a connection open.
                continue
        yield from frames
        frames.clear()
        found, has_notes = _parsed(raw)
        as_written |= has_notes
        if isinstance(found, dict) and streams.take(found, document.number):
            yield from _documents(streams.ended(), as_written=as_written)
            continue
        if not after_data:
            yield from _documents(streams.close(), as_written=as_written)
        if isinstance(found, dict) and sessions.take(found, document.number):
            continue
        stored = _stored_in(found, document.number)
        yield from _documents(stored, as_written=as_written) if stored else [Document(document.number, raw)]
    yield from frames
    yield from _documents(streams.close(), as_written=as_written)
    yield from _documents(streams.left(), as_written=as_written)
    yield from _documents(sessions.whole(), as_written=as_written)


def _stored_in(found: JsonValue, number: int) -> list[StoredAnswer]:
    """Returns the stored answers in a document that is no piece; none if it is another document."""
    if isinstance(found, list):
        if answers := answers_in(found, number):
            return answers
        return [StoredAnswer(number, each) for each in conversation_of_framework({"messages": found}) or ()]
    if not isinstance(found, dict):
        return []
    if (stored := stored_in_batch(found)) is not None:
        return [StoredAnswer(number, stored)]
    if (runs := runs_in_export(found)) is not None:
        return [StoredAnswer(number, run) for run in runs]
    if (stored := stored_beside_request(found)) is not None:
        return [StoredAnswer(number, stored)]
    if (stored := stored_in_call_log(found)) is not None:
        return [StoredAnswer(number, stored)]
    for name, value in found.items():
        if (answer := answer_in(value)) is not None:
            return [StoredAnswer(number, _beside(found, name, answer))]
    return []


def _beside(found: JsonObject, name: str, answer: JsonObject) -> JsonObject:
    """Returns an object that has the answer in place of the pieces under a key."""
    others: JsonObject = {key: value for key, value in found.items() if key != name and value is not None}
    if name == "response" and (others.keys() & _OF_ROW or others.keys().isdisjoint(MESSAGE_LISTS)):
        return {**others, name: answer}
    if name == "outputs" and others.keys() & _OF_ROW:
        return {**others, name: answer}
    request = others.get("request")
    if isinstance(request, dict) and others.keys().isdisjoint(MESSAGE_LISTS):
        others |= {key: request[key] for key in (*MESSAGE_LISTS, "input", "prompt") if key in request}
        del others["request"]
    return {**answer, **others, "object": answer["object"]}


def _parsed(raw: bytes) -> tuple[JsonValue, bool]:
    """Returns a document that can be a piece, else None, and whether it has what is no JSON, which it still has."""
    if _CAN_BE_PIECE.search(raw) is None:
        return None, False
    try:
        found = read_document(raw)
        return (document_as_written(raw), True) if found.notes else (found.value, False)
    except ValueError:
        return None, False


def _documents(answers: Iterable[StoredAnswer], *, as_written: bool) -> Iterator[Document]:
    """Yields answers as documents.

    Args:
        answers: The answers.
        as_written: Whether one can have what is no JSON: it is left to the reader of the document, who says it.
    """
    for number, answer in answers:
        try:
            yield Document(number, write_as_written(answer) if as_written else write_json(answer))
        except ValueError as problem:
            # It is nested too deeply, for example: the formats refuse it with this error.
            yield Document(number, write_json({"error": f"the answer cannot be written as JSON ({problem})"}))
