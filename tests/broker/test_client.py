"""The agents in plain Python of the README and of its guide are recorded by traceweir-client and scored by a worker."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.audit.committed import Committed
from tests.support.paths import ROOT
from tests.support.workers import Fleet

from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = [pytest.mark.broker, pytest.mark.slow]

DEADLINE_S = 90
TURN = """
print(answer("When does flight 12 leave?", "chat-7", "ada@example.com"))
"""


def agent_of(page: str, servers: str) -> str:
    """Returns the code of the page's agent, which sends to these brokers."""
    (code,) = re.findall(r"```python\n(from traceweir.client .*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    assert '"127.0.0.1:9092"' in code
    return str(code).replace("127.0.0.1:9092", servers)


def test_the_documented_agents_are_scored(embedded_broker: EmbeddedBroker, tmp_path: Path) -> None:
    servers = embedded_broker.bootstrap_servers
    readme = agent_of("README.md", servers)
    assert len([line for line in readme.splitlines() if line]) <= 10
    guide = agent_of("docs/guides/connect-plain-python.md", servers) + TURN
    config = tmp_path / "config.json"
    config.write_text('{"criteria": {"tool_call_count_v1": {}}}')
    with (
        Fleet(servers, "traceweir.", tmp_path, config, variables={"TRACEWEIR_IDLE_GAP_S": "0.5"}) as fleet,
        Committed(servers, "traceweir.", application_id("traceweir.", STAGES)) as committed,
    ):
        worker = fleet.start("worker")
        worker.until_ready()
        for code in (readme, guide):  # their processes end at once: what waits is delivered at the exit
            subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=tmp_path)
        deadline = time.monotonic() + DEADLINE_S
        while len({row.document["session_id"] for row in committed.rows["results"]}) < 2:
            assert not worker.ended, worker.log.read_text()
            assert time.monotonic() < deadline, worker.log.read_text()
            committed.read(0.1)
    assert committed.rows["dead-letters"] == []
    scores = [row.document for row in committed.rows["results"]]
    assert {score["app_name"] for score in scores} == {"travel-desk"}
    calls = [
        (score["value"], score.get("agent_version"), score.get("model"))
        for score in scores
        if score["metric"] == "tool_call_count_v1" and score["level"] == "invocation"
    ]
    assert sorted(calls, key=str) == [(1.0, "2.1", "gpt-5-mini"), (1.0, None, None)]
    assert "ada@example.com" not in str(scores)
    answers = {
        event["final_response"]["parts"][0]["text"]
        for row in committed.rows["sessions"]
        for event in row.document["events"]
        if event["type"] == "invocation.completed"
    }
    assert answers == {"It leaves at 09:40."}
