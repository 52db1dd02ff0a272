"""Every panel of Grafana's dashboards asks a source that is provisioned, and its query returns data."""

from __future__ import annotations

import json
import re
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from confluent_kafka import Producer
from tests.support.dashboard_site import Site
from tests.support.openai_server import openai_server_apart
from tests.support.paths import ROOT
from tests.support.prometheus import answer, prometheus
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import CLICKHOUSE, chdb_database, open_store, scores_batch
from tests.support.workers import Fleet

from traceweir.streams.testing import event, trace
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.telemetry.catalogue import CATALOGUE

FOLDER = ROOT / "monitoring" / "grafana"
BOARDS = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted((FOLDER / "dashboards").glob("*.json"))}
SOURCES = yaml.safe_load((FOLDER / "provisioning" / "datasources" / "traceweir.yaml").read_text("utf-8"))["datasources"]
LIMIT_S = 90.0


def panels(board: str) -> list[dict[str, Any]]:
    return [panel for panel in BOARDS[board]["panels"] if panel["type"] != "row"]


def test_a_board_has_an_address_and_each_panel_a_place_and_a_provisioned_source() -> None:
    known = {source["uid"]: source["type"] for source in SOURCES}
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS) == 3
    for board in BOARDS.values():
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
        assert len({tuple(panel["gridPos"].values()) for panel in board["panels"]}) == len(ids)
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                assert known[target["datasource"]["uid"]] == target["datasource"]["type"]


def test_panels_ask_for_metrics_that_workers_have() -> None:
    names = {instrument.prometheus_name for instrument in CATALOGUE}
    asked = {
        re.sub("_(bucket|sum|count)$", "", name)
        for panel in panels("operations")
        for target in panel["targets"]
        for name in re.findall(r"\btraceweir_[a-z_]+", target["expr"])
    }
    assert asked <= names


def queries() -> list[tuple[str, str]]:
    """Returns each query of the board on operations with the title of its panel."""
    return [
        (panel["title"], target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*"))
        for panel in panels("operations")
        for target in panel["targets"]
    ]


@pytest.mark.broker
@pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="Prometheus is not installed: apt-get install prometheus"
)
def test_each_query_returns_data_of_a_worker_that_prometheus_reads(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    criteria = {"response_match_score": 0.5, "hallucinations_v1": 0.5}
    config.write_text(json.dumps({"criteria": criteria, "judge": {"budget": {"tokens_per_day": 1_000_000_000}}}))
    with (
        openai_server_apart() as judge,
        EmbeddedBroker() as broker,
        Fleet(
            broker.bootstrap_servers, "traceweir.", tmp_path, config, variables={"TRACEWEIR_JUDGE_API_BASE": judge.url}
        ) as fleet,
    ):
        worker = fleet.start("worker")
        worker.until_ready()
        (host,) = re.findall(r"health: http://(\S+)/healthz", worker.log.read_text())
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        with prometheus(tmp_path, host) as address:
            waiting, deadline, number = queries(), time.monotonic() + LIMIT_S, 0
            assert waiting
            while waiting:  # each round sends a session, because a rate needs counters that grow
                assert time.monotonic() < deadline, f"without data: {waiting}"
                assert not worker.ended, worker.log.read_text()
                number += 1
                for record in session(f"s{number}"):
                    producer.produce(
                        "traceweir.traces" if "@type" in record else "traceweir.invocations", json.dumps(record)
                    )
                producer.produce("traceweir.invocations", b"{")
                assert producer.flush(10) == 0
                waiting = [(title, query) for title, query in waiting if not answer(address, query)]
                time.sleep(0.2)
        worker.terminate(30)


def session(name: str) -> list[dict[str, Any]]:
    """Returns a session with one score that has a value and one that has none, and a trace that the gate rejects."""
    answered = {"parts": [{"text": f"yes, {name}"}]}
    return [
        event("invocation.completed", name, invocation_id="a", event_id="1", final_response=answered),
        event("invocation.completed", name, invocation_id="b", event_id="2", final_response=answered,
              reference={"final_response": answered}),
        trace(name, name, metadata={"visibility": "private"}),
        event("session.ended", name, event_id="3"),
    ]  # fmt: skip


@pytest.mark.parametrize("panel", panels("quality"), ids=lambda panel: str(panel["title"]))
@CLICKHOUSE[0]
@CLICKHOUSE[1]
def test_each_query_returns_rows_of_clickhouse(panel: dict[str, Any]) -> None:
    import clickhouse_connect

    from traceweir.streams.board.store import opening

    rejected = {"reasons": ["private"]}
    scores = [
        make_score("a", value=0.9, agent_name="travel", agent_version="2", model="large", cost={"usd": 0.5}),
        make_score("b", value=0.1, agent_name="travel"),
        make_score("b", "gate", 0.0, details=rejected, agent_name="travel"),
    ]
    (target,) = panel["targets"]
    with chdb_database() as address:
        opening.open_store(address, "this test", NOW).write(scores_batch(*scores))
        client = clickhouse_connect.get_client(dsn=address)
        found = client.query(with_macros(target["rawSql"])).result_rows
        client.close()
    assert found


def with_macros(sql: str) -> str:
    """Returns SQL as Grafana's plugin sends it."""
    sql = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 >= toDateTime('2026-01-01 00:00:00')", sql)
    sql = re.sub(r"\$__timeInterval\((\w+)\)", r"toStartOfInterval(toDateTime(\1), INTERVAL 60 second)", sql)
    return sql.replace("${agent:singlequote}", "'travel'")


async def test_each_query_of_the_board_of_scores_is_answered_with_its_columns(tmp_path: Path) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add_sessions(20)
    span = {"${__from:date:iso}": (NOW - timedelta(days=2)).isoformat(), "${__to:date:iso}": NOW.isoformat()}
    asked: Any = site.application()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(asked), base_url="http://127.0.0.1:4180") as client:
        for panel in panels("scores"):
            (target,) = panel["targets"]
            parameters = {each["key"]: each["value"] for each in target["url_options"]["params"]}
            parameters = {
                name: span.get(value, value.replace("$interval", "15m")) for name, value in parameters.items()
            }
            answer = await client.get(target["url"], params=parameters)
            assert answer.status_code == 200, answer.text
            rows = answer.json()[target["root_selector"]]
            assert rows
            assert {column["selector"] for column in target["columns"]} <= rows[0].keys(), panel["title"]
