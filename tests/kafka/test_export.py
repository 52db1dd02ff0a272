"""An exporter goes on where it stood, also when Kafka has removed the offsets of its group."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.exporting import exporting
from tests.support.http_target import http_target
from tests.support.results import make_score, put_scores

from traceweir.streams.kafka.topic_admin import create_topics, delete_topics
from traceweir.streams.settings import Settings

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("restored_fetcher")]


def put(settings: Settings, *names: str) -> set[str]:
    """Writes a score for each session, and returns their result ids."""
    scores = [make_score(name) for name in names]
    put_scores(settings.kafka_bootstrap_servers, scores, topic=settings.topics.results)
    return {score.result_id for score in scores}


def remove_offsets(settings: Settings, group: str) -> None:
    """Removes the offsets of a group, as Kafka does when no process of the group has run for a week."""
    client = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    client.delete_consumer_groups([group])[group].result(30)


@pytest.mark.parametrize("only_new", [False, True])
async def test_an_exporter_whose_offsets_have_expired_sends_what_came_since_and_says_so(
    settings: Settings, caplog: pytest.LogCaptureFixture, *, only_new: bool
) -> None:
    caplog.set_level(logging.INFO)
    group = f"{settings.topic_prefix}export"
    async with http_target() as target:
        async with exporting(settings, target.url, group=group):
            first = put(settings, *map(str, range(20)))
            await target.until(lambda target: set(target.ids) == first)
        assert "the group is new, and begins with the oldest record" in caplog.text
        remove_offsets(settings, group)
        target.accepted.clear()
        second = put(settings, *(f"while-away-{number}" for number in range(20)))
        async with exporting(settings, target.url, group=group, only_new=only_new):
            await target.until(lambda target: second <= set(target.ids))

    assert set(target.ids) == second
    assert "Kafka has removed the offsets of the group" in caplog.text


async def test_a_topic_that_was_created_again_is_read_whole_although_it_has_grown_past_the_offset(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    group = f"{settings.topic_prefix}export"
    async with http_target() as target:
        async with exporting(settings, target.url, group=group):
            first = put(settings, "a")
            await target.until(lambda target: set(target.ids) == first)
        delete_topics(settings, [settings.topics.results])
        create_topics(settings)
        target.accepted.clear()
        second = put(settings, *map(str, range(40)))
        async with exporting(settings, target.url, group=group):
            await target.until(lambda target: set(target.ids) == second)
    assert "the topic was deleted and created again" in caplog.text
