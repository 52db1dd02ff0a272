"""Writes a comparison as Markdown for a pull request, in which text of agents and models is never markup.

Text of others stands in code spans. In a code span, HTML, links, mentions and issue numbers have no effect. Two
characters could end it: a backtick, and in a table `|`. They are written as escapes, as control characters are.
"""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.text import printable
from traceweir.streams.lab.comparison.document import Diff
from traceweir.streams.lab.comparison.sections import NONE, flips_of, sections_of, verdict_of

_LONGEST_CELL = 200
_LONGEST_RATIONALE = 500
_ESCAPES = str.maketrans({"`": r"\x60", "|": r"\x7c"})


def markdown_of(comparison: Diff) -> str:
    """Returns the tables and flips of a comparison in GitHub Flavored Markdown, with a line feed at the end."""
    lines = ["### traceweir diff", ""]
    if verdict := verdict_of(comparison):
        lines += [f"**{verdict}**", ""]
    for section in sections_of(comparison):
        lines += [f"#### {section.title}", "", _row(section.headings), _row(["---"] * len(section.headings))]
        lines += [_row([_code(cell) for cell in row]) for row in section.rows]
        lines += ["", *(f"- {_code(remark)}" for remark in section.remarks), ""]
    for flips in flips_of(comparison):
        lines += [f"#### flips of {_code(flips.metric)}", ""]
        for flip in flips.flips:
            lines += [
                f"- {_code(flip.place)}: {_code(flip.change)}",
                f"  - base: {_code(flip.base, _LONGEST_RATIONALE)}",
                f"  - challenger: {_code(flip.challenger, _LONGEST_RATIONALE)}",
            ]
        if flips.left_out:
            lines.append(f"- and {flips.left_out} more")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str, longest: int = _LONGEST_CELL) -> str:
    shown = printable(text, longest).translate(_ESCAPES)
    return f"`{shown}`" if shown.strip() else NONE
