"""Asserts in which language a judge is asked, and answers as it is asked to."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from traceweir.scorers.judged.labelled_cases import LabelledCase

_BLOCK = re.compile(r"<(\w+) ([0-9a-f]{16})>\n.*?\n</\1 \2>", re.DOTALL)
_REASON = re.compile(
    r'- "(?:rationale|reasoning)": your reason, in one[a-z ]*, in the language of '
    r"(?:the agent's answers?|the text that you judge|the sentence|the user)\."
)
_KEYS = re.compile(r"The keys and the (?:verdicts?|labels) are in English\.")


def assert_asked_in_english(text: str, schema: Mapping[str, Any]) -> None:
    """Asserts that all but the data is English, with the keys and the verdict words, and the reason is not.

    Args:
        text: The text of the question, with marks around the data.
        schema: The JSON Schema of the answer.
    """
    rules = _BLOCK.sub("", text)
    assert rules.isascii()
    assert json.dumps(schema, ensure_ascii=False).isascii()
    said = rules.replace("\n  ", " ")
    assert all(f'"{key}"' in said for key in _keys(schema) if not _is_rubric(key))
    assert all(word in said for word in _words(schema))
    if _keys(schema) & {"rationale", "reasoning"}:
        assert _REASON.search(said)
        assert _KEYS.search(said)


def assert_shows(case: LabelledCase, texts: list[str]) -> None:
    """Asserts that the texts of a case's questions show what the user wrote, letter by letter."""
    shown = "\n".join(found[0] for text in texts for found in _BLOCK.finditer(text))
    for turn in case.turns:
        assert turn.invocation.user_content is not None
        written = turn.invocation.user_content.text
        # In a dialogue each message is a line of JSON.
        assert written in shown or json.dumps(written, ensure_ascii=False) in shown, case.id
    assert r"\u" not in shown, case.id


def answer_with(schema: Mapping[str, Any], text: str) -> Any:
    """Returns an answer of this schema with this text as each text, and the last of the words as each verdict."""
    if "enum" in schema:
        return schema["enum"][-1]
    if "properties" in schema:
        return {key: answer_with(part, text) for key, part in schema["properties"].items()}
    if "items" in schema:
        return [answer_with(schema["items"], text)]
    return 1 if schema["type"] == "integer" else text


def _keys(schema: Mapping[str, Any]) -> set[str]:
    properties = schema.get("properties", {})
    parts = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return set(properties).union(*(_keys(part) for part in parts))


def _words(schema: Mapping[str, Any]) -> set[str]:
    parts = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return set(schema.get("enum", ())).union(*(_words(part) for part in parts))


def _is_rubric(key: str) -> bool:
    """Returns whether a key is the id of a rubric, which the cases number; ids stand among the data."""
    return re.fullmatch(r"r\d+", key) is not None
