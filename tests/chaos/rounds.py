"""Reads and writes the file of rounds, which has a JSON line per finished round, and builds the table over all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from tests.audit.claims import HEADINGS

Line = dict[str, Any]


class RoundsFile:
    """The file of rounds. Each round is appended with one write; an incomplete last line is dropped."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.lines: list[Line] = []
        kept = b""
        for raw in file.read_bytes().splitlines(keepends=True) if file.exists() else []:
            try:
                self.lines.append(json.loads(raw))
            except ValueError:
                if not raw.endswith(b"\n"):  # The harness was killed while it wrote this line.
                    file.write_bytes(kept)
                    break
                raise
            kept += raw

    @property
    def seeds(self) -> set[int]:
        """The finished rounds."""
        return {line["seed"] for line in self.lines}

    def append(self, line: Line) -> None:
        """Appends a round."""
        self.lines.append(line)
        with self._file.open("ab") as file:
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def faults_found(line: Line) -> int:
    """Returns the number of faults that the audit found in a round."""
    return 1 if "error" in line else sum(line[heading] for heading in HEADINGS)


def tables(lines: Sequence[Line]) -> Group:
    """Returns the totals of all rounds by broker."""
    brokers = ("kafka", "embedded")
    played = {
        broker: [each for each in lines if each.get("scenario", {}).get("broker") == broker] for broker in brokers
    }
    broken = [line for line in lines if "error" in line]
    totals = Table("", *(_title(broker) for broker in brokers), title="Rounds")
    rows: dict[str, list[str]] = {"rounds": [str(len(played[broker])) for broker in brokers]}
    rows["with 1, 2, 4 workers"] = [
        ", ".join(str(sum(each["scenario"]["workers"] == n for each in played[broker])) for n in (1, 2, 4))
        for broker in brokers
    ]
    rows["with distant nodes"] = _sums(played.values(), lambda each: each["scenario"].get("distance_s", 0) > 0)
    rows["records sent"] = _sums(played.values(), lambda each: each["sent"]["records"])
    rows["joined"] = _sums(played.values(), lambda each: each["sent"]["joined"])
    rows["dead-lettered"] = _sums(played.values(), lambda each: each["dead_lettered"])
    for heading in HEADINGS:
        rows[heading] = _sums(played.values(), lambda each, heading=heading: each[heading])
    rows["longest pause, s"] = [str(max((e["longest_pause_s"] for e in played[b]), default="")) for b in brokers]
    rows["largest state, MB"] = [f"{max((e['state_bytes'] for e in played[b]), default=0) / 1e6:.1f}" for b in brokers]
    for name, cells in rows.items():
        totals.add_row(name, *cells)
    faults = Table("", *(_title(broker) for broker in brokers), title="Faults")
    counts = {broker: _added(each["faults"] for each in played[broker]) for broker in brokers}
    for kind in sorted({*counts["kafka"], *counts["embedded"]}):
        faults.add_row(kind, *(str(counts[broker][kind]) for broker in brokers))
    faults.add_row("in all", *(str(counts[broker].total()) for broker in brokers))
    ends = Table("", *(_title(broker) for broker in brokers), title="Exits of workers that the harness had not killed")
    ended = {broker: _added(each["ends"] for each in played[broker]) for broker in brokers}
    for way in sorted({*ended["kafka"], *ended["embedded"]}):
        ends.add_row(way, *(str(ended[broker][way]) for broker in brokers))
    not_played = [f"round {line['seed']} did not finish: {line['error']}" for line in broken]
    return Group(totals, faults, ends, *not_played)


def _added(counts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _sums(played: Iterable[Sequence[Line]], number: Any) -> list[str]:
    return [f"{sum(map(number, lines)):,}" for lines in played]


def _title(broker: str) -> str:
    return {"kafka": "Apache Kafka", "embedded": "embedded broker"}[broker]
