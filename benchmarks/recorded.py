"""Tabulates the criteria that ask no model on recorded sessions, and how well each predicts the recorded reward.

    python -m benchmarks.recorded FILE [--embedder NAME]

FILE contains chat transcripts (`traj` or `messages`) with `reward`, `task_id`, and under `info.task` the expected
`actions` and `outputs`, as tau-bench writes them. The tables are Markdown; `benchmarks.result_tables` keeps them.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from benchmarks.auc import auc, interval
from benchmarks.labelled import Labelled, read_labelled
from benchmarks.recorded_rates import HEAD as RATES_HEAD
from benchmarks.recorded_rates import Verdicts, rate_line
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.settings import load_settings
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.scoring.embedders.loading import EmbedderUnavailableError, load_embedder
from traceweir.streams.tools.offline.score_documents import score_offline

VARIABLE = "TRACEWEIR_RECORDED_SESSIONS"
TRAJECTORY: dict[str, tuple[dict[str, JsonValue], ...]] = {
    "tool_trajectory_avg_score": ({"match_type": "EXACT"}, {"match_type": "IN_ORDER"}, {"match_type": "ANY_ORDER"}),
    "trajectory_exact_match": ({},),
    "trajectory_in_order_match": ({},),
    "trajectory_any_order_match": ({},),
    "trajectory_precision": ({},),
    "trajectory_recall": ({},),
}
CHECKS: tuple[tuple[str, dict[str, JsonValue]], ...] = (
    ("no_tool_errors", {}),
    ("tool_error_rate", {}),
    ("retries_after_error", {}),
    ("repeated_calls", {}),
    ("repeated_calls", {"within": "invocation"}),
    ("max_tool_calls", {}),
    ("max_tool_calls", {"of_session": True}),
    ("handoffs", {"of_session": True}),
    ("answered", {}),
)
VERDICTS: tuple[tuple[str, dict[str, JsonValue], bool, float], ...] = (
    ("trajectory_exact_match", {}, False, 1.0),
    ("trajectory_in_order_match", {}, False, 1.0),
    ("trajectory_any_order_match", {}, False, 1.0),
    ("trajectory_recall", {}, False, 0.5),
    ("trajectory_precision", {}, False, 0.5),
    ("no_tool_errors", {}, True, 1.0),
    ("repeated_calls", {"within": "invocation"}, True, 1.0),
    ("answered", {}, True, 0.8),
)
"""Metrics as verdicts: name, options, whether each question is an invocation, and the threshold."""
DIMENSIONS = ("complexity", "novelty", "tool_diversity", "outcome_confidence")
HEAD = """| metric | sessions | not evaluated | mean | lower quartile | median | upper quartile | AUC | 95 % interval |
|---|---|---|---|---|---|---|---|---|"""


@dataclass
class Row:
    """The values of a metric by session, and the reasons for missing values."""

    metric: str
    part: str = ""
    """The options that distinguish this row from other rows of the metric, or the metric's dimension in this row."""
    values: dict[str, float] = field(default_factory=dict)
    """The values by session id."""
    missing: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """Returns metric and part, in Markdown."""
        name = f"`{_plain(self.metric)}`"
        return f"{name}, `{_plain(self.part)}`" if self.part else name


def run() -> None:
    """Prints the tables of the file that the environment names, or the reason why there are none."""
    if name := os.environ.get(VARIABLE):
        sys.stdout.write(tables(Path(name)))
    else:
        print(f"recorded: skipped; set {VARIABLE} to a JSON file of recorded sessions")


def tables(path: Path, embedder: str = "hashing") -> str:
    """Returns the tables of a file, as Markdown.

    Args:
        path: The file.
        embedder: The embedder for novelty, as in `TRACEWEIR_EMBEDDER`.

    Raises:
        InputError: the file cannot be read.
        InvalidSettingsError: the environment cannot be used.
        EmbedderUnavailableError: the embedder cannot be loaded.
    """
    sessions, records = read_labelled(path)
    labelled = [each.succeeded for each in sessions if each.succeeded is not None]
    sections = {
        "Tool calls against the expected ones": [
            *_trajectories(sessions, {}),
            *_trajectories(sessions, {"ignore_args": True}),
        ],
        "The last answer against the expected outputs": [scored(sessions, "response_match_score", {})],
        "Whether one tool was used": [
            scored(sessions, "trajectory_single_tool_use", {"tool_name": tool}) for tool in _tools(sessions)
        ],
        "Checks without a judge": [scored(sessions, metric, options, by_question=True) for metric, options in CHECKS],
        f"Trace value, embedder `{_plain(embedder)}`": _trace_values(records, embedder),
    }
    tasks, successes = len({each.task for each in sessions}), sum(labelled)
    counts = f"{successes} with reward 1, {len(labelled) - successes} with another, {len(sessions) - len(labelled)} without one"
    lines = [
        f"SHA-256 of the file: `{hashlib.sha256(path.read_bytes()).hexdigest()}`.",
        f"{len(sessions)} sessions of {tasks} tasks; {counts}.",
    ]
    for title, rows in sections.items():
        lines += ["", f"### {title}", "", HEAD, *(line(row, sessions) for row in rows)]
    lines += ["", "### Pass rates, corrected by rewards", "", RATES_HEAD]
    for metric, options, by_question, threshold in VERDICTS:
        row = scored(sessions, metric, options, by_question=by_question)
        lines.append(rate_line(Verdicts(str(row), threshold, row.values), sessions))
    return "\n".join(lines) + "\n"


def line(row: Row, sessions: Sequence[Labelled]) -> str:
    """Returns a row of a table, in Markdown."""
    missing = ", ".join(f"{count} `{reason}`" for reason, count in sorted(row.missing.items())) or "0"
    cells = [str(row), str(len(row.values)), missing]
    if not row.values:
        return f"| {' | '.join([*cells, *['undefined'] * 6])} |"
    values = list(row.values.values())
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    cells += [f"{number:.3f}" for number in (statistics.fmean(values), *quartiles)]

    known = [each for each in sessions if each.succeeded is not None and each.session_id in row.values]
    numbers = [row.values[each.session_id] for each in known]
    labels = [bool(each.succeeded) for each in known]
    area = auc(numbers, labels)
    ends = interval(numbers, labels, [each.task for each in known])
    cells.append("undefined" if area is None else f"{area:.3f}")
    if len(set(numbers)) == 1:
        cells.append("all equal")  # every draw would result in 0.5, and the narrow interval would look certain
    else:
        cells.append("undefined" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}")
    return f"| {' | '.join(cells)} |"


def _trajectories(sessions: Sequence[Labelled], more: dict[str, JsonValue]) -> list[Row]:
    return [scored(sessions, metric, {**each, **more}) for metric, variants in TRAJECTORY.items() for each in variants]


def scored(
    sessions: Sequence[Labelled], metric: str, options: dict[str, JsonValue], *, by_question: bool = False
) -> Row:
    """Returns the row of a criterion on every session, computed by the code that workers run.

    Args:
        sessions: The sessions.
        metric: Name of the criterion.
        options: Its options.
        by_question: Whether each question of a session is an invocation, and not the whole session.
    """
    plan = read_plan({"criteria": {metric: {"threshold": 0.5, **options}}})
    row = Row(metric, ", ".join(name if value is True else str(value) for name, value in options.items()))

    async def score() -> None:
        for each in sessions:
            turns = each.turns if by_question else [each.turn]
            found = await evaluate(plan, each.session, turns, now=utc_now, timeout_s=60)
            [total] = [score for score in found if score.level == "session"]
            if total.value is None:
                row.missing[str(total.not_evaluated_because)] += 1
            else:
                row.values[each.session_id] = total.value

    asyncio.run(score())
    return row


def _tools(sessions: Iterable[Labelled]) -> list[str]:
    """Returns the names of all used tools."""
    return sorted({call.name for each in sessions for call in each.turn.invocation.tool_uses if call.name})


def _trace_values(records: Sequence[DocumentRecords], embedder: str) -> list[Row]:
    found = asyncio.run(
        score_offline(
            records,
            read_plan({}),
            load_embedder(embedder),
            load_settings(),
            clock=utc_now,
            progress=lambda done, of: None,
        )
    )
    whole, parts = Row("trace_value"), [Row("trace_value", name) for name in DIMENSIONS]
    for score in found.scores:
        if score.metric != "trace_value":
            continue
        if score.value is None:
            for row in (whole, *parts):
                row.missing[str(score.not_evaluated_because)] += 1
            continue
        whole.values[score.session_id] = score.value
        for row in parts:
            value, unknown = score.details.get(row.part), score.details.get("novelty_missing")
            if row.part == "novelty" and unknown is not None:
                row.missing[str(unknown)] += 1  # novelty counts as 0.5 without being measured
            elif isinstance(value, int | float):
                row.values[score.session_id] = value
    return [whole, *parts]


def _plain(text: str) -> str:
    """Returns a name from a file, made safe for a Markdown table."""
    return printable(text, 80).replace("`", "'").replace("|", "/")


def main(arguments: Sequence[str]) -> None:
    """Prints the tables of the file that the command line names; exit code 2 if the file cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorded", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="recorded sessions with their rewards and expected actions")
    parser.add_argument("--embedder", default="hashing", help="embedder for novelty (default: hashing)")
    given = parser.parse_args(arguments)
    try:
        sys.stdout.write(tables(given.file, given.embedder))
    except (InputError, InvalidSettingsError, EmbedderUnavailableError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
