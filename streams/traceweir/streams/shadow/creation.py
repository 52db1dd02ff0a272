"""Creates a shadow, or returns the definition of an existing shadow if the given options fit it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.clock import utc_now
from traceweir.streams.kafka.topic_admin import check_partitions, create_named, existing_topics, topic_ids
from traceweir.streams.settings import Settings
from traceweir.streams.shadow.definition import Definition, Wanted
from traceweir.streams.shadow.errors import ShadowError
from traceweir.streams.shadow.estimate import Estimate, estimated
from traceweir.streams.shadow.known_verdicts import live_verdicts
from traceweir.streams.shadow.log import read_definition, send, write_definition
from traceweir.streams.shadow.names import ShadowNames
from traceweir.streams.shadow.span import iso, resolve_span

Times = tuple[int | None, int | None]
"""Begin and end of the range, in milliseconds since 1970; None: the oldest session, and now."""
Agree = Callable[[Definition, Estimate], None]
"""Receives a shadow that does not exist yet with its estimate; raises if nobody agrees to run it."""


class Found(NamedTuple):
    """A shadow that can run."""

    definition: Definition
    plan: Plan
    is_new: bool


def found_or_created(
    settings: Settings, wanted: Wanted, times: Times, agree: Agree, tell: Callable[[str], object]
) -> Found:
    """Returns the shadow of a name: the existing one, or a new one after `agree` has returned.

    Args:
        settings: Where Kafka is.
        wanted: The options.
        times: The range, for a new shadow.
        agree: Is asked before a new shadow is created.
        tell: Receives sentences about the range.

    Raises:
        ShadowError: the shadow exists with other options, or its range is empty, or Kafka refuses something.
        KafkaUnreachableError: no broker answers.
        TopicsRefusedError: a topic could not be created.
        ConfigError: the stored config cannot be used by this version.
        JudgeUnavailableError: a criterion asks a judge, and the judge client is not installed.
    """
    names = ShadowNames.of(settings, wanted.name)
    if problems := check_partitions(settings, [names.topics.sessions, names.topics.references]):
        raise ShadowError("\n".join(problems))
    is_first = names.shadows not in existing_topics(settings)
    existing = None if is_first else asyncio.run(read_definition(settings, wanted.name))
    if existing is not None:
        _check_fits(settings, wanted, existing)
        create_named(settings, names.own, names.retention_days)
        return Found(existing, plan_of(existing), is_new=False)
    definition = asyncio.run(_new(settings, wanted, times, tell))
    plan = plan_of(definition)
    verdicts = asyncio.run(live_verdicts(settings)) if plan.judged else {}
    agree(definition, asyncio.run(estimated(settings, definition, plan, verdicts)))
    create_named(settings, {names.shadows: "compact", **names.own}, names.retention_days)
    if any(verdicts.values()):
        send(
            settings,
            names.changelog,
            [(number, key, row) for number, rows in verdicts.items() for key, row in rows.items()],
        )
    write_definition(settings, definition)  # last, so that an interrupted creation is repeated from its start
    final = asyncio.run(read_definition(settings, wanted.name)) or definition
    if final == definition:
        return Found(definition, plan, is_new=True)
    _check_fits(settings, wanted, final)  # another process was faster
    write_definition(settings, final)  # compaction keeps the last record of a name, which is then the one in effect
    return Found(final, plan_of(final), is_new=False)


def plan_of(definition: Definition) -> Plan:
    """Returns the plan of a shadow: that of its config, within its budget.

    Sessions are not scored again later if a judge was unavailable: the end of the shadow would wait for them.

    Raises:
        ConfigError: this version cannot use the config.
        ShadowError: this version reads the config in another way.
    """
    plan = read_plan(definition.config)
    if plan.digest != definition.config_digest:
        raise ShadowError(
            f"this version reads the config of shadow {definition.name!r} in another way than the version that created "
            "it: run the former version, or drop the shadow and create it again"
        )
    judge = plan.judge.model_copy(
        update={
            "retry_later": None,
            "budget": plan.judge.budget.model_copy(update={"usd": definition.budget_usd or plan.judge.budget.usd}),
        }
    )
    return replace(plan, judge=judge)


async def _new(settings: Settings, wanted: Wanted, times: Times, tell: Callable[[str], object]) -> Definition:
    sessions = settings.topics.sessions
    span = await resolve_span(settings, *times)
    if span.expired_before_ms is not None:
        tell(
            f"sessions before {iso(span.expired_before_ms)} have expired (retention.ms of {sessions!r}): the range "
            "begins there"
        )
    plan = read_plan(wanted.config)
    ids = await asyncio.to_thread(topic_ids, settings, [sessions])
    return Definition(
        name=wanted.name,
        config=wanted.config,
        config_digest=plan.digest,
        since=wanted.since,
        until=wanted.until,
        app=wanted.app,
        sample=1.0 if wanted.sample is None else wanted.sample,
        budget_usd=wanted.budget_usd,
        sessions_id=ids.get(sessions, ""),
        begins=dict(span.begins),
        ends=dict(span.ends),
        created_at=utc_now(),
    )


def _check_fits(settings: Settings, wanted: Wanted, existing: Definition) -> None:
    """Raises ShadowError if the options differ from those of an existing shadow, or its sessions are gone."""
    name = wanted.name
    ways_out = f"take another --name, or remove the shadow with `traceweir shadow --name {name} --drop`"
    if differences := list(wanted.differences(existing)):
        raise ShadowError(f"shadow {name!r} exists with other options: {'; '.join(differences)}. {ways_out}")
    sessions = settings.topics.sessions
    if topic_ids(settings, [sessions]).get(sessions, "") != existing.sessions_id:
        raise ShadowError(
            f"shadow {name!r} was created for another topic {sessions!r}, which was deleted and created again; {ways_out}"
        )
