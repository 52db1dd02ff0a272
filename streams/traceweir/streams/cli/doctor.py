"""`traceweir doctor`: shows what is found around a worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import orjson
import typer

from traceweir.streams.base.topics import StageName
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.rows import print_rows, write_line
from traceweir.streams.cli.score.commands import read_config
from traceweir.streams.cli.terminal import complain, mute_clients, steps
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.run import check_everything

_HEADINGS = ("state", "check", "found")


def run_doctor(
    stages: Collection[StageName], config: Path | None, minutes: float, *, as_json: bool, ask: bool = False
) -> None:
    """Checks everything, prints it, and exits with 1 if a check has failed; with `ask`, asks each judge a question.

    Raises:
        InvalidSettingsError: the environment cannot be used.
        ConfigError: the config cannot be used.
    """
    settings = kafka_settings()
    plan = read_config(config)
    mute_clients()

    async def gathered() -> list[Finding]:
        with steps("checking") as step:
            found = [finding async for finding in check_everything(settings, plan, stages, minutes, step)]
            if ask:
                # Imported here, because the judge client takes a second.
                from traceweir.streams.lab.judge_asking import ask_judges

                step("answers of judges")
                found += [finding async for finding in ask_judges(settings, plan)]
            return found

    findings = asyncio.run(gathered())
    if as_json:
        write_line(orjson.dumps([finding._asdict() for finding in findings]).decode())
    else:
        print_rows(_HEADINGS, [(finding.state, finding.check, finding.text) for finding in findings])
        counts = Counter(finding.state for finding in findings)
        complain(", ".join(f"{number} {state}" for state, number in counts.items()))
    if any(finding.state == "failure" for finding in findings):
        raise typer.Exit(FAILED)
