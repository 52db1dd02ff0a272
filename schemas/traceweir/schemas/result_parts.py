"""Takes out of the results of tools what is no text: images, sounds and files, as MCP and the APIs of models write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.part_kinds import MEDIA_KINDS, not_text
from traceweir.schemas.text import printable

_MAX_DEPTH = 16
"""Objects and lists in each other beyond which nothing is looked for."""
_MAX_TOOL_CHARS = 80
_MEDIA_TYPES = ("mimeType", "mime_type", "mediaType", "media_type", "format", "modality")
_MAX_DATA_TYPE_CHARS = 200
_TYPED = MEDIA_KINDS | {"binary", "image-data", "file-data", "image-url", "file-url", "image-file-id", "file-id"}
_BYTES = ("base64", "bytes", "file_data", "fileData")
"""The keys under which a part of a known kind has its bytes."""
_PLACES = ("image_url", "file_url", "file_id", "fileId", "uri", "url", "content")
"""The keys under which it has the place of its bytes, and under which records have other values."""
_KEYS_OF_PLACES = {"type", "id", "detail", "uri", "url", "content", "file_id", "fileId", *_MEDIA_TYPES}
_NESTED = ("image_url", "image_file", "input_audio", "inline_data", "inlineData", "file_data", "fileData")
"""The kinds of parts whose content is an object under their name."""
_UNTYPED = ("inlineData", "inline_data", "fileData", "file_data")
_BEDROCK = frozenset(("image", "document", "video", "audio"))
_MCP = frozenset(("content", "structuredContent", "isError", "_meta", "meta"))
"""The keys of a result of MCP."""
_TEXT_BLOCKS = ("text", "input_text", "output_text")
_MAY_HAVE_MEDIA = re.compile(
    r'"(?:data|blob|base64|bytes|source|uri|url|image|image_url|inlineData|inline_data|fileData|file_data|input_audio'
    r'|file|file_id|content)"\s*:'
)
"""Finds what JSON with a part of bytes has; other texts are not parsed."""


class ReadResult(NamedTuple):
    """The result of a tool without its parts that are no text."""

    value: JsonValue
    """What is left; the text of a list of parts, which is empty if all are images, for example."""
    unread: Counter[str]
    """How many parts of each kind were taken out."""


def read_result(result: JsonValue) -> ReadResult:
    """Returns the result of a tool without its parts that are no text, and their kinds.

    Such parts are those of MCP (`image`, `audio`, a `resource` with a `blob`) and of the APIs of models, in a list, in an
    object such as `{"content": [...]}`, or in a text with either as JSON. Of a result of MCP with them, the
    `structuredContent` is left, or else the text. A record that a tool has found, such as
    `{"type": "video", "title": "Oslo"}`, is none. A result without such parts is returned as it is.

    >>> read_result([{"type": "text", "text": "Oslo"}, {"type": "image", "data": "QUJD", "mimeType": "image/png"}])
    ReadResult(value='Oslo', unread=Counter({'image': 1}))
    >>> read_result({"type": "video", "title": "Oslo"})
    ReadResult(value={'type': 'video', 'title': 'Oslo'}, unread=Counter())
    """
    found = result
    if isinstance(result, str):
        begin = result.lstrip()[:1]
        if begin not in ("{", "[") or not _MAY_HAVE_MEDIA.search(result):
            return ReadResult(result, Counter())
        try:
            found = orjson.loads(result)
        except orjson.JSONDecodeError:
            return ReadResult(result, Counter())
    if not has_media(found):
        return ReadResult(result, Counter())
    unread: Counter[str] = Counter()
    return ReadResult(_kept(found, unread, 0), unread)


def not_text_of_result(tool: str, value: JsonValue, unread: Counter[str]) -> list[str]:
    """Returns a sentence about the parts of a result that are no text; none without such parts.

    >>> not_text_of_result("draw", "", Counter(image=1))
    ["the result of tool 'draw' is no text: 1 part of type 'image'"]
    """
    return not_text(
        f"result of tool {printable(tool, _MAX_TOOL_CHARS)!r}", "" if _is_empty(value) else "a text", [unread]
    )


def _is_empty(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return all(each is True or _is_empty(each) for each in value.values())
    if isinstance(value, list):
        return all(map(_is_empty, value))
    return value is None or value == ""


def media_kind(part: JsonObject) -> str:
    """Returns the kind of a part whose content is bytes or their place; empty for any other object.

    >>> media_kind({"type": "audio", "data": "QUJD", "mimeType": "audio/wav"}), media_kind({"type": "audio", "title": "a"})
    ('audio', '')
    """
    # pydantic-ai has `kind` in place of `type`.
    kind = part.get("type", part.get("kind"))
    if isinstance(kind, str):
        return kind if _is_typed_media(kind, part) or _has_data_url(part) else ""
    if isinstance(part.get("blob"), str) and isinstance(part.get("uri"), str):
        return "blob"
    for key in _UNTYPED:
        if isinstance(part.get(key), dict):
            return key
    if len(part) == 1:
        ((key, inner),) = part.items()
        if key in _BEDROCK and isinstance(inner, dict) and isinstance(inner.get("source"), dict) and "format" in inner:
            return key
    return ""


def _has_data_url(part: JsonObject) -> bool:
    return any(
        isinstance(url := part.get(key), str) and url.startswith("data:") and ";base64," in url[:_MAX_DATA_TYPE_CHARS]
        for key in ("uri", "url", "data", "image")
    )


def _is_typed_media(kind: str, part: JsonObject) -> bool:
    if kind == "resource":
        resource = part.get("resource")
        return isinstance(resource, dict) and isinstance(resource.get("blob"), str)
    if kind not in _TYPED or isinstance(part.get("text"), str):
        return False
    source = part.get("source")
    if isinstance(source, dict):
        return source.get("type") in ("base64", "url", "file") or "bytes" in source
    if any(isinstance(part.get(key), str) for key in _BYTES) or (kind in _NESTED and isinstance(part.get(kind), dict)):
        return True
    if kind == "file" and isinstance(file := part.get("file"), dict):
        return bool({"file_data", "file_id"} & file.keys())
    if kind in ("image", "audio") and isinstance(part.get("data"), str):
        return True
    if isinstance(part.get(kind), str) and any(isinstance(part.get(key), str) for key in _MEDIA_TYPES):
        return True
    has_type = any(isinstance(part.get(key), str) for key in _MEDIA_TYPES)
    if isinstance(part.get("data"), str) and has_type:
        return True
    has_place = any(isinstance(part.get(key), str | dict) for key in _PLACES)
    is_of_api = kind.startswith(("input_", "image-", "file-")) or kind in ("image_url", "computer_screenshot")
    # A record that a tool has found, such as a file, has a place too, and a name.
    return has_place and (is_of_api or (has_type and part.keys() <= _KEYS_OF_PLACES))


def has_media(value: JsonValue, depth: int = 0) -> bool:
    """Returns whether a part that is no text is anywhere in a value.

    Args:
        value: The value.
        depth: Number of objects and lists around it.
    """
    if depth > _MAX_DEPTH:
        return False
    if isinstance(value, dict):
        if media_kind(value):
            return True
        value = [*value.values()]
    if isinstance(value, list):
        # Of a list of numbers or texts, there is nothing to look at.
        inner = [each for each in value if isinstance(each, dict | list)]
        return any(has_media(each, depth + 1) for each in inner)
    return False


def _kept(value: JsonValue, unread: Counter[str], depth: int) -> JsonValue:
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, list):
        return _kept_of_list(value, unread, depth)
    if not isinstance(value, dict):
        return value
    if kind := media_kind(value):
        unread[kind] += 1
        return ""
    if isinstance(value.get("content"), list) and value.keys() <= _MCP:
        return _kept_of_mcp(value, unread, depth)
    return {key: _kept(each, unread, depth + 1) for key, each in value.items()}


def _kept_of_list(parts: list[JsonValue], unread: Counter[str], depth: int) -> JsonValue:
    """Returns the text of a list of parts; of a list with other objects, these alone."""
    texts = list(_texts(parts))
    media = [kind for each in parts if isinstance(each, dict) and (kind := media_kind(each))]
    unread.update(media)
    if media and len(texts) + len(media) == len(parts):
        return "\n".join(texts)
    return [_kept(each, unread, depth + 1) for each in parts if not (isinstance(each, dict) and media_kind(each))]


def _kept_of_mcp(result: JsonObject, unread: Counter[str], depth: int) -> JsonValue:
    in_content: Counter[str] = Counter()
    in_structure: Counter[str] = Counter()
    content = _kept(result["content"], in_content, depth + 1)
    structured = _kept(result.get("structuredContent"), in_structure, depth + 1)
    # The structure repeats the content.
    unread.update(in_content | in_structure)
    kept = content if _is_empty(structured) else structured
    return {"isError": True, "content": content} if result.get("isError") is True else kept


def _texts(parts: list[JsonValue]) -> Iterator[str]:
    """Yields the texts of the parts that are texts."""
    for part in parts:
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        resource = part.get("resource") if kind == "resource" else None
        text = resource.get("text") if isinstance(resource, dict) else part.get("text")
        if isinstance(text, str) and (kind in _TEXT_BLOCKS or resource is not None or part.keys() == {"text"}):
            yield text
