"""Redacts secrets and personal identifiers from documents before they are published.

The kinds are those of KnowledgePulse's PII cleaner (packages/sdk/src/utils/pii-cleaner.ts), Korean telephone numbers, the
formats of `secret_formats.tsv`, secrets that a name reveals, payment cards, IBANs, resident registration numbers and IPv6
addresses. Each match becomes a token such as `[REDACTED:email]`. The rules are applied until the text does not change any
more, so redaction is idempotent. Every pattern takes time proportional to the text.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import JsonValue

from traceweir.scorers.redaction.custom_patterns import redact_custom
from traceweir.scorers.redaction.detection import find_hits
from traceweir.scorers.redaction.entities import FindEntities
from traceweir.scorers.redaction.hits import replaced, token
from traceweir.scorers.redaction.secret_names import is_secret_value, secret_role

NO_PATTERNS: Mapping[str, str] = MappingProxyType({})

_MAX_SEARCHED_CHARS = 200_000
"""Characters that all passes together search, so that a long hostile text costs few passes. Two passes always run."""
_MAX_PASSES = 20
_IN_SCHEMA = "schema of "
_SCHEMA_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_SCHEMA_VALUES = ("default", "example", "examples", "const", "enum", "value")


def redact(
    value: JsonValue, custom_patterns: Mapping[str, str] = NO_PATTERNS, find_entities: FindEntities | None = None
) -> JsonValue:
    """Returns a copy of a JSON document with every string redacted, including the keys.

    Args:
        value: The document.
        custom_patterns: Additional patterns in RE2's syntax, by kind. They are applied first, once.
        find_entities: Recognises names in the strings, but not in the keys; None: names stay.

    Strings under a key that names a secret (`password`, `api_key`, `auth_token`, ...) are replaced completely, except
    placeholders such as `required`. No value is added or removed, and numbers stay unchanged. Keys that become equal
    are numbered in their order.

    >>> redact({"to": ["kim@example.com"], "password": "hunter2", "tries": 2})
    {'to': ['[REDACTED:email]'], 'password': '[REDACTED:password]', 'tries': 2}
    >>> redact({"kim@example.com": 1, "lee@example.com": 2})
    {'[REDACTED:email]': 1, '[REDACTED:email]#2': 2}
    """
    whole: list[JsonValue] = [value]
    # Copies that still contain the children of the original, and what the nearest parent key holds. A stack replaces
    # recursion, because a document can be nested deeper than Python's recursion limit.
    pending: list[tuple[list[JsonValue] | dict[str, JsonValue], str]] = [(whole, "")]
    while pending:
        container, role = pending.pop()
        # Any: a key of a dict or a position in a list.
        places: list[tuple[Any, JsonValue]] = list(
            container.items() if isinstance(container, dict) else enumerate(container)
        )
        for place, child in places:
            child_role = _role_within(role, place, child)
            copied = child
            if isinstance(child, str):
                is_secret = child_role and is_secret_value(child_role, child, quoted=True)
                copied = token("password") if is_secret else redact_text(child, custom_patterns, find_entities)
            elif isinstance(child, dict | list):
                copied = child.copy() if isinstance(child, list) else _with_redacted_keys(child, custom_patterns)
                pending.append((copied, child_role))
            container[place] = copied
    return whole[0]


def redact_text(
    text: str, custom_patterns: Mapping[str, str] = NO_PATTERNS, find_entities: FindEntities | None = None
) -> str:
    """Returns the text with every secret and identifier replaced by a token that names its kind.

    Args:
        text: Any text.
        custom_patterns: Additional patterns in RE2's syntax, by kind. They are applied first, once.
        find_entities: Recognises names, once; None: names stay.

    >>> redact_text("Mail kim@example.com or call 010-1234-5678 about HAT136 on 2024-05-20.")
    'Mail [REDACTED:email] or call [REDACTED:phone] about HAT136 on 2024-05-20.'
    """
    text = redact_custom(text, custom_patterns)
    entities = [] if find_entities is None else find_entities(text)
    for _ in range(max(2, min(_MAX_PASSES, _MAX_SEARCHED_CHARS // (len(text) + 1)))):
        hits = [*find_hits(text), *entities]
        # Their positions are those of the text before the first pass.
        entities = []
        before = text
        text = replaced(text, hits) if hits else text
        if text == before:
            break
    return text


def _role_within(role: str, place: object, child: JsonValue) -> str:
    """Returns what a child holds: by its own key, otherwise by the nearest parent key that names a secret.

    A JSON Schema under such a key (`"password": {"type": "string"}`) describes a secret: only its example values hold any.
    """
    if role.startswith(_IN_SCHEMA):
        return role.removeprefix(_IN_SCHEMA) if place in _SCHEMA_VALUES else ""
    own = secret_role(place) if isinstance(place, str) else ""
    role = own or role
    is_schema = own and isinstance(child, dict) and (child.get("type") in _SCHEMA_TYPES or "$ref" in child)
    return _IN_SCHEMA + role if is_schema else role


def _with_redacted_keys(document: dict[str, JsonValue], custom_patterns: Mapping[str, str]) -> dict[str, JsonValue]:
    redacted_keys = {key: redact_text(key, custom_patterns) for key in document}
    used = {key for key, redacted in redacted_keys.items() if key == redacted}
    if len(used) == len(redacted_keys):
        return document.copy()
    copy: dict[str, JsonValue] = {}
    numbers = dict.fromkeys(
        redacted_keys.values(),
        1,
        # Kept, because a document can have thousands of equal redacted keys.
    )
    for key, value in document.items():
        redacted = new_key = redacted_keys[key]
        while key != new_key and new_key in used:
            numbers[redacted] += 1
            new_key = f"{redacted}#{numbers[redacted]}"
        used.add(new_key)
        copy[new_key] = value
    return copy
