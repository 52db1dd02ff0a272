"""Writes the tables of docs/other-names.md."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from traceweir.scorers.evaluation.other_names import OtherName, other_names


def tables() -> tuple[list[str], list[str]]:
    """Returns two Markdown tables of the metrics of other tools: those with a near metric here, and those without one."""
    near = sorted(filter(attrgetter("nearest"), other_names()), key=attrgetter("nearest"))
    far = [row for row in other_names() if not row.nearest]
    return (
        [
            "| nearest here | what differs, and what other tools call it |",
            "|---|---|",
            *(
                f"| `{nearest}` | "
                + "<br>".join(_said(said) + _names(alike) for said, alike in _by_difference(rows))
                + " |"
                for nearest, rows in groupby(near, attrgetter("nearest"))
            ),
        ],
        [
            "| what to ask, or advice | what other tools call it |",
            "|---|---|",
            *(f"| {said} | {_names(alike)} |" for said, alike in _by_difference(far)),
        ],
    )


def _said(difference: str) -> str:
    """Returns what differs, as the beginning of a line; nothing where nothing does."""
    return "" if difference == "The same question." else f"{difference.rstrip('.')}: "


def _by_difference(rows: Iterable[OtherName]) -> list[tuple[str, list[OtherName]]]:
    found: dict[str, list[OtherName]] = {}
    for row in rows:
        found.setdefault(row.instead, []).append(row)
    return list(found.items())


def _names(rows: Iterable[OtherName]) -> str:
    """Returns the names of metrics, by tool, each with a link to its documentation."""
    return "; ".join(
        f"{tool} " + ", ".join(f"[`{row.name}`]({row.source})" for row in of_tool)
        for tool, of_tool in groupby(rows, attrgetter("tool"))
    )
