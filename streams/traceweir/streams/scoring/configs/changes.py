"""Says what changes from one config to another: its options, and which scores mean something else afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Challenger, Plan

VALUE_CHARS = 200
"""Maximum number of characters of a value."""


def changed_options(before: JsonObject, after: JsonObject) -> list[str]:
    """Returns a line for each option that differs, by its path, in the order of the paths.

    >>> changed_options({"criteria": {"latency": 2, "a.b": 1}}, {"criteria": {"latency": 3}, "sampling": 0.5})
    ['~ criteria.latency: 2 -> 3', '- criteria["a.b"]: 1', '+ sampling: 0.5']
    """
    old = dict(_leaves(before))
    new = dict(_leaves(after))
    lines = []
    for path in sorted(old.keys() | new.keys()):
        if path not in new:
            lines.append(f"- {path}: {old[path]}")
        elif path not in old:
            lines.append(f"+ {path}: {new[path]}")
        elif old[path] != new[path]:
            lines.append(f"~ {path}: {old[path]} -> {new[path]}")
    return lines


def changed_meanings(before: Plan, after: Plan) -> list[str]:
    """Returns a line for each metric whose scores cannot be compared with those of before, or that comes or goes."""
    old = {metric.name: metric for metric in before.metrics}
    new = {metric.name: metric for metric in after.metrics}
    lines = []
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            lines.append(f"{name} is not measured any more")
        elif name not in old:
            lines.append(f"{name} is measured from now on")
        elif old[name].digest != new[name].digest:
            lines.append(f"{name} is measured in another way: its scores get other ids, and are no continuation")
        elif old[name].threshold != new[name].threshold:
            lines.append(f"{name} has the same values; its statuses are by another threshold")
    if before.trace_value_digest(None) != after.trace_value_digest(None):
        lines.append("trace_value is measured in another way: its scores get other ids, and are no continuation")
    return [*lines, *_changed_challenger(before.challenger, after.challenger)]


def _changed_challenger(before: Challenger | None, after: Challenger | None) -> list[str]:
    lines = []
    if before is not None and (after is None or after.id != before.id):
        lines.append(f"challenger {before.name} ends")
    if after is not None and (before is None or (after.id, after.sample) != (before.id, before.sample)):
        lines.append(f"challenger {after.name} scores {after.sample:.4g} of the sessions beside the champion")
    return lines


def _leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and (value or not path):
        for key, item in value.items():
            yield from _leaves(item, _joined(path, key))
    else:
        yield path, printable(json.dumps(value, ensure_ascii=False), VALUE_CHARS)


def _joined(path: str, key: str) -> str:
    if not key.replace("_", "").isalnum():
        return f"{path}[{json.dumps(printable(key, VALUE_CHARS), ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key
