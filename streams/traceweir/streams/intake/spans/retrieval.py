"""Reads what retrievers returned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from traceweir.streams.intake.spans.attributes import first, structure, text_of
from traceweir.streams.intake.spans.conventions import keys_of
from traceweir.streams.intake.spans.message import is_hidden
from traceweir.streams.intake.spans.tree import Node

_LISTS = ("documents", "source_nodes", "results", "matches", "nodes")
_CONTENT = ("content", "page_content", "text", "document.content")
_URI = ("doc_uri", "source", "url", "uri", "file_path", "file_name")
_DOCUMENTS = keys_of(lambda each: each.documents)
_SPREAD = keys_of(lambda each: each.spread_documents)
MAX_DOCUMENTS = 1_000


@dataclass(slots=True)
class Retrieval:
    """The pieces that a retriever returned."""

    span_id: str
    end_ns: int
    chunks: list[dict[str, Any]]
    """Documents of RetrievedChunk, in order."""


def read_retrievals(nodes: Iterable[Node]) -> list[Retrieval]:
    """Returns the retrievals of an invocation; of retrievers that nest, the inner one counts."""
    found = []
    for node in nodes:
        if node.kind == "retriever" and all(child.kind != "retriever" for child in node.children):
            chunks = _chunks(node)
            if chunks is not None:
                found.append(Retrieval(node.span.span_id, node.span.end_ns, chunks))
    return found


def _chunks(node: Node) -> list[dict[str, Any]] | None:
    attributes = node.span.attributes
    indexed: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        for prefix in _SPREAD:
            if key.startswith(prefix):
                number, _, name = key[len(prefix) :].partition(".")
                if number.isdecimal() and len(number) < 9:
                    indexed.setdefault(int(number), {})[name.removeprefix("document.")] = value
    if indexed:
        return [_chunk(indexed[number]) for number in sorted(indexed)[:MAX_DOCUMENTS]]
    value = structure(first(attributes, *_DOCUMENTS))
    for _ in range(3):
        if isinstance(value, dict):
            value = structure(next((value[key] for key in (*_LISTS, "output", "outputs") if key in value), None))
    if not isinstance(value, list):
        return None
    pieces = [{"content": each} if isinstance(each, str) else each for each in value[:MAX_DOCUMENTS]]
    return [_chunk(each) for each in pieces if isinstance(each, dict)]


def _chunk(document: dict[str, Any]) -> dict[str, Any]:
    for frame in ("document", "node", "kwargs"):
        if isinstance(document.get(frame), dict):
            document = document[frame]
    metadata = structure(document.get("metadata", document.get("meta")))
    metadata = metadata if isinstance(metadata, dict) else {}
    uri = next((metadata[key] for key in _URI if metadata.get(key)), None)
    uri = uri or next((document[key] for key in (*_URI, "id", "id_") if document.get(key)), None)
    content = next((document[key] for key in _CONTENT if document.get(key) is not None), None)
    chunk = {"doc_uri": uri, "content": None if is_hidden(content) else content}
    return {name: text_of(value) for name, value in chunk.items() if value is not None}
