"""Finds in the topic `configs` who pushed the config of a digest, when and why, and what it changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from traceweir.schemas.base import JsonObject
from traceweir.schemas.pushed_config import PushedConfig
from traceweir.streams.board.dashboard.page.diff import MAX_WORDS, Piece, differences, words_of
from traceweir.streams.scoring.configs.changes import meanings, option_changes
from traceweir.streams.scoring.configs.records import UNPUSHED, config_id
from traceweir.streams.scoring.configs.selectors import in_words, parsed_selector, selector
from traceweir.streams.worker.config_topic import TopicState

MAX_PUSHES = 20
"""Pushes of one config that are shown; the first ones."""
MAX_OPTIONS = 200
"""Options of a push that are shown."""
_MOST_WORDS = 5_000
"""Words that are compared for one push; the values of further options are shown one after the other."""


class ShownOption(NamedTuple):
    """An option that a push changed."""

    path: str
    """Where the option is."""
    pieces: Sequence[Piece]
    """The values before and after, word by word."""
    is_cut: bool
    """Whether only the first `MAX_WORDS` words are compared."""


class ConfigPush(NamedTuple):
    """A push of a config, or of the same config again."""

    pushed: PushedConfig
    sessions: str
    """The sessions that it is for, in words."""
    before: PushedConfig | None
    """The version of the same sessions before; None: it is the first."""
    filed: PushedConfig | None
    """What the first version is compared with: the latest config file that a worker recorded before it; None: there is none."""
    options: Sequence[ShownOption]
    """What differs from the version before, or from the config file, at most `MAX_OPTIONS`."""
    options_left_out: int
    meanings: Sequence[str]
    """Which scores mean something else since."""


def versions_of(state: TopicState, digest: str) -> list[PushedConfig]:
    """Returns the versions with the config of a digest, the first one first.

    A worker of another version of Traceweir can give the same document another digest; the topic has its document.
    """
    every = [each for versions in state.versions.values() for each in versions.values() if each.config is not None]
    found = [each for each in every if each.digest == digest]
    recorded = state.by_digest.get(digest)
    if not found and recorded is not None and recorded.config is not None:
        wanted = config_id(recorded.config)
        found = [each for each in every if each.config is not None and config_id(each.config) == wanted]
    return sorted(found, key=lambda each: (each.pushed_at, each.selector, each.version))


def first_push(state: TopicState, digest: str) -> PushedConfig | None:
    """Returns the push that brought the config of a digest; None if nobody pushed it, or the topic does not say."""
    return next(iter(versions_of(state, digest)), None)


def pushes_of(state: TopicState, digest: str) -> list[ConfigPush]:
    """Returns the first pushes of the config of a digest, each with what it changed."""
    return [_push(state, each) for each in versions_of(state, digest)[:MAX_PUSHES]]


def _push(state: TopicState, pushed: PushedConfig) -> ConfigPush:
    numbers = [number for number in state.versions[pushed.selector] if number < pushed.version]
    before = state.versions[pushed.selector][max(numbers)] if numbers else None
    filed = _config_file(state, pushed) if before is None else None
    compared = before if before is not None else filed
    old = (compared.config if compared is not None else None) or {}
    new = pushed.config or {}
    changes = option_changes(old, new)
    options: list[ShownOption] = []
    words = 0
    for path, first, second in changes[:MAX_OPTIONS]:
        left = _text(first)
        right = _text(second)
        numbers_of_words = len(words_of(left)), len(words_of(right))
        words += sum(numbers_of_words)
        pieces = differences(left, right) if words <= _MOST_WORDS else [Piece("first", left), Piece("second", right)]
        options.append(ShownOption(path, pieces, words <= _MOST_WORDS and max(numbers_of_words) > MAX_WORDS))
    return ConfigPush(
        pushed,
        in_words(pushed.selector),
        before,
        filed,
        options,
        max(0, len(changes) - MAX_OPTIONS),
        meanings(old, new) if compared is not None and compared.config is not None else [],
    )


def _config_file(state: TopicState, pushed: PushedConfig) -> PushedConfig | None:
    """Returns the latest config file of a worker before a push for sessions that no other version of then is for."""
    app, environment = parsed_selector(pushed.selector)
    wider = {selector(*each) for each in ((app, None), (None, environment), (None, None))} - {pushed.selector}
    if any(each.pushed_at < pushed.pushed_at for name in wider for each in state.versions.get(name, {}).values()):
        return None
    every = [*state.by_digest.values(), *(each for versions in state.versions.values() for each in versions.values())]
    # A worker records pushed configs and challengers too, which are no files.
    others = {config_id(each.config) for each in every if each.config is not None and each.version != UNPUSHED}
    others |= {config_id(document) for each in every if (document := _challenger_of(each)) is not None}
    filed = [
        each
        for each in state.by_digest.values()
        if each.version == UNPUSHED
        and each.config is not None
        and each.pushed_at < pushed.pushed_at
        and config_id(each.config) not in others
    ]
    return max(filed, key=lambda each: each.pushed_at, default=None)


def _challenger_of(pushed: PushedConfig) -> JsonObject | None:
    challenger = (pushed.config or {}).get("challenger")
    document = challenger.get("config") if isinstance(challenger, dict) else None
    return document if isinstance(document, dict) else None


def document_of(pushed: PushedConfig) -> str:
    """Returns the document of a config for a person; its numbers can be larger than those of other documents."""
    return json.dumps(pushed.config, ensure_ascii=False, indent=2)


def _text(value: str | None) -> str:
    """Returns a value of JSON as a person reads it: a text without its quotes and escapes."""
    if value is None:
        return ""
    return str(json.loads(value)) if value.startswith('"') else value
