"""Writes the list of all metrics: `python -m traceweir.streams.worker.telemetry.document`, with `--check` to compare."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from traceweir.streams.worker.telemetry.catalogue import CATALOGUE, Instrument
from traceweir.streams.worker.telemetry.tool_catalogue import ALERTS, CANARY, EXPORT, TRUST

PAGE = Path("docs/telemetry.md")
_BEGIN = "<!-- metrics: begin -->\n"
_END = "<!-- metrics: end -->\n"
_WIDTH = 119
"""Maximum length of a line, as of all prose in the pages."""


def listed() -> str:
    """Returns the list of all metrics in Markdown."""
    return "".join(map(_entry, (*CATALOGUE, *CANARY, *EXPORT, *TRUST, *ALERTS)))


def main(arguments: list[str]) -> int:
    """Writes the page, or compares it; returns the exit code."""
    before = PAGE.read_text("utf-8")
    start, rest = before.split(_BEGIN)
    _, end = rest.split(_END)
    after = f"{start}{_BEGIN}\n{listed()}\n{_END}{end}"
    if "--check" not in arguments:
        PAGE.write_text(after, "utf-8")
    elif after != before:
        sys.stderr.write(f"{PAGE} differs from the catalogue of metrics: run `make format`\n")
        return 1
    return 0


def _entry(each: Instrument) -> str:
    of = ", ".join([*(["histogram"] if each.kind == "histogram" else []), *(f"`{name}`" for name in each.attributes)])
    text = f"- `{each.prometheus_name}`{f' ({of})' if of else ''}: {each.meaning}"
    lines = textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
