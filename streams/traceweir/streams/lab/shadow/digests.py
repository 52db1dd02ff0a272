"""Finds the shadow whose scores have a `config_digest`. Its config is in its definition, and not on the topic `configs`."""

from __future__ import annotations

import asyncio

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import shadows_topic
from traceweir.streams.lab.shadow.definition import Definition
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.log import read_definitions
from traceweir.streams.worker.kafka.topic_admin import existing_topics


def shadow_of_digest(settings: Settings, start: str) -> Definition | None:
    """Returns a shadow with this digest, or with the only digest that starts with this text; None if there is none.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: several digests start with the text, or the topic `shadows` cannot be read.
    """
    if shadows_topic(settings.topic_prefix) not in existing_topics(settings):
        return None
    found = [each for each in asyncio.run(read_definitions(settings)) if each.config_digest.startswith(start)]
    if len({each.config_digest for each in found}) > 1:
        raise ShadowError(
            f"the digests of several shadows start with {start!r:.80}; copy the `config_digest` of a score"
        )
    return found[0] if found else None
