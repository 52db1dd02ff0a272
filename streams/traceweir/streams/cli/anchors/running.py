"""Runs `traceweir anchors run`."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.process_log import log_to_stderr
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.score.commands import read_config
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.anchors.judging import AnchorSet, anchor_judging, anchor_sets
from traceweir.streams.tools.anchors.listing import change_in_words
from traceweir.streams.tools.anchors.reading import AnchorReader
from traceweir.streams.tools.anchors.running import AnchorRun
from traceweir.streams.tools.anchors.topics import AnchorsError, read_anchors, verdicts_writer
from traceweir.streams.tools.anchors.watch import AnchorWatch

log = logging.getLogger(__name__)


def run_anchors(config: Path, per_day: int, limit: int | None) -> int:
    """Judges anchors until SIGTERM, Ctrl-C or the limit; returns the exit code.

    Raises:
        AnchorsError: a topic is missing or wrong or cannot be read, or no anchor can be judged.
        ConfigError: the config cannot be used.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailableError: the [judge] extra is not installed.
        KafkaUnreachableError: no broker answers.
    """
    plan = read_config(config)
    settings = kafka_settings()
    log_to_stderr(settings.log_options)
    anchors = asyncio.run(read_anchors(settings))
    if anchors.unreadable:
        complain(
            f"{counted(len(anchors.unreadable), 'record')} of {settings.topics.anchors} cannot be read and is not judged"
        )
    sets, unused = anchor_sets(plan, list(anchors.by_id.values()))
    for name, why in unused.items():
        complain(f"{printable(name, 100)}: not judged: {why}")
    if not sets:
        raise AnchorsError(f"no anchor of {settings.topics.anchors} can be judged: `traceweir anchors add` makes them")
    watch = asyncio.run(AnchorReader(settings).watch(utc_now()))
    for name, each in watch.criteria.items():
        if name in sets and each.changes:
            complain(f"last found: {change_in_words(name, each.changes[-1])}")
    judged = asyncio.run(_run(settings, plan, sets, watch, per_day, limit))
    return FAILED if limit is not None and not judged else 0


async def _run(
    settings: Settings, plan: Plan, sets: Mapping[str, AnchorSet], watch: AnchorWatch, per_day: int, limit: int | None
) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows; there Ctrl-C cancels this coroutine.
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)

    async def pause(seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
        return not stop.is_set()

    anchors = sum(len(each.anchors) for each in sets.values())
    log.info(
        "anchors: %s of %s, %s judged a day; each is asked and paid",
        counted(anchors, "anchor"),
        counted(len(sets), "criterion", "criteria"),
        f"{per_day:,}",
    )
    with anchor_judging(plan, settings, utc_now) as judging:
        run = AnchorRun(
            sets,
            judging,
            verdicts_writer(settings),
            watch,
            per_day=per_day,
            clock=utc_now,
            pause=pause,
            timeout_s=settings.judge_timeout_s,
        )
        return await run.run(limit)
