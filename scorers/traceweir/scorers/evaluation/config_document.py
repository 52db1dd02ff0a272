"""Reads the document of a config: JSON in which no key comes twice, and its sections."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.scorers.evaluation.config_problems import MAX_VALUES, ConfigError, is_too_large, kind_of


def loaded_document(document: str | bytes | Mapping[str, JsonValue] | None) -> Mapping[str, JsonValue]:
    """Returns a config as parsed JSON; without a config, an empty object.

    Raises:
        ConfigError: the document is not a JSON object, or too large.
    """
    if document is None:
        return {}
    if isinstance(document, str | bytes):
        try:
            document = json.loads(document, object_pairs_hook=_unique_keys, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            raise ConfigError([f"the document cannot be read as JSON: {error}"]) from None
    if not isinstance(document, Mapping):
        raise ConfigError([f"the document must be a JSON object, not {kind_of(document)}"])
    if is_too_large(document):
        raise ConfigError(
            [f"the config has more than {MAX_VALUES:,} values, the most that is allowed; shorten its lists"]
        )
    return document


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"the key {next(name for name in counts if counts[name] > 1)!r:.200} occurs twice")
    return found


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON")


def taken_section(sections: dict[str, JsonValue], spellings: tuple[str, ...], problems: list[str]) -> JsonObject:
    """Removes a section from the document and returns it, so that its problems are reported with their own paths."""
    given = [spelling for spelling in spellings if spelling in sections]
    values = [sections.pop(spelling) for spelling in given]
    if len(given) > 1:
        problems.append(f"{given[0]} and {given[1]} are the same section; keep one of them")
    value = values[0] if values else {}
    if isinstance(value, dict):
        return value
    problems.append(f"{given[0]}: must be an object, not {kind_of(value)}")
    return {}
