"""Reads the tokens of model calls: those of a stored answer, of a message, and of a run that another tool exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted

USES = "model_calls"
"""The key of a message with the model calls of its turn, each with `model`, `input_tokens` and `output_tokens`."""
_USAGES = ("usage", "usage_metadata", "usageMetadata")
_COUNTS: Mapping[str, tuple[str, ...]] = {
    "input_tokens": ("input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "promptTokenCount"),
    "output_tokens": (
        *("output_tokens", "completion_tokens", "outputTokens", "completionTokens", "candidatesTokenCount"),
    ),
}
_TOTALS = ("total_tokens", "totalTokens", "totalTokenCount")
_TOTALS_OF_USAGE = (*_TOTALS, "total", "tokens")
"""The keys of a total in a usage; in a transcript, the last two can have anything."""
_MODELS = ("model", "modelId", "modelVersion")


class ModelUse(NamedTuple):
    """The tokens of a model call."""

    model: str
    """Name of the model; `unknown` without one."""
    counts: Mapping[str, int]
    """`input_tokens` and `output_tokens`, as far as they are known."""


def usage_of(found: JsonObject) -> JsonValue:
    """Returns the object with the tokens of an answer or a message; None without one."""
    return next((found[key] for key in _USAGES if isinstance(found.get(key), dict)), None)


def counts_in(usage: JsonValue) -> dict[str, int]:
    """Returns the numbers of input and output tokens in a usage; none that is not there.

    >>> counts_in({"prompt_tokens": 3, "total_tokens": 5}), counts_in(None)
    ({'input_tokens': 3}, {})
    """
    given = usage if isinstance(usage, dict) else {}
    found = {name: _count(given, keys) for name, keys in _COUNTS.items()}
    return {name: count for name, count in found.items() if count is not None}


def total_alone(found: JsonObject) -> str:
    """Returns the sentence about tokens of which an answer or a transcript has the total alone; empty without that.

    >>> total_alone({"usage": {"total_tokens": 5}})
    'the tokens are not divided into input and output: the total of 5 tokens is all that is there'
    >>> total_alone({"usage": {"prompt_tokens": 3, "total_tokens": 5}}), total_alone({})
    ('', '')
    """
    usage = usage_of(found)
    if counts_in(usage) or counts_in(found):
        return ""
    total = _count(usage, _TOTALS_OF_USAGE) if isinstance(usage, dict) else None
    total = _count(found, _TOTALS) if total is None else total
    if not total:
        return ""
    return (
        f"the tokens are not divided into input and output: the total of {counted(total, 'token')} is all that is there"
    )


def use_in(found: JsonObject) -> ModelUse | None:
    """Returns the model call whose tokens an answer or a message tells; None without tokens."""
    counts = counts_in(usage_of(found))
    return ModelUse(_model_of(found), counts) if counts else None


def uses_in(message: JsonObject) -> tuple[ModelUse, ...]:
    """Returns the model calls whose tokens a message of the agent tells."""
    listed = message.get(USES)
    calls = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    uses = [ModelUse(_model_of(each), counts_in(each)) for each in calls]
    own = use_in(message)
    return tuple(use for use in (*uses, *([own] if own is not None else ())) if use.counts)


def _model_of(found: JsonObject) -> str:
    metadata = found.get("response_metadata")
    named = [found.get(key) for key in _MODELS] + [metadata.get("model_name") if isinstance(metadata, dict) else None]
    return next((each for each in named if isinstance(each, str) and each), "unknown")


def _count(found: JsonObject, keys: tuple[str, ...]) -> int | None:
    values = (found.get(key) for key in keys)
    return next((each for each in values if isinstance(each, int) and not isinstance(each, bool) and each >= 0), None)
