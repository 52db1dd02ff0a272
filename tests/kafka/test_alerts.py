"""One of two processes that watch scores is killed or frozen: each alert is raised once and resolved once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from tests.support.alert_story import RULE, replayed, story
from tests.support.alerting import LIMIT_S, alerts_process, last_of_each, until, watching
from tests.support.results import put_scores

from traceweir.schemas.score import Score
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.scoring.configs.alert_records import rule_record
from traceweir.streams.tools.alerts.state_topic import read_state
from traceweir.streams.worker.config_topic import write_records
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("restored_fetcher")]

STORY = story()


@pytest.fixture
def settings(kafka: str, prefix: str) -> Settings:
    """Settings under which a killed process is missed after the shortest time that Kafka allows."""
    settings = Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix, session_timeout_s=6.0, partitions=4)
    assert create_topics(settings).wrong == ()
    return settings


def put(settings: Settings, scores: Sequence[Score]) -> None:
    # With the time of the story, retention would remove them.
    put_scores(settings.kafka_bootstrap_servers, scores, at=utc_now(), topic=settings.topics.results)


def pieces(number: int) -> list[list[Score]]:
    size = -(-len(STORY) // number)
    return [STORY[at : at + size] for at in range(0, len(STORY), size)]


async def until_state(settings: Settings, wanted: Callable[[dict[bytes, bytes]], bool]) -> None:
    async with asyncio.timeout(2 * LIMIT_S):
        while True:
            if wanted(await read_state(settings)):
                return
            await asyncio.sleep(0.1)


def _has_another_head(before: bytes | None, rows: dict[bytes, bytes]) -> bool:
    return rows.get(b"head") != before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_second_process_takes_over_from_one_that_was_killed_or_frozen(
    settings: Settings, number: signal.Signals
) -> None:
    await write_records(settings, lambda state: [rule_record(RULE.id, RULE)])
    first, second, third = pieces(3)
    expected = replayed(STORY)
    with alerts_process(settings) as owner:
        put(settings, first)
        await until_state(settings, bool)
        with alerts_process(settings) as other:
            put(settings, second)
            await until(settings, lambda states: states["raised"] == 1)
            owner.send_signal(number)
            put(settings, third)
            await until(settings, lambda states: states["resolved"] == 1)
            owner.send_signal(signal.SIGCONT)
            # What the former owner has in work is refused, and it waits for the other one.
            put(settings, [each for each in third[-50:] if each.value])
            before = await read_state(settings)
            await until_state(settings, lambda rows: rows[b"head"] != before[b"head"])
            for each in (owner, other):
                if each.poll() is None:
                    each.send_signal(signal.SIGTERM)
                    assert await asyncio.to_thread(each.wait, LIMIT_S) in {0, -signal.SIGKILL}
    found = last_of_each(await until(settings, lambda states: states["resolved"] == 1))
    assert found == expected


async def test_an_alert_is_raised_and_resolved_once_by_processes_that_are_killed_again_and_again(
    settings: Settings,
) -> None:
    await write_records(settings, lambda state: [rule_record(RULE.id, RULE)])
    # Kafka misses each of them after seconds only.
    for piece in pieces(3):
        with alerts_process(settings) as running:
            put(settings, piece)
            before = (await read_state(settings)).get(b"head")
            await until_state(settings, partial(_has_another_head, before))
            running.kill()
    async with watching(settings):
        found = await until(settings, lambda states: states["resolved"] == 1)
    assert last_of_each(found) == replayed(STORY)
