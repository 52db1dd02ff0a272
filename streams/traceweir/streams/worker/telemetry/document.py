"""Writes the table of all metrics: `python -m traceweir.streams.worker.telemetry.document`, with `--check` to compare."""

from __future__ import annotations

import sys
from pathlib import Path

from traceweir.streams.worker.telemetry.catalogue import CATALOGUE, Instrument
from traceweir.streams.worker.telemetry.tool_catalogue import ALERTS, CANARY, EXPORT, TRUST

PAGE = Path("docs/telemetry.md")
_BEGIN = "<!-- metrics: begin -->\n"
_END = "<!-- metrics: end -->\n"


def table() -> str:
    """Returns the table of all metrics in Markdown."""
    head = "| Prometheus | OpenTelemetry | kind | unit | attributes | meaning |\n|---|---|---|---|---|---|\n"
    return head + "".join(map(_row, (*CATALOGUE, *CANARY, *EXPORT, *TRUST, *ALERTS)))


def main(arguments: list[str]) -> int:
    """Writes the page, or compares it; returns the exit code."""
    before = PAGE.read_text("utf-8")
    start, rest = before.split(_BEGIN)
    _, end = rest.split(_END)
    after = f"{start}{_BEGIN}\n{table()}\n{_END}{end}"
    if "--check" not in arguments:
        PAGE.write_text(after, "utf-8")
    elif after != before:
        sys.stderr.write(f"{PAGE} differs from the catalogue of metrics: run `make format`\n")
        return 1
    return 0


def _row(each: Instrument) -> str:
    attributes = ", ".join(f"`{name}`" for name in each.attributes)
    return (
        f"| `{each.prometheus_name}` | `{each.name}` | {each.kind} | `{each.unit}` | {attributes} | {each.meaning} |\n"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
