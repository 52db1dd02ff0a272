"""Checks, lists, shows and compares evaluation configs for `traceweir config`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from traceweir.schemas.base import JsonObject
from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.languages import language_warnings
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.evaluation.settling import asked_twice
from traceweir.scorers.evaluation.unmeasured import needing_references, never_measured
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.config.digest import ShadowConfig, config_of_digest
from traceweir.streams.cli.score.commands import read_config_file
from traceweir.streams.cli.terminal import complain, mute_clients
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.scoring.configs.challenger_section import section_of
from traceweir.streams.scoring.configs.changes import changed_options, meanings
from traceweir.streams.scoring.configs.records import UNPUSHED
from traceweir.streams.scoring.configs.selectors import ANY, in_words
from traceweir.streams.scoring.configs.usable import without_effect
from traceweir.streams.scoring.judges.keys import without_key
from traceweir.streams.scoring.judges.unused_names import unused_names
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState, read_topic

CURRENT = "current"
DIGEST = "digest:"


def validate_file(file: Path, *, as_json: bool) -> int:
    """Checks a file; returns the exit code.

    Raises:
        ConfigError: the config cannot be used.
    """
    _, plan, notes = read_file(file)
    names = [metric.name for metric in plan.metrics]
    # A challenger does not wait.
    warnings = [*_warnings(plan), *asked_twice(plan.rounds, plan.judge.cache)]
    if as_json:
        write_json({"digest": plan.digest, "criteria": names, "notes": notes, "warnings": warnings})
    else:
        complain("\n".join(f"note: {note}" for note in notes))
        complain("\n".join(f"warning: {warning}" for warning in warnings))
        write([f"{file} can be used: digest {plan.digest}, criteria {', '.join(names) or 'none'}"])
        later = [metric for metrics in plan.rounds for metric in metrics if metric.when is not None]
        write([f"{metric.name} is measured if {metric.when}" for metric in later])
        settling = [metric for metric in plan.metrics if metric.settle_s]
        write([f"{each.name} is measured after {each.settle_s:g} s without a later revision" for each in settling])
    return 0


def _warnings(plan: Plan) -> list[str]:
    """Returns what the config can be used for less than it seems: criteria without values, and thresholds that fail."""
    key, address = (os.environ.get(f"TRACEWEIR_JUDGE_API_{name}") for name in ("KEY", "BASE"))
    never = never_measured(plan, without_key(plan, os.environ, has_key=bool(key), api_base=address))
    found = [*never, *unused_names(plan, address), *needing_references(plan), *language_warnings(plan.metrics)]
    if plan.challenger is not None:
        found += [f"challenger: {warning}" for warning in _warnings(plan.challenger.plan)]
    return found


def list_configs(*, as_json: bool) -> int:
    """Prints the configs in effect; returns the exit code.

    Raises:
        ConfigTopicError: the topic cannot be read.
        KafkaUnreachableError: no broker answers.
    """
    state = read_state(kafka_settings())
    rows = [state.current[name] for name in sorted(state.current)]
    for row in rows:
        _warn_if_unusable(row)
    _list(rows, as_json=as_json, empty="no config is on the topic; the workers' config files are in effect")
    return 0


def list_history(selector: str, *, as_json: bool) -> int:
    """Prints all versions of a selector, the latest last; returns the exit code.

    Raises:
        ConfigTopicError: the topic cannot be read.
        KafkaUnreachableError: no broker answers.
    """
    versions = read_state(kafka_settings()).versions.get(selector) or {}
    empty = f"no config was pushed for {printable(in_words(selector))}"
    _list([versions[number] for number in sorted(versions)], as_json=as_json, empty=empty)
    return 0


def show_config(selector: str, version: int | None, digest: str | None, *, as_json: bool) -> int:
    """Prints one config; returns the exit code.

    Raises:
        ConfigTopicError: there is no such config, or the topic cannot be read.
        KafkaUnreachableError: no broker answers.
        ShadowError: the digest is not on the topic, and the shadows cannot be read.
    """
    settings = kafka_settings()
    state = read_state(settings)
    found: PushedConfig | ShadowConfig
    if digest is not None:
        found = config_of_digest(settings, state, digest)
    elif version is not None:
        found = state.version(selector, version)
    else:
        found = config_in_effect(state, selector)
    if as_json:
        document = found.document if isinstance(found, ShadowConfig) else found.model_dump(mode="json")
        write([json.dumps(document)])
        return 0
    complain(found.line if isinstance(found, ShadowConfig) else _line(found))
    write([json.dumps(found.config, indent=2)])
    return 0


def diff_configs(left: str, right: str, selector: str, *, as_json: bool) -> int:
    """Prints the differences of two configs; returns the exit code.

    Raises:
        ConfigError: a file cannot be used.
        ConfigTopicError: a config does not exist, or the topic cannot be read.
        KafkaUnreachableError: no broker answers.
        ShadowError: the digest is not on the topic, and the shadows cannot be read.
    """
    topic: tuple[Settings, TopicState] | None = None
    sides = []
    for side in (left, right):
        if _on_topic(side):
            if topic is None:
                settings = kafka_settings()
                topic = settings, read_state(settings)
            sides.append(_side(*topic, side, selector))
        else:
            sides.append(read_file(Path(side))[0])
    before, after = sides
    options = changed_options(before, after)
    scores = meanings(before, after)
    if as_json:
        write_json({"options": options, "meanings": scores})
    else:
        write([*options, *scores] or ["the configs are equal"])
    return 0


def _on_topic(side: str) -> bool:
    return side == CURRENT or side.startswith(DIGEST) or (side.isascii() and side.isdecimal())


def _side(settings: Settings, state: TopicState, side: str, selector: str) -> JsonObject:
    found: PushedConfig | ShadowConfig
    if side == CURRENT:
        found = config_in_effect(state, selector)
    elif side.startswith(DIGEST):
        found = config_of_digest(settings, state, side.removeprefix(DIGEST))
    else:
        found = state.version(selector, int(side[:20]))
    config = found.config
    if config is None and side.startswith(DIGEST):
        raise ConfigTopicError(
            f"{side:.80} is the digest of the default criteria, which have no document: name a version; `traceweir "
            "config history` lists them"
        )
    # Without a config it is a version that is a withdrawal.
    if config is None:
        raise ConfigTopicError(
            f"version {side:.20} for {printable(in_words(selector))} is a withdrawal: name another one; `traceweir config "
            "history` lists them"
        )
    return config


def config_in_effect(state: TopicState, selector: str) -> PushedConfig:
    """Returns the config of a selector.

    Raises:
        ConfigTopicError: there is none.
    """
    if selector not in state.current:
        others = ", ".join(sorted(state.current)) or "none"
        raise ConfigTopicError(
            f"no config is in effect for {printable(in_words(selector))}; there are configs for: {printable(others, 1_000)}"
        )
    _warn_if_unusable(state.current[selector])
    return state.current[selector]


def read_state(settings: Settings) -> TopicState:
    """Returns what the topic says, and warns of its records that cannot be read.

    Raises:
        ConfigTopicError: the topic cannot be read.
        KafkaUnreachableError: no broker answers.
    """
    mute_clients()
    state = asyncio.run(read_topic(settings))
    complain("\n".join(f"warning: {problem}" for problem in state.problems))
    return state


def read_file(file: Path) -> tuple[JsonObject, Plan, list[str]]:
    """Returns the document of a file, its plan, and notes for the person who pushes it.

    Raises:
        ConfigError: the config cannot be used, or cannot be a record of the topic.
    """
    plan, text = read_config_file(file)
    # As `read_plan` reads it: other encodings and large numbers included.
    document: JsonObject = json.loads(text)
    _check_writable(document)
    notes = [f"{option} has an effect only in the workers' config file" for option in without_effect(document)]
    beside = plan.challenger
    if beside is not None:
        notes += [
            f"challenger.config.{option} has an effect only in the workers' config file"
            for option in without_effect(beside.document)
        ]
    if plan.gate.presidio is not None or (beside is not None and beside.plan.gate.presidio is not None):
        notes.append(
            "gate.presidio must be the same as in the workers' config file, else the workers refuse the config"
        )
    return document, plan, notes


def _check_writable(document: JsonObject) -> None:
    try:
        pushed = PushedConfig(
            envelope=ENVELOPE, selector=ANY, version=1, digest="", config=document, pushed_at=utc_now()
        )
        if PushedConfig.model_validate_json(pushed.wire()).config == document:
            return
        problem = "it changes when it is written and read again"
    except (ValueError, RecursionError) as error:
        problem = printable(str(error).splitlines()[0], 300)
    raise ConfigError(
        [
            f"the document cannot be a record of the topic ({problem}); write it without lone surrogates and infinite numbers"
        ]
    )


def _list(found: Sequence[PushedConfig], *, as_json: bool, empty: str) -> None:
    if as_json:
        for each in found:
            write_json(row_of(each))
    else:
        write([_line(each) for each in found] or [empty])


def row_of(pushed: PushedConfig) -> JsonObject:
    """Returns a version for `--json`, without its document; `challenger` is its section without the config, or null."""
    section = section_of(pushed)
    beside = section and {name: value for name, value in section.items() if name != "config"}
    return {**pushed.model_dump(mode="json", exclude={"config", "envelope"}), "challenger": beside}


def _warn_if_unusable(pushed: PushedConfig) -> None:
    """Warns of a config that is in effect by its key, and with which workers go on as if it were not there."""
    try:
        read_plan(pushed.config)
    except ConfigError as error:
        # Another program or another version wrote it, or a plugin is missing here.
        problems = printable("; ".join(error.problems), 1_000)
        complain(f"warning: workers with the metrics of this machine do not use {_name_of(pushed)}: {problems}")


def _name_of(pushed: PushedConfig) -> str:
    return f"{printable(pushed.selector, 600)} version {pushed.version}"


def _line(pushed: PushedConfig) -> str:
    if pushed.version == UNPUSHED:
        source = "the default criteria" if pushed.config is None else "a config"
        return (
            f"{source} by which a worker scores, digest {printable(str(pushed.digest))[:12]}, recorded "
            f"{pushed.pushed_at:%Y-%m-%d %H:%M:%S} UTC by the worker"
        )
    what = "withdrawn" if pushed.config is None else f"digest {printable(str(pushed.digest))[:12]}"
    by = f" by {printable(pushed.pushed_by, 100)}" if pushed.pushed_by else ""
    why = f": {printable(pushed.comment, 200)}" if pushed.comment else ""
    at = pushed.pushed_at.strftime("%Y-%m-%d %H:%M:%S")
    section = section_of(pushed) or {}
    beside = f", challenger {printable(str(section.get('name')), 120)}" if section else ""
    return f"{_name_of(pushed)}, {what}{beside}, {at} UTC{by}{why}"


def write_json(found: object) -> None:
    """Prints a line of JSON."""
    write([orjson.dumps(found).decode()])


def write(lines: Sequence[str]) -> None:
    """Prints lines."""
    sys.stdout.writelines(line + "\n" for line in lines)
