"""Reads the sides of `traceweir diff`: `scores.jsonl`, `results?since=7d&until=3d`, `results.shadow.v2?app_name=shop`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import get_args
from urllib.parse import parse_qsl

from traceweir.schemas.invocation import Level
from traceweir.scorers.databricks_names import full_name
from traceweir.streams.base.topics import Topics
from traceweir.streams.cli.times import read_time
from traceweir.streams.lab.comparison_sides import ScoreSelection, ScoreSource
from traceweir.streams.tools.results.selection import DIMENSIONS, LABEL, is_dimension

LIVE = "results"
SHADOW = "results.shadow."
_TIMES = ("since", "until")
LEVELS: tuple[str, ...] = get_args(Level)
_MAX_PARTS = 50


def read_source(text: str, now: datetime, *selections: ScoreSelection) -> ScoreSource:
    """Returns what a side names: the topic `results`, a shadow, or else a file, each with an optional selection.

    The selection stands after a question mark, as in a URL: `NAME=VALUE`, joined by `&`. A name that is repeated selects
    any of its values.

    >>> now = datetime.fromisoformat("2026-01-31T12:00Z")
    >>> source = read_source("results.shadow.v2?since=2h&agent_version=1", now)
    >>> source.shadow, source.selections[0].dimensions, now.timestamp() - source.since_ms / 1000
    ('v2', {'agent_version': frozenset({'1'})}, 7200.0)

    Args:
        text: As the user wrote it.
        now: The time from which durations such as `7d` count back.
        selections: Further selections that a score must match.

    Raises:
        ValueError: the text cannot be read; the message states the rule.
    """
    place, _, query = text.partition("?")
    parts = _parts(query)
    is_topic = place == LIVE or place.startswith(SHADOW)
    shadow = place.removeprefix(SHADOW) if place.startswith(SHADOW) else None
    if shadow is not None:
        Topics.of().shadow_results(shadow)
    times = _times([part for part in parts if part[0] in _TIMES], now)
    if times and not is_topic:
        raise ValueError("a file has no time of writing; since and until select from a topic")
    if not place:
        raise ValueError("name a file, `results` or `results.shadow.NAME` before the question mark")
    return ScoreSource(
        name="standard input" if text == "-" else text,
        path=None if is_topic else place,
        shadow=shadow,
        since_ms=times.get("since"),
        until_ms=times.get("until"),
        selections=(
            ScoreSelection(
                frozenset(full_name(value) for name, value in parts if name == "metric"),
                _dimensions(parts),
                wanted_levels([value for name, value in parts if name == "level"]),
            ),
            *selections,
        ),
    )


def wanted_levels(given: Sequence[str]) -> frozenset[str]:
    """Returns the levels.

    Raises:
        ValueError: there is no such level.
    """
    for level in given:
        if level not in LEVELS:
            raise ValueError(f"{level!r:.80} is not a level; choose from {', '.join(LEVELS)}")
    return frozenset(given)


def _parts(query: str) -> list[tuple[str, str]]:
    try:
        parts = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=_MAX_PARTS)
    except ValueError:
        parts = [("", "")]
    known = ("metric", "level", *_TIMES, *DIMENSIONS)
    for name, value in parts:
        if not (name and value):
            raise ValueError(f"{query!r:.120}: write NAME=VALUE, joined by &; a & in a value is %26, and a % is %25")
        if name not in known and not is_dimension(name):
            raise ValueError(f"{name!r:.80}: select by {', '.join(known)} or {LABEL}NAME")
    return parts


def _dimensions(parts: Sequence[tuple[str, str]]) -> dict[str, frozenset[str]]:
    wanted: dict[str, frozenset[str]] = {}
    for name, value in parts:
        if is_dimension(name):
            wanted[name] = wanted.get(name, frozenset()) | {value}
    return wanted


def _times(parts: Sequence[tuple[str, str]], now: datetime) -> dict[str, int]:
    times: dict[str, int] = {}
    for name, value in parts:
        if name in times:
            raise ValueError(f"{name} is given twice")
        try:
            times[name] = read_time(value, now)
        except OverflowError as error:
            raise ValueError(f"{name}={value:.80}: {error}") from None
    if times.get("since", -math.inf) >= times.get("until", math.inf):
        raise ValueError("the range of time is empty, because until is not later than since")
    return times
