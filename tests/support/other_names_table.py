"""Writes the table of docs/other-names.md."""

from __future__ import annotations

from traceweir.scorers.evaluation.other_names import other_names


def table() -> list[str]:
    """Returns a Markdown table with a line for each metric of another tool."""
    return [
        "| tool | metric | nearest here | what differs, or what to ask | source |",
        "|---|---|---|---|---|",
        *(
            f"| {row.tool} | `{row.name}` | {f'`{row.nearest}`' if row.nearest else 'none'} | {row.instead} "
            f"| [documentation]({row.source}) |"
            for row in other_names()
        ),
    ]
