"""The example's evaluation rows through Kafka and a worker: what must come out, on any broker."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.audit.committed import Committed
from tests.support.recorded import DEADLINE_S, tracegate
from tests.support.workers import Fleet

from tracegate.streams.admin import create_topics
from tracegate.streams.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS, CONFIG = EXAMPLES / "evaluation_rows.jsonl", EXAMPLES / "agent_evaluation.json"
DIFFERS = {"evaluated_at", "occurred_at"}
"""Between two runs: when the records came, and when they were scored."""


def check_rows(servers: str, prefix: str, folder: Path) -> None:
    """Emit the rows past a worker, and hold its scores against those that `score` gives of the file."""
    offline = scores_of_the_file()
    create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix))
    application = f"{prefix}assemble-score-gate"
    with Committed(servers, prefix, application) as committed, Fleet(servers, prefix, folder, CONFIG, "none") as fleet:
        worker = fleet.start("worker")
        ended = tracegate("emit", str(ROWS), servers=servers, prefix=prefix)
        assert (ended.returncode, ended.stderr) == (0, "")
        deadline = time.monotonic() + DEADLINE_S
        while len(committed.rows["results"]) < len(offline):
            if worker.ended or time.monotonic() > deadline:
                pytest.fail(f"the scores did not come about; the worker says\n{worker.log.read_text()}")
            committed.read(0.1)
        online = by_id(row.document for row in committed.rows["results"])
        assert committed.rows["dead-letters"] == []
        assert worker.terminate(30) == 0
    assert online == offline


def scores_of_the_file() -> dict[str, Any]:
    ended = tracegate("score", str(ROWS), "--config", str(CONFIG), "--embedder", "none", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    found = by_id(map(json.loads, ended.stdout.splitlines()))
    assert len(found) == 30
    assert sum(each["value"] is not None for each in found.values()) == 14
    return found


def by_id(scores: Any) -> dict[str, Any]:
    return {each["result_id"]: {key: value for key, value in each.items() if key not in DIFFERS} for each in scores}
