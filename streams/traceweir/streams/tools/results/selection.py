"""Selects scores by their dimensions, as the options `--where NAME=VALUE` name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

LABEL = "labels."
"""What the name of a label begins with where it is used like that of a dimension."""
DIMENSIONS = ("app_name", "agent_name", "agent_version", "environment", "model", "user_id", "judge")
"""The dimensions by which scores can be selected, beside labels; `judge` is the model that judged."""


class Dimensional(Protocol):
    """What has the dimensions as attributes: a Score, or an outline of it."""

    @property
    def labels(self) -> Mapping[str, str] | None:
        """The labels."""


def dimension_of(found: Dimensional, name: str) -> str | None:
    """Returns the value of a dimension, or of the label after `LABEL`; None if there is none."""
    if name.startswith(LABEL):
        return (found.labels or {}).get(name.removeprefix(LABEL))
    value: str | None = getattr(found, name)
    return value


def wanted_dimensions(given: Sequence[str]) -> dict[str, frozenset[str]]:
    """Returns the wanted values of each dimension, from texts `NAME=VALUE`.

    >>> wanted_dimensions(["app_name=shop"])
    {'app_name': frozenset({'shop'})}

    Raises:
        ValueError: a text has no value, or does not begin with the name of a dimension or of a label.
    """
    wanted: dict[str, frozenset[str]] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (equals and value and is_dimension(name)):
            raise ValueError(f"{each!r}: write NAME=VALUE, where NAME is {', '.join(DIMENSIONS)} or {LABEL}NAME")
        wanted[name] = wanted.get(name, frozenset()) | {value}
    return wanted


def is_dimension(name: str) -> bool:
    """Returns whether scores can be selected by this name."""
    return name in DIMENSIONS or (name.startswith(LABEL) and name != LABEL)
