"""Decides how much of the agents' text an answer contains."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, JsonValue

from traceweir.scorers.redaction.redaction import redact, redact_text

Content = Literal["redacted", "full", "none"]
_TEXTS = ("rationale", "detail", "note", "record_value", "record_key")
_DOCUMENTS = ("document", "details", "labels")
_HIDDEN_AS = {"rationale": "", "detail": ""}


def shown(answer: BaseModel, content: Content) -> dict[str, JsonValue]:
    """Returns an answer as JSON, with the texts of agents and judges redacted, whole or left out.

    With `redacted`, secrets and identifiers in texts and documents are replaced by tokens such as `[REDACTED:email]`.
    With `none`, texts are empty and documents are null. Ids, names and figures stay in each case.
    """
    found: dict[str, JsonValue] = answer.model_dump(mode="json")
    return found if content == "full" else _without(found, content)


def shown_text(text: str, content: Content) -> str:
    """Returns a text as a page shows it; with `none`, it is empty."""
    return text if content == "full" else redact_text(text) if content == "redacted" else ""


def shown_document(document: Any, content: Content) -> Any:
    """Returns a document of JSON as a page shows it; with `none`, it is None."""
    return document if content == "full" else redact(document) if content == "redacted" else None


def _without(value: Any, content: Content) -> Any:
    if isinstance(value, list):
        return [_without(each, content) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _cell(name, each, content) for name, each in value.items()}


def _cell(name: str, value: Any, content: Content) -> Any:
    if name in _TEXTS and isinstance(value, str):
        return shown_text(value, content) or _HIDDEN_AS.get(name)
    if name in _DOCUMENTS:
        return shown_document(value, content)
    return _without(value, content)
