"""Takes out of the results of tools what is no text: images, sounds and files, as MCP and the APIs of models write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from pydantic import JsonValue
from pydantic_core import from_json

from traceweir.schemas.base import JsonObject
from traceweir.schemas.part_kinds import MEDIA_KINDS, not_text
from traceweir.schemas.text import printable

_MAX_DEPTH = 16
"""Objects and lists in each other beyond which nothing is looked for."""
_MAX_TOOL_CHARS = 80
_MEDIA_TYPES = ("mimeType", "mime_type", "mediaType", "media_type", "modality")
_TYPED = MEDIA_KINDS | {"binary", "image-data", "file-data", "image-url", "file-url", "image-file-id", "file-id"}
_BYTES = ("data", "blob", "base64", "bytes", "file_data", "fileData")
"""The keys under which parts have their bytes."""
_PLACES = ("image_url", "file_url", "file_id", "fileId", "uri", "url")
"""The keys under which they have the place of their bytes, and under which records have other values."""
_KEYS = frozenset(
    (
        *("type", "kind", "id", "index", "format", "source", "resource", "file", "detail", "filename", "file_name"),
        *(*_MEDIA_TYPES, *_BYTES, *_PLACES, "file_uri", "fileUri", "display_name", "displayName", "s3Location"),
        *("annotations", "_meta", "meta", "extras", "cache_control", "cacheControl", "identifier", "vendor_metadata"),
        *("providerOptions", "providerMetadata", "provider_options", "provider_metadata", "source_type"),
        *("videoMetadata", "video_metadata", "mediaResolution", "media_resolution"),
        *("thought", "thoughtSignature", "thought_signature"),
    )
)
"""The keys of parts in the APIs; an object with others is a record, of which only the bytes are taken out."""
_KEYS_OF_BEDROCK = {"format", "name", "source", "context", "citations"}
_DATA_URL = re.compile(r"data:[^,\s]{0,200};base64,[A-Za-z0-9+/=_%\r\n-]*+")
_SEARCHED_FOR_URL = 200
"""Characters in which a data URL begins; a text of blanks is not looked at as a whole."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]++=*+\s*+")
"""What gives nothing back takes linear time, whatever the text of a tool is."""
_LEAST_BYTES = 64
"""Least number of characters of a text that counts as bytes though no media type says so; a size or a year has fewer."""
_BYTES_TYPE = re.compile(r"(?:image|audio|video)(?:/|$)|application/(?:pdf|zip|gzip|octet-stream|vnd\.)", re.IGNORECASE)
"""The media types of bytes; that of a text can stand beside a text."""
_SOUNDS = frozenset(("wav", "mp3", "flac", "opus", "pcm16"))
"""The formats of OpenAI's `input_audio`."""
_NESTED = ("image_url", "image_file", "input_audio", "inline_data", "inlineData", "file_data", "fileData")
"""The kinds of parts whose content is an object under their name."""
_UNTYPED = ("inlineData", "inline_data", "fileData", "file_data")
_BEDROCK = frozenset(("image", "document", "video", "audio"))
_MCP = frozenset(("content", "structuredContent", "isError", "_meta", "meta"))
"""The keys of a result of MCP."""
_TEXT_BLOCKS = ("text", "input_text", "output_text")
_MAY_HAVE_MEDIA = re.compile(
    r'"(?:data|blob|base64|bytes|source|uri|url|image|image_url|inlineData|inline_data|fileData|file_data|input_audio'
    r'|file|file_id|content)"\s*:|"data:'
)
"""Finds what JSON with bytes has; other texts are not parsed."""


class ReadResult(NamedTuple):
    """The result of a tool without its parts that are no text."""

    value: JsonValue
    """What is left; the text of a list of parts, which is empty if all are images, for example."""
    unread: Counter[str]
    """How many parts of each kind were taken out."""


_NOTHING: Counter[str] = Counter()
"""What was taken out of nearly every result."""


def read_result(result: JsonValue) -> ReadResult:
    """Returns the result of a tool without its parts that are no text, and their kinds.

    Such parts are those of MCP (`image`, `audio`, a `resource` with a `blob`) and of the APIs of models, in a list, in an
    object such as `{"content": [...]}`, or in a text with either as JSON. Of a result of MCP with them, the
    `structuredContent` is left, or else the text. Of a record that a tool has found, only the values that are bytes are
    taken out, such as a data URL. A result without either is returned as it is.

    >>> read_result([{"type": "text", "text": "Oslo"}, {"type": "image", "data": "QUJD", "mimeType": "image/png"}])
    ReadResult(value='Oslo', unread=Counter({'image': 1}))
    >>> read_result({"type": "video", "title": "Oslo"})
    ReadResult(value={'type': 'video', 'title': 'Oslo'}, unread=Counter())
    >>> read_result({"title": "Lamp", "image": "data:image/png;base64,QUJD"})
    ReadResult(value={'title': 'Lamp', 'image': ''}, unread=Counter({'image': 1}))
    """
    found = result
    if isinstance(result, str):
        if kind := data_url_kind(result):
            return ReadResult("", Counter([kind]))
        begin = result.lstrip()[:1]
        if begin not in ("{", "[") or not _MAY_HAVE_MEDIA.search(result):
            return ReadResult(result, _NOTHING)
        try:
            # It keeps all digits of integers.
            found = from_json(result, allow_inf_nan=False)
        except ValueError:
            return ReadResult(result, _NOTHING)
    if not has_media(found):
        return ReadResult(result, _NOTHING)
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
    """Returns the kind of a part whose content is bytes or their place; empty for any other object, such as a record.

    >>> media_kind({"type": "audio", "data": "QUJD", "mimeType": "audio/wav"}), media_kind({"type": "audio", "title": "a"})
    ('audio', '')
    """
    # pydantic-ai has `kind` in place of `type`.
    kind = part.get("type", part.get("kind"))
    if isinstance(kind, str):
        return kind if _is_typed_media(kind, part) else ""
    if isinstance(part.get("blob"), str) and isinstance(part.get("uri"), str):
        return "blob" if part.keys() <= _KEYS else ""
    for key in _UNTYPED:
        if key in part and _is_of_api(part[key]):
            return key if part.keys() <= {key, *_KEYS} else ""
    if len(part) == 1:
        ((key, inner),) = part.items()
        if key in _BEDROCK and isinstance(inner, dict) and isinstance(inner.get("source"), dict) and "format" in inner:
            return key if inner.keys() <= _KEYS_OF_BEDROCK else ""
    return ""


def data_url_kind(text: str) -> str:
    """Returns what a text is that is nothing but a data URL: `image`, `audio`, `video` or `data`; empty for another text.

    >>> data_url_kind("data:image/png;base64,QUJD"), data_url_kind("data:image/png;base64,QUJD is a small image")
    ('image', '')
    """
    begin = text[:_SEARCHED_FOR_URL].lstrip()
    if not begin.startswith("data:") or not _is_data_url(text.strip()):
        return ""
    kind = begin.removeprefix("data:").partition("/")[0].lower()
    return kind if kind in ("image", "audio", "video") else "data"


def _is_typed_media(kind: str, part: JsonObject) -> bool:
    if not part.keys() <= _KEYS | {kind}:
        return kind == "blob" and _is_blob_of_standard(part)
    if kind == "resource":
        resource = part.get("resource")
        return _is_of_api(resource) and isinstance(resource.get("blob"), str)
    if kind not in _TYPED:
        # Beside a text the place alone is taken out.
        return kind not in part and any(_is_data_url(part.get(key)) for key in ("uri", "url", "data"))
    source = part.get("source")
    if isinstance(source, dict):
        is_known = source.get("type") in ("base64", "url", "file") or "bytes" in source
        return is_known and _is_of_api(source)
    has_type = any(isinstance(part.get(key), str) for key in _MEDIA_TYPES)
    if any(_can_be_bytes(part.get(key), has_type=has_type) for key in _BYTES if key != "data"):
        return True
    if kind in _NESTED and isinstance(part.get(kind), dict):
        return _is_of_api(part[kind])
    if kind == "file" and isinstance(file := part.get("file"), dict):
        return _is_of_api(file) and bool({"file_data", "file_id"} & file.keys())
    if isinstance(part.get("data"), str) and (kind in ("image", "audio") or has_type or "format" in part):
        return True
    if isinstance(part.get(kind), str) and has_type:
        return True
    has_place = any(isinstance(part.get(key), str | dict) for key in _PLACES)
    is_of_api = kind.startswith(("input_", "image-", "file-")) or kind in ("image_url", "computer_screenshot")
    # A record that a tool has found, such as a file, has a place too.
    return has_place and (is_of_api or (has_type and "filename" not in part))


def _is_blob_of_standard(part: JsonObject) -> bool:
    """Returns whether an object is the `BlobPart` of the semantic conventions, whose `content` is bytes."""
    content = part.get("content")
    has_type = any(isinstance(part.get(key), str) for key in _MEDIA_TYPES)
    is_known = has_type and part.keys() <= {"type", "content", *_MEDIA_TYPES}
    return is_known and isinstance(content, str) and bool(_BASE64.fullmatch(content))


def _is_of_api(found: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(found, dict) and found.keys() <= _KEYS


def _is_data_url(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith("data:") and bool(_DATA_URL.fullmatch(value))


def _can_be_bytes(value: JsonValue, *, has_type: bool) -> bool:
    if not isinstance(value, str):
        return False
    return has_type or _is_data_url(value) or (len(value) >= _LEAST_BYTES and bool(_BASE64.fullmatch(value)))


def _is_bytes(key: str, part: JsonObject) -> bool:
    """Returns whether a value of an object that is no part of an API is bytes, as its key and the others say."""
    value = part[key]
    if _is_data_url(value):
        return True
    kind = part.get("type", part.get("kind"))
    if not (isinstance(value, str) and (key in _BYTES or key == kind) and _BASE64.fullmatch(value)):
        return False
    types = [each for name in _MEDIA_TYPES if isinstance(each := part.get(name), str)]
    return (
        kind == "base64"
        or (kind in ("image", "audio") and key != kind and _can_be_bytes(value, has_type=bool(types)))
        or (key == "blob" and bool(types))
        or (key == "bytes" and len(part) == 1)
        or part.get("format") in _SOUNDS
        or any(map(_BYTES_TYPE.match, types))
    )


def has_media(value: JsonValue, depth: int = 0) -> bool:
    """Returns whether a part that is no text, or a value that is bytes, is anywhere in a value.

    Args:
        value: The value.
        depth: Number of objects and lists around it.
    """
    if depth > _MAX_DEPTH:
        return False
    # Nearly all results have none, so this is fast for those: the loops take a third of the time of `any`.
    if isinstance(value, dict):
        if media_kind(value):
            return True
        kind = value.get("type", value.get("kind"))
        for key, each in value.items():
            if isinstance(each, str):
                if (each[:5] == "data:" or key in _BYTES or key == kind) and _is_bytes(key, value):
                    return True
            elif isinstance(each, (dict, list)) and has_media(each, depth + 1):
                return True
    elif isinstance(value, list):
        for each in value:
            if _is_data_url(each) if isinstance(each, str) else has_media(each, depth + 1):
                return True
    return False


def _kept(value: JsonValue, unread: Counter[str], depth: int) -> JsonValue:
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, list):
        return _kept_of_list(value, unread, depth)
    if not isinstance(value, dict):
        if not _is_data_url(value):
            return value
        unread["data"] += 1
        return ""
    if kind := media_kind(value):
        unread[kind] += 1
        return ""
    if isinstance(value.get("content"), list) and value.keys() <= _MCP:
        return _kept_of_mcp(value, unread, depth)
    bytes_in = {key for key in value if _is_bytes(key, value)}
    named = value.get("type", value.get("kind"))
    unread.update(named if isinstance(named, str) and named in _TYPED else key for key in bytes_in)
    return {key: "" if key in bytes_in else _kept(each, unread, depth + 1) for key, each in value.items()}


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
