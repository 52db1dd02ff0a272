"""Alerts on the embedded broker: raised and resolved once, listed, accepted; rules are pushed and withdrawn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.alert_story import RULE, START, replayed, story
from tests.support.alerting import last_of_each, listed, until, watching
from tests.support.alerts import make_alert, resolved
from tests.support.anchors import verdict
from tests.support.command_line import Ended, Run
from tests.support.results import put_scores

from traceweir.schemas.alert import Alert
from traceweir.schemas.anchor import AnchorVerdict
from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.board.dashboard.watched_streams import streams_look
from traceweir.streams.tools.anchors.topics import verdicts_writer
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("restored_fetcher"),
    pytest.mark.xdist_group("alerts"),
    pytest.mark.slow,
]

AlertsCommand = Callable[..., Ended]
STORY = story()


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers, session_timeout_s=4.0)
    create_topics(settings)
    return settings


@pytest.fixture
def alerts(settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AlertsCommand:
    """Returns a function that runs `traceweir alerts` on that broker."""
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", settings.kafka_bootstrap_servers)
    monkeypatch.chdir(tmp_path)
    Path("rule.json").write_text(RULE.model_dump_json(exclude_none=True), "utf-8")
    return lambda *arguments: run("alerts", *arguments)


def put(settings: Settings, scores: list[Score]) -> None:
    put_scores(settings.kafka_bootstrap_servers, scores)


def parts_of_story(alert: Alert) -> tuple[list[Score], list[Score]]:
    """The scores up to an hour after the alert was raised, and the others."""
    first = [each for each in STORY if (each.occurred_at - alert.since).total_seconds() <= 3_600]
    return first, STORY[len(first) :]


async def in_thread(alerts: AlertsCommand, *arguments: str) -> Ended:
    return await asyncio.to_thread(alerts, *arguments)


async def test_alerts_are_those_of_a_replay_each_once_also_after_a_restart(
    settings: Settings, alerts: AlertsCommand
) -> None:
    assert (await in_thread(alerts, "push", "rule.json")).code == 0
    (expected,) = replayed(STORY).values()
    assert expected.state == "resolved"
    first, rest = parts_of_story(expected)
    put(settings, first)
    async with watching(settings):
        (raised,) = await until(settings, lambda states: states["raised"] == 1)
    assert raised == expected.model_copy(update={"state": "raised", "resolution": None, "occurred_at": expected.since})
    assert expected.resolution == "recovered"
    put(settings, rest)
    async with watching(settings) as watcher:
        found = await until(settings, lambda states: states["resolved"] == 1)
        assert watcher.counts["read"] <= len(rest) + len(first) / 2
    assert last_of_each(found) == {expected.alert_id: expected}


def verdicts_until(end: datetime, stricter_from: datetime) -> list[AnchorVerdict]:
    """Ten verdicts an hour on 200 anchors since nine days before the story; the judge fails all from a time on."""
    begin = START - timedelta(days=9)
    return [
        verdict(
            str(number % 200), criterion="helpful", passed=at < stricter_from, label="pass", due_at=at, judged_at=at
        )
        for number in range(int((end - begin) / timedelta(minutes=6)))
        if (at := begin + timedelta(minutes=6 * number))
    ]


async def test_an_alert_becomes_the_judges_when_the_anchors_show_it(settings: Settings, alerts: AlertsCommand) -> None:
    assert (await in_thread(alerts, "push", "rule.json")).code == 0
    drop = START + timedelta(minutes=1_500)
    found = verdicts_until(drop + timedelta(hours=15), drop)
    await asyncio.to_thread(
        verdicts_writer(settings).write, {f"{each.anchor_id} {each.due_at}".encode(): each.wire() for each in found}
    )
    (expected,) = replayed(STORY).values()
    put(settings, [each.model_copy(update={"judge": "openai/judge"}) for each in parts_of_story(expected)[0]])
    async with watching(settings):
        said = await until(settings, lambda states: states["raised"] == 2)
    assert [(each.alert_id, each.verdict) for each in said] == [
        (expected.alert_id, "unknown"),
        (expected.alert_id, "judge"),
    ]


async def test_a_rule_is_listed_with_its_streams_and_an_accepted_alert_is_resolved(
    settings: Settings, alerts: AlertsCommand
) -> None:
    pushed = await in_thread(alerts, "push", "rule.json")
    assert pushed.err == "rule r pushed\n"
    assert (await in_thread(alerts, "push", "rule.json")).err == "rule r is watched already\n"
    (expected,) = replayed(STORY).values()
    put(settings, parts_of_story(expected)[0])
    async with watching(settings):
        await until(settings, lambda states: states["raised"] == 1)
        shown = await in_thread(alerts, "list")
        assert f"traceweir alerts accept {expected.alert_id}" in shown.out
        assert "r: pass rate by app_name, a drop by 0.02; one false alarm in 1 days" in shown.out
        found = listed((await in_thread(alerts, "list", "--json")).out)
        assert [each["id"] for each in found["rules"]] == ["r"]
        assert {each["stream"]["slice"]["app_name"]: each["state"] for each in found["streams"]["r"]} == {
            "bank": "watched",
            "shop": "raised",
        }
        streams = streams_look(settings, lambda: True, lambda: START)
        await streams.look()
        assert streams.known.problem is None
        assert [(each.stream.slice, each.state) for each in streams.known.streams] == [
            ({"app_name": "shop"}, "raised"),
            ({"app_name": "bank"}, "watched"),
        ]
        finds = {each["stream"]["slice"]["app_name"]: each["findable_in_a_day"] for each in found["streams"]["r"]}
        assert {each.stream.slice["app_name"]: each.findable_in_a_day for each in streams.known.streams} == finds
        refused = await in_thread(alerts, "accept", "nobody")
        assert refused.code == 1
        assert "no alert with the id nobody is raised: nothing was written" in refused.err.replace("\n", " ")
        accepted = await in_thread(alerts, "accept", "--all")
        assert accepted.err == "1 alert accepted; the level since then is learnt as the new normal\n"
        found = await until(settings, lambda states: states["resolved"] == 1)
    assert set(last_of_each(found)) == {expected.alert_id}
    assert last_of_each(found)[expected.alert_id].resolution == "accepted"
    assert listed((await in_thread(alerts, "list", "--json")).out)["raised"] == []


async def test_without_its_state_alerts_are_resolved_once_and_what_the_scores_show_is_raised_again(
    settings: Settings, alerts: AlertsCommand
) -> None:
    """One of them is of scores that the topic does not have any more; another one is resolved already."""
    await in_thread(alerts, "push", "rule.json")
    (expected,) = replayed(STORY).values()
    first, rest = parts_of_story(expected)
    put(settings, first)
    gone = make_alert("gone")
    over = resolved(make_alert("over"))
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    for each in (gone, over, gone.model_copy(update={"alert_id": expected.alert_id})):
        key = each.alert_id.encode()
        producer.produce(settings.topics.alerts, each.wire(), key, partition_of(key, settings.partitions))
    assert producer.flush(30) == 0
    async with watching(settings) as watcher:
        await until(settings, lambda states: states["raised"] == 3)
        assert [each.alert_id for each in watcher.raised] == [expected.alert_id]
    put(settings, rest)
    async with watching(settings):
        found = await until(settings, lambda states: states["resolved"] == 4)
    said = {
        name: [(each.state, each.resolution) for each in found if each.alert_id == name]
        for name in (gone.alert_id, over.alert_id, expected.alert_id)
    }
    assert said == {
        gone.alert_id: [("raised", None), ("resolved", "state_lost")],
        over.alert_id: [("resolved", None)],
        expected.alert_id: [("raised", None), ("resolved", "state_lost"), ("raised", None), ("resolved", "recovered")],
    }
    assert len(found) == 7


async def test_the_dashboard_says_why_it_cannot_read_the_state(settings: Settings, tmp_path: Path) -> None:
    missing = settings.model_copy(update={"topic_prefix": "other."})
    streams = streams_look(missing, lambda: True, lambda: START)
    await streams.look()
    assert streams.known.problem is not None
    assert "other.alerts-state" in streams.known.problem
    assert streams.known.read_at is None
    streams = streams_look(settings, lambda: True, lambda: START)
    await streams.look()
    assert (streams.known.problem, len(streams.known.streams), streams.known.read_at) == (None, 0, START)


async def test_a_withdrawn_rule_ends_and_the_default_rule_takes_its_place(
    settings: Settings, alerts: AlertsCommand
) -> None:
    assert listed((await in_thread(alerts, "list", "--json")).out)["rules"][0]["id"] == "any-pass-rate-drops"
    await in_thread(alerts, "push", "rule.json")
    unknown = await in_thread(alerts, "withdraw", "other")
    assert (unknown.code, unknown.err) == (1, "no rule 'other' was pushed; pushed are: r\n")
    ended = await in_thread(alerts, "withdraw", "r")
    assert ended.err == "rule r withdrawn; without a pushed rule any-pass-rate-drops is watched\n"
    assert listed((await in_thread(alerts, "list", "--json")).out)["rules"][0]["id"] == "any-pass-rate-drops"


def test_accept_needs_ids_or_all(alerts: AlertsCommand) -> None:
    for arguments in ((), ("--all", "x")):
        ended = alerts("accept", *arguments)
        assert ended.code == 2
        assert "give ids of alerts, or --all" in ended.err
