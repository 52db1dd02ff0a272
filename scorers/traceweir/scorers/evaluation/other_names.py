"""Tells what is nearest here to a metric that other tools have, by a table with a source for each row."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

MAX_NAME_CHARS = 100
"""Longer names are in no table."""


@dataclass(frozen=True, slots=True)
class OtherName:
    """Holds a row of the table: a metric of another tool."""

    name: str
    tool: str
    nearest: str
    """The metric here that is nearest; empty if there is none."""
    instead: str
    """What differs, or the question that a criterion of one's own asks if no metric is near."""
    source: str
    """The page of the tool's documentation that has the name, or the tool's own list of its metrics."""


def nearest_here(name: str) -> str | None:
    """Returns the end of a message: what is nearest to a metric of another tool; None if no tool has the name.

    Case, underscores, hyphens, the ends `Metric`, `Scorer`, `Evaluator` and `Prompt`, and a module before a dot do
    not count.

    >>> nearest_here("AnswerRelevancyMetric")
    "it is a metric of DeepEval, Ragas and Mastra, and the nearest here is 'relevance_to_query'; see docs/other-names.md"
    >>> nearest_here("brevity")
    """
    rows = _by_key().get(_key(name), ()) if len(name) <= MAX_NAME_CHARS else ()
    if not rows:
        return None
    tools = list(dict.fromkeys(row.tool for row in rows))
    listed = " and ".join(filter(None, (", ".join(tools[:-1]), tools[-1])))
    near = list(dict.fromkeys(row.nearest for row in rows if row.nearest))
    if near:
        said = f"the nearest here is {' or '.join(map(repr, near))}"
    elif not rows[0].instead.endswith("?"):
        said = f"none here is near: write a criterion with a `prompt` (docs/judged-criteria.md). {rows[0].instead}"
        said = said.rstrip(".")
    else:
        said = f"none here is near: let a criterion with a `prompt` ask {rows[0].instead!r} (docs/judged-criteria.md)"
    return f"it is a metric of {listed}, and {said}; see docs/other-names.md"


@cache
def other_names() -> Sequence[OtherName]:
    """Returns the rows of the table, by tool."""
    text = (files(__package__) / "other_names.tsv").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [OtherName(*row) for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


@cache
def _by_key() -> dict[str, list[OtherName]]:
    found: dict[str, list[OtherName]] = {}
    for row in other_names():
        found.setdefault(_key(row.name), []).append(row)
    return found


def _key(name: str) -> str:
    return re.sub(
        "(?:metric|scorer|evaluator|prompt)$", "", re.sub("[^a-z0-9]", "", name.rpartition(".")[2].lower())
    ).removeprefix("create")
