"""Creates a shadow, or returns the definition of an existing shadow if the given options fit it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from traceweir.schemas.text import listed
from traceweir.scorers.evaluation.limited_plan import limited
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.challenger_name import has_scores, require_no_challenger
from traceweir.streams.lab.shadow.definition import Definition, ShadowOptions
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.estimate import CostEstimate, estimated, none_selected
from traceweir.streams.lab.shadow.known_verdicts import known_verdicts
from traceweir.streams.lab.shadow.log import names_of_shadows, read_definition, send, write_definition
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.lab.shadow.span import expired_text, resolve_span
from traceweir.streams.worker.kafka.topic_admin import check_partitions, create_named, existing_topics, topic_ids

Times = tuple[int | None, int | None]
"""Begin and end of the range, in milliseconds since 1970; None: the oldest session, and now."""
Agree = Callable[[Definition, Plan, CostEstimate], None]
"""Receives a shadow that does not exist yet with its plan and its estimate; raises if nobody agrees to run it."""
_NAMED = 10


class RunnableShadow(NamedTuple):
    """A shadow that can run."""

    definition: Definition
    plan: Plan
    is_new: bool


def found_or_created(
    settings: Settings, wanted: ShadowOptions, times: Times, agree: Agree, tell: Callable[[str], object]
) -> RunnableShadow:
    """Returns the shadow of a name: the existing one, or a new one after `agree` has returned.

    Args:
        settings: Where Kafka is.
        wanted: The options.
        times: The range, for a new shadow.
        agree: Is asked before a new shadow is created.
        tell: Receives sentences about the range.

    Raises:
        ShadowError: the shadow exists with other options; or it is new, and has no config, a challenger has or had the name,
            or it selects no session; or Kafka refuses something.
        KafkaUnreachableError: no broker answers.
        TopicsRefusedError: a topic could not be created.
        ConfigError: the stored config cannot be used by this version.
        JudgeUnavailableError: a criterion asks a judge, and the judge client is not installed.
    """
    names = ShadowNames.of(settings, wanted.name)
    if problems := check_partitions(settings, [names.topics.sessions, names.topics.references]):
        raise ShadowError("\n".join(problems))
    # Another process that creates this shadow now writes its definition before its scores. So the scores are looked for
    # first, and the topics are asked for again: whoever sees the scores also finds the definition.
    is_taken = has_scores(settings, wanted.name, existing_topics(settings))
    topics = existing_topics(settings)
    is_first = names.shadows not in topics
    existing = None if is_first else asyncio.run(read_definition(settings, wanted.name))
    if existing is not None:
        _check_fits(settings, wanted, existing)
        create_named(settings, names.own, names.retention_days)
        return RunnableShadow(existing, plan_of(existing), is_new=False)
    if wanted.config is None:
        names_known = [] if is_first else asyncio.run(names_of_shadows(settings))
        raise ShadowError(_without_config(wanted.name, names_known))
    require_no_challenger(settings, wanted.name, topics)
    if is_taken:
        raise ShadowError(
            f"topic {names.topics.results!r} has scores that are not of a shadow {wanted.name!r}, for example of a challenger "
            f"that has ended: take another --name, or remove these scores with `traceweir shadow --name {wanted.name} --drop`"
        )
    definition = asyncio.run(_new(settings, wanted, times, tell))
    plan = plan_of(definition)
    verdicts = asyncio.run(known_verdicts(settings, topics)) if plan.judged else {}
    estimate = asyncio.run(estimated(settings, definition, plan, verdicts))
    if estimate.is_whole and (why := none_selected(definition, estimate)) is not None:
        raise ShadowError(f"{why}: nothing was created; choose another --app, --sample or range")
    agree(definition, plan, estimate)
    create_named(settings, {names.shadows: "compact", **names.own}, names.retention_days)
    if any(verdicts.values()):
        send(
            settings,
            names.changelog,
            [(number, key, row) for number, rows in verdicts.items() for key, row in rows.items()],
        )
    # Last, so that an interrupted creation is repeated from its start.
    write_definition(settings, definition)
    final = asyncio.run(read_definition(settings, wanted.name)) or definition
    if final == definition:
        return RunnableShadow(definition, plan, is_new=True)
    # Another process was faster.
    _check_fits(settings, wanted, final)
    # Compaction keeps the last record of a name, which is then the one in effect.
    write_definition(settings, final)
    return RunnableShadow(final, plan_of(final), is_new=False)


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
    return limited(plan, definition.budget_usd)


async def _new(settings: Settings, wanted: ShadowOptions, times: Times, tell: Callable[[str], object]) -> Definition:
    sessions = settings.topics.sessions
    span = await resolve_span(settings, *times)
    if span.cut:
        tell(expired_text(sessions, span.cut))
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


def _without_config(name: str, existing: Sequence[str]) -> str:
    shown = listed(existing, most=_NAMED, separator=", ")
    others = f"the shadows are {shown}" if existing else "no shadow exists"
    return (
        f"there is no shadow {name!r} to resume ({others}), and a new shadow needs --config: check --name and "
        "TRACEWEIR_TOPIC_PREFIX, or give the config"
    )


def _check_fits(settings: Settings, wanted: ShadowOptions, existing: Definition) -> None:
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
