"""`traceweir topics`: creates and checks the topics on a cluster."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import orjson

from traceweir.streams.base.topics import StageName
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.terminal import complain, mute_clients, steps
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.doctor.positions import compare_positions
from traceweir.streams.worker.kafka.topic_admin import create_topics, inspect_topics
from traceweir.streams.worker.kafka.topic_problems import expected_topics


def create_and_report(stages: Sequence[StageName], *, as_json: bool) -> int:
    """Creates missing topics, prints the outcome, and returns the exit code.

    Raises:
        InvalidSettingsError: the environment cannot be used.
        KafkaUnreachableError: no broker answers.
    """
    creation = create_topics(kafka_settings(), stages)
    if as_json:
        _write_json({"created": creation.created, "existing": creation.existing, "wrong": creation.wrong})
    else:
        _write_lines(
            [f"created {name}" for name in creation.created] + [f"exists  {name}" for name in creation.existing]
        )
        complain("\n".join(creation.wrong))
    return FAILED if creation.wrong else 0


def check_and_report(stages: Sequence[StageName], *, as_json: bool) -> int:
    """Prints missing, misconfigured and weak topics, and those that do not fit the stored offsets; returns the exit code.

    Only what lets no worker start changes the code.

    Raises:
        InvalidSettingsError: the environment cannot be used.
        KafkaUnreachableError: no broker answers.
    """
    settings = kafka_settings()
    with steps("checking") as step:
        step("topics")
        expected = expected_topics(settings, stages)
        inspection = inspect_topics(settings, stages)
        problems = list(inspection.problems)
        warnings = list(inspection.warnings)
        if not problems:
            mute_clients()
            step("stored offsets")
            positions = asyncio.run(compare_positions(settings, stages))
            problems += positions.refused
            warnings += [*positions.lost, *positions.changed, *positions.unchecked]
    if as_json:
        _write_json(
            {
                "topics": list(expected),
                "problems": problems,
                "warnings": warnings,
                "remarks": inspection.remarks,
            }
        )
    else:
        complain("\n".join([*problems, *(f"warning: {each}" for each in warnings)]))
        if not problems:
            state = "can be used" if warnings else "are as they should be"
            _write_lines([*inspection.remarks, f"all {len(expected)} topics {state}"])
    return FAILED if problems else 0


def _write_json(found: object) -> None:
    _write_lines([orjson.dumps(found).decode()])


def _write_lines(lines: Sequence[str]) -> None:
    sys.stdout.writelines(line + "\n" for line in lines)
