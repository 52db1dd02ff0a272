"""Redacts the free text of a reasoning trace, and leaves everything that the schema defines as it is.

Keys of the schema, constants, enums, the id, step ids, times and numbers are never changed, so that no pattern of a config
makes the document invalid. An id that contains a secret cannot be redacted, because the id is also the key of the
published record: two redacted ids could share a key. The gate rejects such a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.trace import instant
from traceweir.scorers.redaction.custom_patterns import redact_custom
from traceweir.scorers.redaction.entities import FindEntities
from traceweir.scorers.redaction.redaction import NO_PATTERNS, redact, redact_text

_Text: TypeAlias = Literal["text", "label", "unless a time"]
_Fields: TypeAlias = Mapping[str, "_Text | _Fields"]

FREE_TEXT: _Fields = MappingProxyType(
    {
        "source_skill": "label",
        "metadata": {"agent_id": "label", "framework": "label", "task_domain": "label", "validated_by": "text"},
        "task": {"objective": "text", "input_schema": "label"},
        "steps": {
            "content": "text",
            "tool": {"name": "label", "mcp_server": "label"},
            "input": "text",
            "output_summary": "text",
        },
        "outcome": {"result_summary": "text"},
        "knowledge_graph_delta": {
            "entities": {"name": "text", "type": "label"},
            "relationships": {"fact": "text", "valid_from": "unless a time"},
        },
    }
)
"""The fields with text that agents and users wrote; within lists, the fields of each item. Documents in them have free keys.

A recogniser of names does not read a "label", which identifies a program, a kind or a schema.
"""
ID_PREFIX = "kp:trace:"


def redact_trace(
    document: JsonObject,
    custom_patterns: Mapping[str, str] = NO_PATTERNS,
    find_entities: FindEntities | None = None,
) -> JsonObject:
    """Returns a copy of a trace's document with its free text redacted.

    Args:
        document: A document of `ReasoningTrace`.
        custom_patterns: Additional patterns in RE2's syntax, by kind.
        find_entities: Recognises names in texts, but neither in labels nor in keys; None: names stay.

    Raises:
        NotSearchedError: `find_entities` could not search a text.
    """
    return cast("JsonObject", _redacted(document, FREE_TEXT, custom_patterns, find_entities))


def _redacted(
    value: JsonValue, fields: _Text | _Fields, patterns: Mapping[str, str], find_entities: FindEntities | None
) -> JsonValue:
    if isinstance(fields, str):
        is_time = fields == "unless a time" and isinstance(value, str) and _is_time(value)
        return value if is_time else redact(value, patterns, find_entities if fields == "text" else None)
    if isinstance(value, list):
        return [_redacted(item, fields, patterns, find_entities) for item in value]
    if isinstance(value, dict):
        return {
            key: _redacted(child, fields[key], patterns, find_entities) if key in fields else child
            for key, child in value.items()
        }
    return value


def is_publishable_id(trace_id: str, custom_patterns: Mapping[str, str] = NO_PATTERNS) -> bool:
    """Returns whether an id contains neither a secret nor an identifier.

    Patterns of a config apply to the part after `kp:trace:`, which every id has.

    >>> is_publishable_id("kp:trace:order-7"), is_publishable_id("kp:trace:kim@example.com")
    (True, False)
    >>> is_publishable_id("kp:trace:order-7", {"word": "trace"}), is_publishable_id("kp:trace:EMP-7", {"employee": "EMP"})
    (True, False)
    """
    name = trace_id.removeprefix(ID_PREFIX)
    return redact_text(trace_id) == trace_id and redact_custom(name, custom_patterns) == name


def _is_time(value: str) -> bool:
    try:
        instant(value)
    except ValueError:
        return False
    return len(value) >= len("2026-01-31")
