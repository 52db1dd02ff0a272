"""Sends evaluation rows with every possible metric through a worker, and checks the output, on any broker."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.audit.committed import Committed
from tests.support.openai_server import Say, openai_server_apart
from tests.support.prompt_tags import without_tag
from tests.support.recorded import DEADLINE_S, traceweir
from tests.support.workers import Fleet

from traceweir.scorers.databricks_names import RUNS_ON, full_name
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.topic_admin import create_topics

EXAMPLES = Path(__file__).parents[2] / "examples" / "evaluation_rows.jsonl"
CONFIG: dict[str, Any] = {
    "agent_evaluation": {"judge_model_options": {"judge_model": "openai/local", "num_samples": 3}},
    "criteria": {
        "document_recall": 0.5,
        "correctness": {"threshold": 1, "judge_model_options": {"judge_model": "openai/local"}},
        "completeness": 0.5,
        "keyword_coverage": {"threshold": 0.5, "compat": "mastra"},
        "content_similarity": 0.5,
        "tool_call_accuracy": {"threshold": 1, "expected_tool": "find_documents"},
        "response_match_score": 0.5,
    },
    "judge": {"structured_output": "always", "prices": {"openai/local": {"input": 1, "output": 2}}},
}
MEASURED = {*RUNS_ON, *map(full_name, CONFIG["criteria"])}
DIFFERS = {"evaluated_at", "occurred_at", "segment_opened_at"}
"""Fields that differ between two runs: the times of arrival and of scoring."""


def check_rows(servers: str, prefix: str, folder: Path) -> None:
    """Emits the rows to a worker, and compares its scores with those that `score` returns for the file."""
    config, rows = folder / "config.json", folder / "rows.jsonl"
    config.write_text(json.dumps(CONFIG))
    rows.write_text(EXAMPLES.read_text("utf-8") + json.dumps(with_a_tool()) + "\n", "utf-8")
    with openai_server_apart(default=decided) as server:
        judge = {"TRACEWEIR_JUDGE_API_BASE": server.url, "TRACEWEIR_JUDGE_CACHE": str(folder / "verdicts.sqlite3")}
        offline = scores_of_the_file(rows, config, judge)
        asked = len(server.asked)
        create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix))
        application = f"{prefix}assemble-score-gate"
        with (
            Committed(servers, prefix, application) as committed,
            Fleet(servers, prefix, folder, config, "none", variables=judge) as fleet,
        ):
            worker = fleet.start("worker")
            ended = traceweir("emit", str(rows), servers=servers, prefix=prefix)
            assert (ended.returncode, ended.stderr) == (0, "")
            deadline = time.monotonic() + DEADLINE_S
            while len(committed.rows["results"]) < len(offline):
                if worker.ended or time.monotonic() > deadline:
                    pytest.fail(f"the scores did not arrive; the worker's log:\n{worker.log.read_text()}")
                committed.read(0.1)
            online = by_id(row.document for row in committed.rows["results"])
            assert committed.rows["dead-letters"] == []
            worker.terminate(30)
        assert len(server.asked) == 2 * asked > 0  # The worker does not use the verdicts of `score`.
    assert online == offline


def scores_of_the_file(rows: Path, config: Path, judge: dict[str, str]) -> dict[str, Any]:
    ended = traceweir("score", str(rows), "--config", str(config), "--embedder", "none", "--json", **judge)
    (said,) = ended.stderr.splitlines()
    assert (ended.returncode, "scores missed the threshold: " in said) == (1, True), said
    found = by_id(map(json.loads, ended.stdout.splitlines()))
    values: dict[str, set[float]] = {}
    for each in found.values():
        if each["level"] == "invocation" and each["value"] is not None:
            values.setdefault(each["metric"], set()).add(each["value"])
    assert values.keys() == MEASURED
    judged = set().union(*(of for metric, of in values.items() if "llm_judged" in metric))
    assert judged >= {0.0, 1.0}  # The judge's replies differ between the rows.
    return found


def by_id(scores: Any) -> dict[str, Any]:
    return {each["result_id"]: {key: value for key, value in each.items() if key not in DIFFERS} for each in scores}


def with_a_tool() -> dict[str, Any]:
    """Returns a row whose trace contains a tool call."""
    attributes = {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"query": "RAG"}', "mlflow.spanOutputs": '"found"'}
    span = {"span_id": "t", "parent_span_id": None, "name": "find_documents", "attributes": attributes}
    trace = {"info": {"execution_duration_ms": 20}, "data": {"spans": [span]}}
    return {"request_id": "tool", "request": "Find it.", "response": "It is found.", "trace": json.dumps(trace)}


def decided(body: dict[str, Any]) -> Say:
    """Returns an answer in the requested form; a hash of the question decides its words."""
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    asked = without_tag(body["messages"][-1]["content"])
    toss = hashlib.sha256(asked.encode()).digest()[0]
    answer = {name: part["enum"][-(toss % 2)] if "enum" in part else "So it is." for name, part in properties.items()}
    return Say(text=json.dumps(answer))
