"""Records the scores without Kafka of the cases in `tests/support/offline_inputs.py`, as this version computes them.

The file was recorded with the code that kept the whole input in memory. Record again only when a score is meant to
change: `python -m tests.parity.record_offline`
"""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.offline_inputs import CASES, CLOCK, RECORDED, Case, summary

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.scoring.embedders.loading import load_embedder
from traceweir.streams.tools.offline.score_documents import score_offline


def scored(case: Case, folder: Path) -> dict[str, Any]:
    """Returns the summary of a case."""
    result = asyncio.run(
        score_offline(
            case.documents(folder),
            read_plan(case.config),
            load_embedder(case.embedder),
            case.settings,
            clock=lambda: CLOCK,
            progress=lambda done, total: None,
        )
    )
    return summary(result.scores, result.problems, result.documents, result.sessions, result.duplicates)


def main() -> None:
    """Writes the file."""
    found = {}
    for name, case in CASES.items():
        with TemporaryDirectory() as folder:
            found[name] = scored(case, Path(folder))
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
