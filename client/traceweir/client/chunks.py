"""Reads what a retriever returned: texts, mappings, and the documents of LangChain, LlamaIndex, Haystack and others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from traceweir.client.json_values import encode, plain, short_text

MAX_CHUNKS = 100
"""Most pieces of one retrieval."""
_MAX_CHARS = 4_000
_MAX_URI_CHARS = 1_024
_MAX_NAME_CHARS = 80
_TEXTS = ("content", "text", "page_content")
"""The names under which libraries have the text of a piece."""
_FRAMES = ("document", "node")
"""The names under which libraries have a piece beside its score."""
_METADATA = ("metadata", "meta")
_URIS = ("doc_uri", "source", "url", "uri", "file_path", "file_name")
"""The names under which the metadata has the place of the document, as the reader of spans knows them."""
_MAX_FRAMES = 3


def read_chunks(chunks: Iterable[Any]) -> tuple[list[dict[str, str | None]], str]:
    """Returns the retrieved pieces as events have them, and what was lost, as the end of a sentence.

    >>> read_chunks(["It opens at nine.", {"page_content": "It closes at six.", "metadata": {"source": "hours.md"}}])[0][1]
    {'doc_uri': 'hours.md', 'content': 'It closes at six.'}
    >>> read_chunks([{"body": "It opens at nine."}])
    ([{'doc_uri': None, 'content': None}], 'a piece has no content, text or page_content')
    """
    found: list[dict[str, str | None]] = []
    losses: dict[str, None] = {}
    for number, chunk in enumerate(chunks):
        if number == MAX_CHUNKS:
            losses[f"there are more than {MAX_CHUNKS}"] = None
            break
        try:
            content, uri, lost = _read(chunk)
        except Exception as error:  # noqa: BLE001  # the code of foreign objects runs here
            content = uri = None
            lost = f"reading a piece raised {type(error).__name__}"
        if lost:
            losses[lost] = None
        found.append({"doc_uri": uri, "content": content})
    return found, "; ".join(losses)


def _read(chunk: Any) -> tuple[str | None, str | None, str]:
    """Returns the text and the URI of a piece, and what was lost; empty if nothing was lost."""
    piece = _without_frames(chunk)
    texts = {name: value for name in _TEXTS if (value := _member(piece, name)) is not None}
    if isinstance(piece, str) or (not texts and isinstance(piece, bool | int | float | list | type(None))):
        texts = {"content": piece}
    uri = short_text(_uri(piece), _MAX_URI_CHARS) or None
    if not texts:
        # The place alone is enough for the metrics that compare documents.
        is_place = isinstance(piece, Mapping) and piece.keys() <= {"doc_uri", *_TEXTS}
        lost = "" if uri is not None and is_place else f"a piece has no {_TEXTS[0]}, {_TEXTS[1]} or {_TEXTS[2]}"
        return None, uri, lost
    names = [*texts]
    values = [*texts.values()]
    if any(value != values[0] for value in values[1:]):
        return None, uri, f"a piece has different texts in {' and '.join(names)}"
    content, lost = plain(values[0], _MAX_CHARS)
    if content is not None and not isinstance(content, str):
        content = encode(content).decode()
    return content, uri, lost


def _without_frames(chunk: Any) -> Any:
    """Returns the piece without what is around it: its score in a pair, or the object that has both."""
    for _ in range(_MAX_FRAMES):
        if isinstance(chunk, tuple) and len(chunk) == 2 and isinstance(chunk[1], int | float):
            chunk = chunk[0]
            continue
        inner = next((each for name in _FRAMES if (each := _member(chunk, name)) is not None), None)
        if inner is None or isinstance(inner, bool | int | float):
            return chunk
        chunk = inner
    return chunk


def _uri(piece: Any) -> Any:
    given = _member(piece, "doc_uri")
    metadata = next((each for name in _METADATA if isinstance(each := _member(piece, name), Mapping)), {})
    return given if given is not None else next((metadata[name] for name in _URIS if metadata.get(name)), None)


def _member(piece: Any, name: str) -> Any:
    """Returns a value of a mapping, or an attribute of an object; None without it, and for a method."""
    if isinstance(piece, Mapping):
        return piece.get(name)
    if piece is None or isinstance(piece, str | bytes | bool | int | float | list | tuple | type):
        return None
    value = getattr(piece, name, None)
    return None if callable(value) else value
