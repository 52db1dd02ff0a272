"""Does the work of `traceweir diff`: reads both sides, compares them, and prints what differs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from enum import Enum, auto

from traceweir.streams.cli.diff.markdown import markdown_of
from traceweir.streams.cli.diff.output import print_comparison
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.results.output import json_line
from traceweir.streams.cli.terminal import complain, mute_clients, progress_bar
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.lab.comparison.bounds import Bound, checked
from traceweir.streams.lab.comparison.compare import compare
from traceweir.streams.lab.comparison.document import BoundOn
from traceweir.streams.lab.comparison.rows import Kinds, SideRows
from traceweir.streams.lab.comparison.texts import Texts
from traceweir.streams.lab.comparison_sides import ScoreSource, read_file, read_topic


class Form(Enum):
    """The forms of the output."""

    TEXT = auto()
    JSON = auto()
    MARKDOWN = auto()


def run_diff(
    base: ScoreSource, challenger: ScoreSource, bounds: Sequence[Bound], *, on: BoundOn, flips: int, form: Form
) -> int:
    """Compares two sources, prints the comparison, and returns the exit code.

    Raises:
        InputError: a file cannot be read.
        InvalidSettingsError: the environment cannot be used.
        KafkaUnreachableError: no broker answers.
        NoOverlapError: the sides have nothing in common.
        ResultsError: a topic is missing or wrong or cannot be read.
        UnknownMetricError: a bound names a metric that neither side has.
    """
    kinds = Kinds()
    with Texts() as texts:
        rows = [SideRows(source.name, kinds, texts) for source in (base, challenger)]
        unusable = [_read(source, side) for source, side in zip((base, challenger), rows, strict=True)]
        before, after = (side.counting() for side in rows)
        comparison = compare(before, after, kinds, texts, flips=flips, unusable=(unusable[0], unusable[1]))
    comparison = checked(comparison, bounds, on)
    match form:
        case Form.JSON:
            sys.stdout.write(json_line(comparison.model_dump_json().encode()).decode() + "\n")
        case Form.MARKDOWN:
            sys.stdout.write(markdown_of(comparison))
        case Form.TEXT:
            print_comparison(comparison)
    is_incomplete = any(count and source.path for source, count in zip((base, challenger), unusable, strict=True))
    return 0 if comparison.keeps_bounds and not is_incomplete else FAILED


def _read(source: ScoreSource, side: SideRows) -> int:
    with progress_bar(f"scores read of {side.name}") as advance:
        if source.path is not None:
            return read_file(source, side, complain, advance)
        mute_clients()
        return asyncio.run(read_topic(kafka_settings(), source, side, complain, advance))
