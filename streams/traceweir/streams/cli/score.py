"""`traceweir score`: scores a file in this process, without Kafka."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traceweir.schemas.figures import counted, figure
from traceweir.schemas.text import printable
from traceweir.streams.cli.errors import FAILED, NO_DOCUMENT
from traceweir.streams.cli.rows import print_aligned, write_line
from traceweir.streams.cli.score_cells import NO_THRESHOLD, reason_of, status_of, subject_of, value_of
from traceweir.streams.cli.terminal import complain, progress_bar

if TYPE_CHECKING:
    from traceweir.schemas.score import Score
    from traceweir.scorers.evaluation.plan import Plan
    from traceweir.streams.offline.score_documents import Result

_NARROW_METRIC_WIDTH = 26
"""Width of the metrics' column on a narrow terminal: the longest metric of Agent Evaluation needs two lines."""
_OTHER_COLUMNS_WIDTH = 60
"""Width that the other columns need."""
_SHADES = {"PASSED": "green", "FAILED": "red", "NOT_EVALUATED": "yellow"}
_WIDE_COLUMNS = 110
"""From this terminal width, a status with its threshold is on one line."""
_LONGEST = 10_000
"""The most characters of an escaped id: an id has at most 1,024 characters."""


class OutputFormat(StrEnum):
    """The forms in which `score` prints scores."""

    TEXT = "text"
    JSON = "json"
    MLFLOW = "mlflow"


def score_files(
    paths: Sequence[str],
    plan: Plan,
    format_name: str,
    embedder: str | None,
    task_domain: str,
    output_format: OutputFormat,
) -> int:
    """Scores the files of one input, prints the scores, and returns the exit code.

    Args:
        paths: The files; `-` is standard input.
        plan: The criteria.
        format_name: The input format of the file, by its name.
        embedder: Replaces the value of `TRACEWEIR_EMBEDDER`.
        task_domain: Domain of a transcript without a domain of its own.
        output_format: `json` and `mlflow` print only JSON on stdout, one Score or one assessment of MLflow per line.

    Raises:
        InputError: the file cannot be read.
        InvalidSettingsError: the environment cannot be used.
        EmbedderUnavailableError: the embedder cannot be loaded.
        JudgeUnavailableError: a criterion asks a judge, and the [judge] extra is missing or the verdict file cannot be
            used.
    """
    from traceweir.schemas.mlflow_feedback import feedback_of
    from traceweir.scorers.evaluation.criteria_text import criteria_text
    from traceweir.streams.clock import utc_now
    from traceweir.streams.formats.documents import name_of
    from traceweir.streams.formats.files import open_inputs, read_inputs
    from traceweir.streams.formats.registry import input_format
    from traceweir.streams.judges.offline import judging_from_file
    from traceweir.streams.offline.score_documents import score_offline
    from traceweir.streams.scoring.embedders import load_embedder
    from traceweir.streams.settings import load_settings

    settings = load_settings()
    with (
        judging_from_file(plan, settings) as judging,
        open_inputs(paths) as streams,
        progress_bar("sessions scored") as advance,
    ):
        source = name_of(streams[0])
        loaded = load_embedder(embedder or settings.embedder)
        documents = read_inputs(
            streams,
            input_format(format_name),
            task_domain=task_domain,
            max_session_bytes=settings.segment_max_bytes,
            visibility=settings.otlp_visibility,
        )
        result = asyncio.run(
            score_offline(documents, plan, loaded, settings, clock=utc_now, progress=advance, judging=judging)
        )
    if plan.is_default:
        complain(criteria_text(plan, None))
    match output_format:
        case OutputFormat.TEXT:
            _print_table(result)
        case OutputFormat.JSON:
            for score in result.scores:
                sys.stdout.write(score.wire().decode() + "\n")
        case OutputFormat.MLFLOW:
            judges = {metric.name: metric.scorer.judge_model for metric in plan.metrics if metric.scorer is not None}
            for score in result.scores:
                sys.stdout.write(json.dumps(feedback_of(score, judges.get(score.metric))) + "\n")
    for problem in result.problems:
        # A problem found by the reader already names its place.
        complain(
            problem.detail
            if problem.reason is None
            else f"{source}: document {problem.document}: {problem.reason}: {problem.detail}"
        )
    failures = [
        NO_DOCUMENT.format(source) if not result.documents else None,
        _no_judge_answered(result.scores, plan.judged),
        _missed_thresholds(result.scores),
    ]
    for failure in filter(None, failures):
        complain(failure)
    return FAILED if result.problems or any(failures) else 0


def _no_judge_answered(scores: Sequence[Score], judged: Collection[str]) -> str | None:
    """Returns a sentence for the user if a judge was asked and no judged score has a value; else None."""
    asked = [
        score for score in scores if score.metric in judged and score.not_evaluated_because not in _NO_JUDGE_NEEDED
    ]
    if not asked or any(score.not_evaluated_because is None for score in asked):
        return None
    reasons = Counter(str(score.not_evaluated_because) for score in asked)
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return (
        f"no judge gave a verdict: all {len(asked)} judged scores are NOT_EVALUATED ({why}); "
        f"the first: {printable(asked[0].rationale, 300)}"
    )


_NO_JUDGE_NEEDED = ("missing_input", "sampled_out", "unsupported")


def _missed_thresholds(scores: Sequence[Score]) -> str | None:
    """Returns a sentence that names the metrics with a score below the threshold; None if there is no such score."""
    # The gate's decision is not a measurement: its status is FAILED for every trace that must not be shared.
    missed = Counter(score.metric for score in scores if score.status == "FAILED" and score.metric != "gate")
    if not missed:
        return None
    metrics = ", ".join(f"{metric} ({count})" for metric, count in sorted(missed.items()))
    verb = "is" if missed.total() == 1 else "are"
    return f"{counted(missed.total(), 'score')} {verb} below the threshold: {metrics}"


def _print_table(result: Result) -> None:
    stdout = Console(highlight=False)
    width = _metric_width({score.metric for score in result.scores}, stdout.width)
    status_width = 13 if stdout.width < _WIDE_COLUMNS else 22
    for session_id, found in groupby(result.scores, key=lambda score: score.session_id):
        rows = [_row(score) for score in found]
        if not stdout.is_terminal:
            write_line(session_id)
            print_aligned([[str(cell) for cell in row] for row in rows])
            continue
        stdout.print(Text(printable(session_id), style="bold"))
        table = Table.grid(padding=(0, 1, 0, 0))
        table.add_column(width=12, overflow="fold")
        table.add_column(width=width, overflow="fold")
        table.add_column(width=max(5, *(len(row[2]) for row in rows)), justify="right")
        table.add_column(width=status_width)
        table.add_column(overflow="fold")
        for row in rows:
            table.add_row(row[0], Text(_folded(row[1].plain, width)), *row[2:])
        stdout.print(Padding(table, (0, 0, 0, 2)))
    if result.sessions > 1:
        stdout.print(Text("\nall sessions", style="bold"))
        print_aligned(_sums(result.scores))
    stdout.print(Text(_summary(result)), soft_wrap=True)


def _sums(scores: Sequence[Score]) -> list[Sequence[str]]:
    """Returns the mean of each metric over sessions or traces; the session's score covers its invocations."""
    by_metric: dict[str, list[Score]] = {}
    for score in scores:
        if score.level != "invocation" and score.metric != "gate":
            by_metric.setdefault(score.metric, []).append(score)
    rows: list[Sequence[str]] = []
    for metric, found in by_metric.items():
        values = [score.value for score in found if score.value is not None]
        failed = sum(score.status == "FAILED" for score in found)
        of = f"mean of {len(values)}" if values else "none"
        rows.append(
            (
                metric,
                figure(_mean(values)) if values else "",
                f"{of} of {counted(len(found), found[0].level)}" + (f", {failed} failed" if failed else ""),
            )
        )
    return rows


def _mean(values: Sequence[float]) -> float:
    try:
        return fmean(values)
    except OverflowError:  # the sum overflows, but the mean is at most the largest value
        return sum(value / len(values) for value in values)


def _row(score: Score) -> Sequence[Text]:
    texts = subject_of(score), score.metric, value_of(score)
    return (
        *(Text(printable(text, _LONGEST)) for text in texts),
        Text(status := status_of(score), "" if status == NO_THRESHOLD else _SHADES[score.status]),
        Text(printable(reason_of(score))),
    )


def _metric_width(names: Collection[str], available: int) -> int:
    """Returns the width of the metrics' column: whole names if the other columns then have enough room."""
    longest = max(map(len, names), default=0)
    if available - longest >= _OTHER_COLUMNS_WIDTH:
        return longest
    return max((len(line) for name in names for line in _folded(name, _NARROW_METRIC_WIDTH).splitlines()), default=0)


def _folded(name: str, width: int) -> str:
    """Returns a metric's name with line breaks after slashes, so that a line has at most `width` characters.

    A part between slashes that is longer than `width` stays whole.

    >>> _folded("retrieval/ground_truth/document_recall", 26).splitlines()
    ['retrieval/ground_truth/', 'document_recall']
    """
    lines = [""]
    for part in re.findall(r"[^/]*/|[^/]+", name):
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _summary(result: Result) -> str:
    statuses = Counter(status_of(score).partition(" (")[0] for score in result.scores)
    accepted = sum(score.metric == "gate" and score.status == "PASSED" for score in result.scores)
    return (
        f"\n{counted(result.documents, 'document')}, {counted(result.sessions, 'session')}, "
        f"{counted(result.duplicates, 'duplicate')}, {counted(len(result.problems), 'problem')}; "
        f"{counted(len(result.scores), 'score')}: {statuses['PASSED']} passed, {statuses['FAILED']} failed, "
        f"{statuses['NOT_EVALUATED']} not evaluated"
        + (f", {without} without a threshold" if (without := statuses[NO_THRESHOLD]) else "")
        + f"; {counted(accepted, 'trace')} accepted by the gate"
    )


def read_config(path: Path | None) -> Plan:
    """Returns the plan of a config file; without a file, a plan with the default criteria.

    Raises:
        ConfigError: the file cannot be read or used; the error lists every problem.
    """
    from traceweir.scorers.evaluation.plan import ConfigError, read_plan
    from traceweir.streams.evals.json_text import MAX_BYTES
    from traceweir.streams.formats.other_documents import CONFIG
    from traceweir.streams.formats.recognition import misplaced

    if path is None:
        return read_plan(None)
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read ({error.strerror}); name a readable JSON file"]) from None
    if len(text) > MAX_BYTES:
        raise ConfigError([f"{path}: is larger than the maximum of {MAX_BYTES // 1024**2} MiB; name a JSON file"])
    if (what := misplaced(text, CONFIG)) is not None:
        raise ConfigError([f"{path}: {what}"])
    return read_plan(text)
