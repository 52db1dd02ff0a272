"""Runs all checks in turn; one that fails does not stop the next one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.clock import seconds_now, utc_now
from traceweir.streams.doctor.clock import check_clock
from traceweir.streams.doctor.cluster import check_cluster
from traceweir.streams.doctor.finding import Finding
from traceweir.streams.doctor.inputs import check_inputs
from traceweir.streams.doctor.machine import check_machine
from traceweir.streams.doctor.models import check_models
from traceweir.streams.doctor.positions import check_positions, compare_positions
from traceweir.streams.kafka.errors import KafkaUnreachableError
from traceweir.streams.settings import Settings
from traceweir.streams.topics import StageName


async def check_everything(
    settings: Settings, plan: Plan, stages: Collection[StageName], minutes: float
) -> AsyncIterator[Finding]:
    """Yields what is found.

    Args:
        settings: The settings of the worker.
        plan: Its criteria.
        stages: Its stages.
        minutes: How far back the inputs are read.
    """
    for finding in check_machine(settings, stages, os.environ):
        yield finding
    for finding in check_models(settings, plan):
        yield finding
    try:
        for finding in check_cluster(settings, stages):
            yield finding
        for finding in check_positions(await compare_positions(settings, stages)):
            yield finding
        yield await check_clock(settings, stages, seconds_now)
        now_ms = int(utc_now().timestamp() * 1000)
        async for finding in check_inputs(settings, now_ms, minutes, spans="collect" in stages):
            yield finding
    except KafkaUnreachableError as error:
        yield Finding("broker", "failure", str(error))
