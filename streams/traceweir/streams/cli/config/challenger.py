"""Pushes, ends and promotes challengers for `traceweir config`."""

from __future__ import annotations

from pathlib import Path

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan, read_plan, without_challenger
from traceweir.streams.cli.certificate_standing import IN_FORCE, standing, with_certificates
from traceweir.streams.cli.config.output import config_in_effect, read_file
from traceweir.streams.cli.config.push import push_chosen
from traceweir.streams.scoring.configs.challenger_section import section_of
from traceweir.streams.scoring.configs.selectors import in_words
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState

Chosen = tuple[JsonObject, Plan, str | None]


def push_challenger(
    file: Path,
    name: str,
    sample: float,
    budget_usd: float | None,
    selector: str,
    comment: str | None,
    by: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Pushes the config in effect with a file as its challenger; returns the exit code.

    Raises:
        ConfigError: the file cannot be used as a challenger.
        ConfigTopicError: no config is in effect, another challenger has the name, or the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
        ShadowError: a shadow has the name, or the topic has scores of something else.
        TopicsRefusedError: the topic for the scores cannot be created.
    """
    document, plan, notes = read_file(file)
    if plan.judged and budget_usd is None and plan.judge.budget.usd is None:
        notes.append("nothing limits what the challenger's judges cost in all; --budget does")
    section: JsonObject = {"name": name, "sample": sample, "config": document}
    if budget_usd is not None:
        section["budget"] = budget_usd

    def chosen(state: TopicState) -> Chosen:
        found = _champion(state, selector) | {"challenger": section}
        return found, read_plan(found), comment or f"challenger {name}"

    return push_chosen(selector, chosen, by, notes, dry_run=dry_run, as_json=as_json)


def promote(name: str, selector: str, comment: str | None, by: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Pushes the config of the challenger in place of the champion's; returns the exit code.

    Certificates of the champion that are about a judge of the challenger's config too stay in force.

    Raises:
        ConfigError: the config cannot be used any more.
        ConfigTopicError: there is no such challenger, or the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
    """
    notes: list[str] = []

    def chosen(state: TopicState) -> Chosen:
        document = _challenger(state, selector, name)["config"]
        if not isinstance(document, dict):
            raise ConfigTopicError(
                f"the config of challenger {name!r} is not an object, and cannot be promoted: push a config with `traceweir "
                "config push`"
            )
        document, notes[:] = _with_fitting_certificates(document, _champion(state, selector))
        return document, read_plan(document), comment or f"promoted challenger {name}"

    return push_chosen(selector, chosen, by, notes, dry_run=dry_run, as_json=as_json)


def _with_fitting_certificates(document: JsonObject, champion: JsonObject) -> tuple[JsonObject, list[str]]:
    """Returns a config with the champion's certificates that are about one of its judges, and a note on each other one."""
    plan = read_plan(document)
    own = {each.key for each in plan.gate.certificates}
    try:
        given = [each for each in read_plan(champion).gate.certificates if each.key not in own]
    except ConfigError:
        # Promoting is a way out of a champion that cannot be used here.
        return document, ["the champion's config cannot be used here, so its certificates end"]
    stands = [(each, standing(each, plan)) for each in given]
    notes = []
    for each, reason in stands:
        if reason != IN_FORCE:
            judge = printable(each.judge or "no named judge", 60)
            why = reason.removeprefix("ended: ")
            notes.append(f"the certificate of {printable(each.criterion, 100)} by {judge} ends: {why}")
    kept = [each for each, reason in stands if reason == IN_FORCE]
    return with_certificates(document, [*plan.gate.certificates, *kept]) if kept else document, notes


def end_challenger(selector: str, comment: str | None, by: str | None, *, as_json: bool) -> int:
    """Pushes the config in effect without its challenger; returns the exit code.

    Raises:
        ConfigTopicError: there is none, or the topic cannot be read or written.
        KafkaUnreachableError: no broker answers.
    """

    def chosen(state: TopicState) -> Chosen:
        name = _challenger(state, selector, None).get("name")
        found = _champion(state, selector)
        return found, read_plan(found), comment or f"ended challenger {printable(str(name), 100)}"

    return push_chosen(selector, chosen, by, [], dry_run=False, as_json=as_json)


def _champion(state: TopicState, selector: str) -> JsonObject:
    """Returns the config in effect without its challenger."""
    try:
        found = config_in_effect(state, selector).config or {}
    except ConfigTopicError as error:
        raise ConfigTopicError(
            f"{error}. A challenger belongs to a config on the topic: push the champion first, with `traceweir config push`"
        ) from None
    return without_challenger(found)


def _challenger(state: TopicState, selector: str, name: str | None) -> JsonObject:
    where = printable(in_words(selector))
    section = section_of(config_in_effect(state, selector))
    if section is None:
        raise ConfigTopicError(
            f"the config for {where} has no challenger; `traceweir config show` lists those that exist"
        )
    if name is not None and section.get("name") != name:
        found = printable(str(section.get("name")), 120)
        raise ConfigTopicError(
            f"the challenger for {where} is {found!r}, not {name!r}: promote that one, or name the --app and "
            f"--environment of the config with {name!r}, which `traceweir config show` lists"
        )
    return section
