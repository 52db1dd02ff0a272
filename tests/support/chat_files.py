"""Reads files of chat transcripts as `traceweir score` does, with the format named and without."""

from __future__ import annotations

import io
from typing import Any

import orjson
from tests.support.folding import folded
from tests.support.openai_chat import NOON, events_of

from traceweir.schemas.invocation import Invocation
from traceweir.streams.intake.formats.base import DocumentRecords, InputContext
from traceweir.streams.intake.formats.documents import read_documents
from traceweir.streams.intake.formats.openai_chat import OPENAI_CHAT
from traceweir.streams.intake.formats.recognition import read_recognized
from traceweir.streams.intake.formats.traceweir_json import TRACEWEIR

Document = dict[str, Any]


def read(text: str) -> list[DocumentRecords]:
    """Returns what is read of a file, which must be the same with the format named."""
    context = InputContext("f", NOON)
    found = list(read_recognized(TRACEWEIR, read_documents(io.BytesIO(text.encode())), context))
    named = list(read_recognized(OPENAI_CHAT, read_documents(io.BytesIO(text.encode())), context))
    assert [each.records for each in found] == [each.records for each in named]
    return found


def lines(*documents: Document) -> str:
    return "".join(orjson.dumps(document).decode() + "\n" for document in documents)


def invocations(text: str) -> list[Invocation]:
    found: list[Invocation] = []
    for document in read(text):
        if document.records:
            found += folded(events_of(document.records))
    return found


def answer(invocation: Invocation) -> str | None:
    return None if invocation.final_response is None else invocation.final_response.text


def read_traceweir(text: str) -> list[DocumentRecords]:
    documents = read_documents(io.BytesIO(text.encode()))
    return list(read_recognized(TRACEWEIR, documents, InputContext("f", NOON)))
