"""Reads the text of a retrieved piece, which retrievers have under different names."""

from __future__ import annotations

from traceweir.schemas.base import JsonObject

CHUNK_TEXTS = ("content", "text", "page_content")
"""The keys under which retrievers have the text of a piece."""


def with_content(chunk: JsonObject) -> JsonObject:
    """Returns a piece with its text as `content`, and without the other names of its text.

    Raises:
        ValueError: the piece has different texts.

    >>> with_content({"doc_uri": "d1", "page_content": "It opens at nine."})
    {'doc_uri': 'd1', 'content': 'It opens at nine.'}
    """
    texts = [name for name in CHUNK_TEXTS if chunk.get(name) is not None]
    if any(chunk[name] != chunk[texts[0]] for name in texts):
        raise ValueError(f"has different texts in {' and '.join(texts)}")
    others = {name: value for name, value in chunk.items() if name not in CHUNK_TEXTS}
    return {**others, "content": chunk[texts[0]]} if texts else others
