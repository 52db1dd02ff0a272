"""Says what changes from one config to another: its options, and which scores mean something else afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Challenger, Plan, read_plan

VALUE_CHARS = 200
"""Maximum number of characters of a value on a line."""


class OptionChange(NamedTuple):
    """An option that differs between two configs."""

    path: str
    """Where the option is."""
    before: str | None
    """Its whole value as JSON; None: the first config has no such option."""
    after: str | None
    """The value in the second config."""


def option_changes(before: JsonObject, after: JsonObject) -> list[OptionChange]:
    """Returns the options that differ, in the order of their paths.

    >>> option_changes({"sampling": 1}, {"sampling": 0.5})
    [OptionChange(path='sampling', before='1', after='0.5')]
    """
    old = dict(_leaves(before))
    new = dict(_leaves(after))
    paths = sorted(old.keys() | new.keys())
    return [OptionChange(path, old.get(path), new.get(path)) for path in paths if old.get(path) != new.get(path)]


def changed_options(before: JsonObject, after: JsonObject) -> list[str]:
    """Returns a line for each option that differs, by its path, in the order of the paths.

    >>> changed_options({"criteria": {"latency": 2, "a.b": 1}}, {"criteria": {"latency": 3}, "sampling": 0.5})
    ['~ criteria.latency: 2 -> 3', '- criteria["a.b"]: 1', '+ sampling: 0.5']
    """
    return [_line(each) for each in option_changes(before, after)]


def _line(change: OptionChange) -> str:
    before, after = (each and printable(each, VALUE_CHARS) for each in (change.before, change.after))
    if after is None:
        return f"- {change.path}: {before}"
    if before is None:
        return f"+ {change.path}: {after}"
    if before == after:
        return f"~ {change.path}: {before} -> the same beginning, and another end"
    return f"~ {change.path}: {before} -> {after}"


def meanings(before: JsonObject, after: JsonObject) -> list[str]:
    """Returns which scores mean something else after a change, or that this is unknown."""
    try:
        return changed_meanings(read_plan(before), read_plan(after))
    except ConfigError as error:
        # A version of an earlier Traceweir, or with metrics that are not installed here.
        return [f"which scores change is unknown: {printable(str(error), 1_000)}"]


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
        yield path, json.dumps(value, ensure_ascii=False)


def _joined(path: str, key: str) -> str:
    if not key.replace("_", "").isalnum():
        return f"{path}[{json.dumps(printable(key, VALUE_CHARS), ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key
