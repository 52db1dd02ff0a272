"""Finds the config of a digest for `traceweir config`: one that was pushed, or that of a shadow."""

from __future__ import annotations

import json
from typing import NamedTuple

from traceweir.schemas.base import JsonObject
from traceweir.schemas.pushed_config import PushedConfig
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.digests import shadow_of_digest
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState, UnknownDigestError


class ShadowConfig(NamedTuple):
    """The config of a shadow."""

    line: str
    """Which shadow it is, for a person."""
    config: JsonObject
    document: JsonObject
    """The same for a program."""


def config_of_digest(settings: Settings, state: TopicState, start: str) -> PushedConfig | ShadowConfig:
    """Returns the config of a digest, or of the only digest that starts with this text; first of those that were pushed.

    Raises:
        ConfigTopicError: there is none, or there are several.
        KafkaUnreachableError: no broker answers.
        ShadowError: the digests of several shadows start with the text, or the shadows cannot be read.
    """
    try:
        return state.digest(start)
    except UnknownDigestError:
        shadow = shadow_of_digest(settings, start)
        if shadow is None:
            raise
    digest = shadow.config_digest
    if shadow.config is None:
        raise ConfigTopicError(
            f"the digest {digest[:12]} is that of shadow {shadow.name!r}, which was created without --config: its default "
            "criteria have no document"
        )
    config: JsonObject = json.loads(shadow.config)
    at = shadow.created_at
    line = f"shadow {shadow.name}, digest {digest[:12]}, created {at:%Y-%m-%d %H:%M:%S} UTC"
    document: JsonObject = {"shadow": shadow.name, "digest": digest, "config": config, "created_at": at.isoformat()}
    return ShadowConfig(line, config, document)
