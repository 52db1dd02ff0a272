"""Reads the tokens of the model calls in traces of Langfuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.chat_usage import counts_in

_DETAILS = ("usageDetails", "usage_details")
_SIDES = {"input_tokens": "input", "output_tokens": "output"}
_TOKENS = ("TOKENS", None)
_DEEPEST = 100
"""Maximum number of observations around a model call that are looked at; ids can name each other in a circle."""


def tokens_of_observations(observed: Sequence[JsonObject]) -> list[JsonObject]:
    """Returns the tokens of each model call in the observations of a trace, with the model.

    A model call within another one repeats its tokens.
    """
    models = [each for each in observed if each.get("type") == "GENERATION"]
    counted = [(each, counts) for each in models if (counts := _counts(each))]
    ids = {name for each, _ in counted if isinstance(name := each.get("id"), str)}
    parents = {name: _parent(each) for each in observed if isinstance(name := each.get("id"), str)}
    found: list[JsonObject] = []
    for each, counts in counted:
        if not _is_within(_parent(each), ids, parents):
            model = each.get("model") or each.get("provided_model_name")
            found.append({**({"model": model} if model else {}), **counts})
    return found


def _parent(observation: JsonObject) -> str | None:
    found = observation.get("parentObservationId", observation.get("parent_observation_id"))
    return found if isinstance(found, str) else None


def _is_within(name: str | None, ids: set[str], parents: Mapping[str, str | None]) -> bool:
    """Returns whether an observation, or one of those around it, is one of `ids`."""
    for _ in range(_DEEPEST):
        if name is None or name in ids:
            break
        name = parents.get(name)
    return name in ids


def _counts(model: JsonObject) -> JsonObject:
    for name in _DETAILS:
        if isinstance(details := model.get(name), dict) and (counts := _of_details(details)):
            return counts
    usage = model.get("usage")
    if isinstance(usage, dict) and usage.get("unit") in _TOKENS:
        sides: JsonObject = {key: usage.get(side) for key, side in _SIDES.items()}
        return {**counts_in(sides)} or {**counts_in(usage)}
    # As in older exports.
    return {**counts_in(model)}


def _of_details(details: JsonObject) -> JsonObject:
    """Returns the sums of the kinds of tokens that were read, and that were written: `input_cached_tokens` is beside `input`."""
    found: JsonObject = {}
    for key, side in _SIDES.items():
        numbers: list[JsonValue] = [value for name, value in details.items() if side in name]
        counts = [each for each in numbers if isinstance(each, int) and not isinstance(each, bool) and each >= 0]
        if counts:
            found[key] = sum(counts)
    return found or {**counts_in(details)}
