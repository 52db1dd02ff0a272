"""The ledger of seeds: a line for each long run, with what was played and what was wrong."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LEDGER = Path(__file__).parent / "ledger.jsonl"


@dataclass
class Entry:
    """A run.

    A seed means the same in all runs of one commit. After a change of the worker or of the simulation, the same seed
    can play something else.
    """

    commit: str
    """The commit, with `+` if files have changed since."""
    first: int
    """The first seed."""
    seeds: int = 0
    """Number of seeds, which follow each other."""
    faults: dict[str, int] = field(default_factory=dict)
    """Number of faults by kind."""
    kinds: dict[str, int] = field(default_factory=dict)
    """Number of seeds by what their workers do."""
    simulated_s: float = 0.0
    took_s: float = 0.0
    cpu_s: float = 0.0
    """CPU time of all processes in seconds."""
    drawn: int | None = None
    """Faults that were drawn for each seed (`--faults`), which a repetition needs; None in the first runs, which did not
    write it down."""
    wrong: list[int] = field(default_factory=list)
    """The seeds that were wrong."""

    def text(self) -> str:
        """Returns the figures of the run as lines."""
        faults = sum(self.faults.values())
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.kinds.items()))
        hours = self.simulated_s / 3600
        played = f"{self.seeds} seeds ({kinds}), {faults} faults, {hours:.2f} simulated hours"
        speed = (
            f"{faults / self.took_s:.1f} faults a second, {faults / max(self.cpu_s, 0.001):.1f} a second of CPU time"
        )
        lines = [f"{played} in {self.took_s:.0f} s: {len(self.wrong)} wrong"]
        lines += [f"{speed}, {hours / self.took_s * 60:.2f} simulated hours a minute"]
        lines += [f"  {kind}: {number}" for kind, number in Counter(self.faults).most_common()]
        return "\n".join(lines)


def append(entry: Entry, path: Path) -> None:
    """Appends a run to a ledger."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(entry)) + "\n")


def read(path: Path) -> Iterator[Entry]:
    """Returns the runs of a ledger."""
    for line in path.read_text().splitlines():
        yield Entry(**json.loads(line))


def total(path: Path) -> Entry:
    """Returns the sum of all runs of a ledger."""
    entries = list(read(path))
    found = Entry(f"{len({each.commit for each in entries})} commits", min(each.first for each in entries))
    for each in entries:
        found.seeds += each.seeds
        found.faults = dict(Counter(found.faults) + Counter(each.faults))
        found.kinds = dict(Counter(found.kinds) + Counter(each.kinds))
        found.simulated_s += each.simulated_s
        found.took_s += each.took_s
        found.cpu_s += each.cpu_s
        found.wrong += each.wrong
    return found


def commit() -> str:
    """Returns the commit of this folder, with `+` if files have changed since; an empty text outside a repository."""
    known = _git("rev-parse", "--short=12", "HEAD")
    return known + "+" * bool(_git("status", "--porcelain", "--untracked-files=no"))


def seed_of_tree() -> int:
    """Returns a seed that is drawn from the content of the last commit: the same for each run of the same content."""
    return int(_git("rev-parse", "HEAD^{tree}")[:7] or "0", 16) * 10_000


def _git(*words: str) -> str:
    done: Any = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return str(done.stdout).strip()
