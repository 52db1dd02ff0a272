"""Writes versions of evaluation configs for `traceweir config`: pushes, rollbacks and withdrawals."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path

from traceweir.schemas.base import JsonObject
from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Plan, read_plan, without_challenger
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.config.output import (
    config_in_effect,
    read_file,
    read_state,
    row_of,
    write,
    write_json,
)
from traceweir.streams.cli.terminal import complain, mute_clients
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.lab.shadow.challenger_name import create_topic, require_free_name, require_usable_name
from traceweir.streams.scoring.configs.changes import changed_options, meanings
from traceweir.streams.scoring.configs.records import config_id
from traceweir.streams.scoring.configs.selectors import in_words
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState, push


def push_file(file: Path, selector: str, comment: str | None, by: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Pushes a file as the next version; returns the exit code.

    Raises:
        ConfigError: the config cannot be used.
        ConfigTopicError: the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
    """
    document, plan, notes = read_file(file)
    return push_chosen(selector, lambda state: (document, plan, comment), by, notes, dry_run=dry_run, as_json=as_json)


def roll_back(
    selector: str, to: int | None, comment: str | None, by: str | None, *, dry_run: bool, as_json: bool
) -> int:
    """Pushes an earlier version again, without its challenger; returns the exit code.

    Raises:
        ConfigError: the version cannot be used any more, for example without its metrics.
        ConfigTopicError: there is no such version, or the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
    """

    def chosen(state: TopicState) -> tuple[JsonObject, Plan, str | None]:
        number = to if to is not None else _before_present(state, selector)
        found = state.version(selector, number)
        if found.config is None:
            raise ConfigTopicError(
                f"version {number} for {printable(in_words(selector))} is a withdrawal; `traceweir config withdraw` does the "
                "same"
            )
        # An earlier challenger would score again, and cost money, without anybody having asked for it.
        document = without_challenger(found.config)
        return document, read_plan(document), comment or f"rollback to version {number}"

    return push_chosen(selector, chosen, by, [], dry_run=dry_run, as_json=as_json)


def withdraw_config(selector: str, comment: str | None, by: str | None, *, as_json: bool) -> int:
    """Takes the config of a selector out of effect; returns the exit code.

    Raises:
        ConfigTopicError: there is none, or the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
    """

    def decide(state: TopicState) -> PushedConfig:
        # A config of a newer Traceweir can be withdrawn too: without that version there is no other way out.
        if selector not in state.current and state.newer_config(selector) is None:
            raise ConfigTopicError(
                f"no config is in effect for {printable(in_words(selector))}; `traceweir config show` lists those that are"
            )
        return _version(state, selector, None, None, comment, by)

    pushed = _run_push(kafka_settings(), decide)
    if as_json:
        write_json({"pushed": pushed and row_of(pushed)})
    else:
        write(
            [f"withdrew the config for {printable(in_words(selector))}; sessions from now on have the more general one"]
        )
    return 0


def push_chosen(
    selector: str,
    chosen: Callable[[TopicState], tuple[JsonObject, Plan, str | None]],
    by: str | None,
    notes: Sequence[str],
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Pushes a document as the next version, and prints what it changes; returns the exit code.

    Args:
        selector: The sessions that the config is for.
        chosen: Returns the document, its plan and the comment, from what the topic says.
        by: Who pushes it.
        notes: Sentences for the person who pushes it.
        dry_run: Whether nothing is written.
        as_json: Whether JSON is printed.

    Raises:
        ConfigError: the document cannot be used.
        ConfigTopicError: the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
        ShadowError: the name of its challenger is in use.
        TopicsRefusedError: the topic of its challenger cannot be created.
    """
    changes: list[str] = []

    def decide(state: TopicState) -> PushedConfig | None:
        changes.clear()
        state.refuse_over_newer(selector)
        document, plan, comment = chosen(state)
        # Another push can have taken its name meanwhile.
        if plan.challenger is not None:
            require_free_name(state, selector, plan.challenger.name)
        present = state.current.get(selector)
        if present is None or present.config is None:
            changes.append(f"no config was in effect for {printable(in_words(selector))} on the topic")
        else:
            changes.extend(changed_options(present.config, document))
            changes.extend(meanings(present.config, document))
            if config_id(present.config) == config_id(document) and present.digest == plan.digest:
                return None
            if present.digest != plan.digest and not changes:
                changes.append("the document is the same, but this version of Traceweir measures in another way")
        return _version(state, selector, document, plan.digest, comment, by)

    settings = kafka_settings()
    state = read_state(settings)
    # Before a topic is created for the challenger.
    state.refuse_over_newer(selector)
    if (challenger := chosen(state)[1].challenger) is not None:
        require_usable_name(settings, state, selector, challenger)
        if not dry_run:
            create_topic(settings, challenger.name)
    pushed = decide(state) if dry_run else _run_push(settings, decide)
    did = "would push" if dry_run else "pushed"
    if as_json:
        write_json({"pushed": pushed and row_of(pushed), "dry_run": dry_run, "changes": changes, "notes": list(notes)})
        return 0
    complain("\n".join(f"note: {note}" for note in notes))
    if pushed is None:
        write([f"nothing to push: the config is in effect for {printable(in_words(selector))} already"])
    else:
        what = f"version {pushed.version} for {printable(in_words(selector))}, digest {pushed.digest}"
        write([*changes, f"{did} {what}"])
    return 0


def _run_push(settings: Settings, decide: Callable[[TopicState], PushedConfig | None]) -> PushedConfig | None:
    mute_clients()
    return asyncio.run(push(settings, decide))


def _version(
    state: TopicState,
    selector: str,
    document: JsonObject | None,
    digest: str | None,
    comment: str | None,
    by: str | None,
) -> PushedConfig:
    return PushedConfig(
        envelope=ENVELOPE,
        selector=selector,
        version=state.next_version(selector),
        digest=digest,
        config=document,
        pushed_at=utc_now(),
        pushed_by=by if by is not None else _user(),
        comment=comment,
        traceweir=installed_version("traceweir"),
    )


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container without an entry for its user.
        return None


def _before_present(state: TopicState, selector: str) -> int:
    """Returns the latest version before the present one whose rollback changes the config in effect."""
    try:
        present = config_in_effect(state, selector)
    except ConfigTopicError as error:
        raise ConfigTopicError(
            f"{error}. `traceweir config history` lists the versions; `traceweir config rollback --to N` puts version N in "
            "effect"
        ) from None
    in_effect = None if present.config is None else config_id(present.config)
    earlier = [
        number
        for number, each in (state.versions.get(selector) or {}).items()
        # A rollback leaves the challenger out, so a version that differs only in its challenger would change nothing.
        if number < present.version
        and each.config is not None
        and config_id(without_challenger(each.config)) != in_effect
    ]
    if not earlier:
        raise ConfigTopicError(
            f"there is no version before version {present.version} for {printable(in_words(selector))} that has another "
            "config; `traceweir config withdraw` returns to the workers' config file"
        )
    return max(earlier)
