"""`traceweir diff` on the embedded broker compares live results, shadows, spans of time and versions of an agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.command_line import Ended, Run
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher"), pytest.mark.xdist_group("diff")]

SHADOW = "traceweir.results.shadow.v2"

Diff = Callable[..., Ended]


@pytest.fixture
def servers(embedded_broker: EmbeddedBroker) -> str:
    create_topics(Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers))
    return embedded_broker.bootstrap_servers


@pytest.fixture
def shadow(servers: str) -> str:
    """Creates the topic of a shadow, and returns its name."""
    AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(
        SHADOW, timeout=30
    )  # a request by name creates the topic
    return SHADOW


@pytest.fixture
def diff(servers: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> Diff:
    """Returns a function that runs `traceweir diff --json`, on that broker."""
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    return lambda *arguments: run("diff", *arguments, "--json")


def only_value(ended: Ended) -> dict[str, Any]:
    (metric,) = json.loads(ended.out)["metrics"]
    return {"pairing": metric["pairing"], **metric["value"]}


def test_live_results_are_compared_with_a_shadow_in_pairs(servers: str, shadow: str, diff: Diff) -> None:
    put_scores(servers, [make_score(f"s{number}", value=0.8) for number in range(6)])
    put_scores(servers, [make_score(f"s{number}", value=0.6, config_digest="v2") for number in range(6)], topic=shadow)

    ended = diff("results", "results.shadow.v2", "--max-drop", "response_match_score=0.1")

    found = only_value(ended)
    assert (found["pairing"], found["sessions"]) == ("paired", 6)
    assert found["difference"] == pytest.approx(-0.2)
    assert (ended.code, ended.err) == (1, "")


def test_two_spans_of_time_are_compared_as_two_samples(servers: str, diff: Diff) -> None:
    for days, value in ((9, 0.1), (5, 0.5), (1, 0.9)):
        put_scores(servers, [make_score(f"{days}-{n}", value=value) for n in range(3)], at=NOW - timedelta(days=days))
    week, day = (f"{NOW - timedelta(days=days):%Y-%m-%d}" for days in (7, 2))

    found = only_value(diff(f"results?since={week}&until={day}", f"results?since={day}"))

    assert (found["pairing"], found["base_mean"], found["challenger_mean"]) == ("unpaired", 0.5, pytest.approx(0.9))


def test_a_span_of_time_without_results_says_from_when_to_when_results_exist(
    servers: str, shadow: str, diff: Diff
) -> None:
    put_scores(servers, [make_score(), make_score("t")], at=NOW - timedelta(days=2))
    put_scores(servers, [make_score("u")], at=NOW)
    oldest, newest = (f"{NOW - timedelta(days=days):%Y-%m-%dT%H:%M:%S}Z" for days in (2, 0))
    for span in ("until=2001-02-01", "since=2001-01-01&until=2001-02-01", "since=2101-01-01"):
        ended = diff(f"results?{span}", "results")
        assert ended.code == 1
        where = f"results?{span}: no score was written to traceweir.results in this range of time; "
        assert f"{where}it has records from {oldest} to {newest}" in ended.err
        assert f"base results?{span}: has no results" in ended.err
    assert "in this range of time; it has none at all" in diff("results.shadow.v2?since=2001-01-01", "results").err
    unknown = diff("results?since=2001-01-01&app_name=unknown", "results")  # time is not why nothing is selected
    assert "in this range of time" not in unknown.err


def test_in_a_span_only_its_last_revision_counts(servers: str, diff: Diff) -> None:
    put_scores(servers, [make_score(value=0.1), make_score(value=0.2, revision=1)], at=NOW - timedelta(days=5))
    put_scores(servers, [make_score(value=0.9, revision=2), make_score("t", value=0.9)], at=NOW - timedelta(days=1))
    middle = f"{NOW - timedelta(days=3):%Y-%m-%d}"

    ended = diff(f"results?until={middle}", "results")

    found = json.loads(ended.out)
    assert (found["base"]["replaced"], found["challenger"]["replaced"]) == (1, 2)
    assert (only_value(ended)["base_mean"], only_value(ended)["challenger_mean"]) == (0.2, 0.9)
    assert found["metrics"][0]["other_revision"] == 1


def test_two_versions_of_an_agent_are_compared_without_results_that_another_version_replaced(
    servers: str, diff: Diff
) -> None:
    put_scores(
        servers,
        [
            *(make_score(f"a{number}", value=0.4, agent_version="1") for number in range(3)),
            *(make_score(f"b{number}", value=0.6, agent_version="2") for number in range(3)),
            make_score("moved", value=0.0, agent_version="1"),
            make_score("moved", value=0.6, agent_version="2", revision=1),
        ],
    )
    found = only_value(diff("results?agent_version=1", "results?agent_version=2"))
    assert (found["base_values"], found["challenger_values"]) == (3, 4)
    assert found["difference"] == pytest.approx(0.2)


def test_a_file_is_compared_with_live_results(servers: str, diff: Diff, tmp_path: Path) -> None:
    put_scores(servers, [make_score(value=0.5)])
    (tmp_path / "before.jsonl").write_bytes(make_score(value=0.4).wire())
    assert only_value(diff(str(tmp_path / "before.jsonl"), "results"))["difference"] == pytest.approx(0.1)


def test_forged_records_are_counted_and_cost_no_score(servers: str, diff: Diff) -> None:
    put_scores(servers, [make_score(value=0.5), b"\xff", b"{}", make_score("huge", value=1e200).wire()])
    ended = diff("results", "results")
    assert json.loads(ended.out)["base"]["unusable"] == 3
    assert ended.err.count("traceweir.results: 2 records omitted, because not a score") == 2
    assert ended.err.count("value: 1e+200 is more than 1e+100") == 2
    assert ended.code == 0


def test_a_shadow_that_does_not_exist_is_named(servers: str, diff: Diff) -> None:
    put_scores(servers, [make_score()])
    ended = diff("results", "results.shadow.lost")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "topic 'traceweir.results.shadow.lost' does not exist: check the name of the shadow\n"


def test_an_empty_topic_has_no_results(servers: str, shadow: str, diff: Diff) -> None:
    put_scores(servers, [make_score()])
    ended = diff("results", "results.shadow.v2")
    assert ended.code == 1
    assert "challenger results.shadow.v2: has no results" in ended.err
