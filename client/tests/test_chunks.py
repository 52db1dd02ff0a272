"""What a retriever returned is read in the shapes of the libraries, and what cannot be read is said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from traceweir.client.chunks import MAX_CHUNKS, read_chunks


@dataclass
class Document:
    """A document of LangChain."""

    page_content: str
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass
class HaystackDocument:
    """A document of Haystack."""

    content: str | None
    meta: dict[str, str] = field(default_factory=dict)


class Node:
    """A node of LlamaIndex, which has its text as a property, and beside it methods."""

    metadata = {"file_name": "hours.md"}

    @property
    def text(self) -> str:
        return "nine"

    def content(self) -> str:
        raise AssertionError


@dataclass
class NodeWithScore:
    """What a retriever of LlamaIndex returns."""

    node: Node
    score: float

    @property
    def text(self) -> str:
        return self.node.text


class Broken:
    @property
    def text(self) -> str:
        raise OSError("no")


@pytest.mark.parametrize(
    ("chunk", "content", "uri"),
    [
        ("nine", "nine", None),
        ({"content": "nine", "doc_uri": "d"}, "nine", "d"),
        ({"text": "nine", "doc_uri": "d"}, "nine", "d"),
        ({"page_content": "nine", "metadata": {"source": "hours.md"}}, "nine", "hours.md"),
        ({"content": "nine", "text": "nine"}, "nine", None),
        ({"document": {"text": "nine", "metadata": {"doc_uri": "d"}}, "score": 0.5}, "nine", "d"),
        (Document("nine", {"source": "hours.md"}), "nine", "hours.md"),
        ((Document("nine"), 0.83), "nine", None),
        (HaystackDocument("nine", {"url": "https://a/b"}), "nine", "https://a/b"),
        (NodeWithScore(Node(), 0.5), "nine", "hours.md"),
        ({"doc_uri": "d"}, None, "d"),
        (None, None, None),
        (7, "7", None),
    ],
)
def test_a_piece_is_read_in_the_shapes_of_libraries(chunk: Any, content: str | None, uri: str | None) -> None:
    assert read_chunks([chunk]) == ([{"doc_uri": uri, "content": content}], "")


@pytest.mark.parametrize(
    ("chunk", "lost"),
    [
        ({"body": "nine"}, "a piece has no content, text or page_content"),
        ({"doc_uri": "d", "body": "nine"}, "a piece has no content, text or page_content"),
        (HaystackDocument(None), "a piece has no content, text or page_content"),
        ({}, "a piece has no content, text or page_content"),
        ({"content": "nine", "text": "ten"}, "a piece has different texts in content and text"),
        (Broken(), "reading a piece raised OSError"),
        ({"text": "x" * 5_000}, "it has more than 4000 characters"),
    ],
)
def test_what_cannot_be_read_of_a_piece_is_said_once(chunk: Any, lost: str) -> None:
    found, said = read_chunks([chunk, "nine", chunk])
    assert said == lost
    assert found[1] == {"doc_uri": None, "content": "nine"}


def test_pieces_beyond_the_most_are_said_to_be_left_out() -> None:
    found, said = read_chunks(["nine"] * (MAX_CHUNKS + 1))
    assert len(found) == MAX_CHUNKS
    assert said == "there are more than 100"
