"""Runs all checks in turn; one that fails does not stop the next one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.clock import seconds_now, utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName
from traceweir.streams.tools.doctor.clock import check_clock
from traceweir.streams.tools.doctor.cluster import check_cluster
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.inputs import check_inputs
from traceweir.streams.tools.doctor.machine import check_machine
from traceweir.streams.tools.doctor.models import check_models
from traceweir.streams.tools.doctor.positions import check_positions, compare_positions
from traceweir.streams.tools.doctor.workers import WORKERS, check_workers, look_at_workers
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.group_states import GroupReader
from traceweir.streams.worker.kafka.request_thread import in_request_thread


async def check_everything(
    settings: Settings,
    plan: Plan,
    stages: Collection[StageName],
    minutes: float,
    step: Callable[[str], object] = lambda name: None,
) -> AsyncIterator[Finding]:
    """Yields what is found.

    Args:
        settings: The settings of the worker.
        plan: Its criteria.
        stages: Its stages.
        minutes: How far back the inputs are read.
        step: Receives the name of each step before it begins; with distant brokers, one can take half a minute.
    """
    step("this machine")
    for finding in check_machine(settings, stages, os.environ):
        yield finding
    step("models")
    for finding in check_models(settings, plan):
        yield finding
    try:
        step("brokers, topics and transactions")
        for finding in check_cluster(settings, stages):
            yield finding
        step("stored offsets")
        for finding in check_positions(await compare_positions(settings, stages)):
            yield finding
        step("workers")
        for finding in await _workers(settings):
            yield finding
        step("broker clock")
        yield await check_clock(settings, stages, seconds_now)
        step("inputs")
        now_ms = int(utc_now().timestamp() * 1000)
        async for finding in check_inputs(settings, now_ms, minutes, spans="collect" in stages):
            yield finding
    except KafkaUnreachableError as error:
        yield Finding("broker", "failure", str(error))


async def _workers(settings: Settings) -> list[Finding]:
    # No failure: a worker need not run yet where the doctor looks before its first start.
    try:
        states = await in_request_thread(lambda: look_at_workers(GroupReader(settings), settings))
    except KafkaUnreachableError as error:
        # A new cluster creates the topic of the groups' offsets at the first question.
        return [Finding(WORKERS, "warning", f"unknown: {error}")]
    return list(check_workers(states, settings, absent="warning"))
