"""Checks that the name of a challenger or a shadow is free, because they share their names, and creates the topic."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator

from traceweir.schemas.pushed_config import PushedConfig
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Challenger, challenger_id
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.log import read_definition
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.scoring.configs.challenger_section import name_in, section_of
from traceweir.streams.scoring.configs.selectors import in_words
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState, read_topic
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.topic_admin import create_named, existing_topics


def require_usable_name(settings: Settings, state: TopicState, selector: str, challenger: Challenger) -> None:
    """Checks that a challenger can be pushed: its name is free, and its topic has no scores of another config.

    Args:
        settings: Where Kafka is.
        state: What the topic `configs` says.
        selector: The sessions that the champion is for.
        challenger: The challenger.

    Raises:
        KafkaUnreachableError: no broker answers.
        ConfigTopicError: another challenger has the name.
        ShadowError: a shadow has the name, or the topic has scores of something else.
    """
    name = challenger.name
    names = ShadowNames.of(settings, challenger.name)
    require_free_name(state, selector, name)
    present = state.current.get(selector)
    is_in_effect = present is not None and _id_in(present) == challenger.id
    topics = existing_topics(settings)
    if names.shadows in topics and asyncio.run(read_definition(settings, name)) is not None:
        raise ShadowError(
            f"a shadow has the name {name!r}: take another one, or remove the shadow with `traceweir shadow --name {name} "
            "--drop`"
        )
    results = names.topics.results
    # The scores of one that is in effect are its own, also if a former challenger had the name and was dropped.
    if not is_in_effect:
        ids = set(_ids(state, name))
        if ids != {challenger.id} and has_scores(settings, name, topics):
            raise ShadowError(
                f"topic {results!r} has scores of another config: take another name, or remove these scores with `traceweir "
                f"shadow --name {name} --drop`"
            )


def create_topic(settings: Settings, name: str) -> None:
    """Creates the topic for the scores of a challenger, if it does not exist.

    Raises:
        KafkaUnreachableError: no broker answers.
        TopicsRefusedError: the topic cannot be created.
    """
    names = ShadowNames.of(settings, name)
    results = names.topics.results
    create_named(settings, {results: names.own[results]}, names.retention_days)


def require_free_name(state: TopicState, selector: str, name: str) -> None:
    """Checks that no config for other sessions has a challenger with this name.

    Args:
        state: What the topic `configs` says.
        selector: The sessions that the champion is for.
        name: The name of its challenger.

    Raises:
        ConfigTopicError: another challenger has the name.
    """
    for other, pushed in sorted(state.current.items()):
        if other != selector and name_in(pushed) == name:
            raise ConfigTopicError(
                f"the config for {printable(in_words(other))} has a challenger {name!r} already; take another name"
            )


def require_no_challenger(settings: Settings, name: str, topics: Collection[str]) -> None:
    """Checks that no config in effect has a challenger with this name; `topics` are the names of all topics.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: one has it, or the topic `configs` cannot be read.
    """
    if settings.topics.configs not in topics:
        return
    try:
        state = asyncio.run(read_topic(settings))
    except ConfigTopicError as error:
        raise ShadowError(f"whether a challenger has the name {name!r} is unknown: {error}") from None
    for selector, pushed in sorted(state.current.items()):
        if name_in(pushed) == name:
            raise ShadowError(
                f"{name!r} is the challenger in the config for {printable(in_words(selector))}: take another name, or end it "
                "first with `traceweir config withdraw --challenger`"
            )


def has_scores(settings: Settings, name: str, topics: Collection[str]) -> bool:
    """Returns whether the topic of a shadow or of a challenger is one of `topics`, the names of all topics, and has records.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic cannot be read.
    """
    results = ShadowNames.of(settings, name).topics.results
    return results in topics and asyncio.run(_has_records(settings, results))


def _ids(state: TopicState, name: str) -> Iterator[str]:
    for versions in state.versions.values():
        for pushed in versions.values():
            if name_in(pushed) == name and (found := _id_in(pushed)) is not None:
                yield found


def _id_in(pushed: PushedConfig) -> str | None:
    name = name_in(pushed)
    config = (section_of(pushed) or {}).get("config")
    return challenger_id(name, config) if name is not None and isinstance(config, dict) else None


async def _has_records(settings: Settings, topic: str) -> bool:
    async with BoundedReader(settings, topic, ShadowError) as reader:
        return any(reader.ends[number] > begin for number, begin in reader.begins.items())
