"""`traceweir diff`: compares two sets of scores. This module reads the options; `run` does the work."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from traceweir.streams.cli.record_options import Metrics, Where, repeated, where_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceweir.streams.lab.comparison.bounds import Bound
    from traceweir.streams.lab.comparison.document import BoundKind
    from traceweir.streams.lab.comparison_sides import ScoreSelection, ScoreSource

BOUNDS_ON = ("mean", "interval")
_BOUND_METAVAR = "METRIC=LIMIT"


def diff(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="A file of scores, `-`, `results` (the topic) or `results.shadow.NAME`; after it optionally "
            "`?since=7d&until=3d&agent_version=1`.",
            show_default=False,
        ),
    ],
    challenger: Annotated[
        str, typer.Argument(metavar="CHALLENGER", help="What is compared with BASE.", show_default=False)
    ],
    metric: Metrics = None,
    level: Annotated[
        list[str] | None,
        repeated("--level", "<invocation|trace|session>", "Only scores of this level."),
    ] = None,
    where: Where = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_BOUND_METAVAR, help="The mean of a metric must not drop by more than this. Can be repeated."
        ),
    ] = None,
    max_rise: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_BOUND_METAVAR,
            help="The mean of a metric, such as a latency, must not rise by more than this. Can be repeated.",
        ),
    ] = None,
    max_flips: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_BOUND_METAVAR,
            help="No more than this number of pairs may flip from PASSED to FAILED. Can be repeated.",
        ),
    ] = None,
    bound_on: Annotated[
        str,
        typer.Option(
            metavar="<mean|interval>",
            help="What --max-drop and --max-rise compare: the difference of the `mean`s, or the worse end of its 95 % "
            "`interval`.",
        ),
    ] = "mean",
    flips: Annotated[int, typer.Option(min=0, metavar="N", help="Number of flips shown for each metric.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
) -> None:
    """Compare two sets of scores: differences with 95 % intervals, flips of verdicts, gate decisions, and cost.

    Results of the same subject are compared as pairs; metrics without pairs as two samples. Needs the `diff` extra. Exit
    code 0: compared, and every bound is kept. 1: a bound is broken or cannot be checked, a document of a file is unusable,
    the sides have no metric in common, or Kafka or a topic cannot be read. 2: a file or an option cannot be used.

    Example: `traceweir diff before.jsonl after.jsonl --max-drop tool_trajectory_avg_score=0.02`
    """
    if as_json and markdown:
        raise typer.BadParameter("--json and --markdown exclude each other; remove one of them")
    if bound_on not in BOUNDS_ON:
        raise typer.BadParameter(f"{bound_on!r:.80}: choose from {', '.join(BOUNDS_ON)}", param_hint="--bound-on")
    dimensions = where_option(where)
    from traceweir.scorers.databricks_names import full_name
    from traceweir.streams.cli.diff.run import Form, run_diff
    from traceweir.streams.cli.diff.sources import wanted_levels
    from traceweir.streams.lab.comparison_sides import ScoreSelection

    try:
        levels = wanted_levels(level or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--level") from None
    options = ScoreSelection(frozenset(map(full_name, metric or ())), dimensions, levels)

    bounds = [
        *_bounds("max_drop", max_drop),
        *_bounds("max_rise", max_rise),
        *_bounds("max_flips", max_flips),
    ]
    sides = _source(base, "BASE", options), _source(challenger, "CHALLENGER", options)
    if all(side.path == "-" for side in sides):
        raise typer.BadParameter("standard input can be one side only; write the other side to a file")
    code = run_diff(
        *sides,
        bounds,
        on="interval" if bound_on == "interval" else "mean",
        flips=flips,
        form=Form.JSON if as_json else Form.MARKDOWN if markdown else Form.TEXT,
    )
    raise typer.Exit(code)


def _source(text: str, hint: str, options: ScoreSelection) -> ScoreSource:
    """Returns what a side names, with the selection of the options beside its own.

    Raises:
        typer.BadParameter: the text cannot be read.
    """
    from traceweir.streams.base.clock import utc_now
    from traceweir.streams.cli.diff.sources import read_source

    try:
        return read_source(text, utc_now(), options)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r:.200}: {error}", param_hint=hint) from None


def _bounds(kind: BoundKind, given: Sequence[str] | None) -> list[Bound]:
    """Returns the bounds of one option.

    Raises:
        typer.BadParameter: a text is not `METRIC=LIMIT`.
    """
    from traceweir.streams.lab.comparison.bounds import Bound

    bounds: list[Bound] = []
    for each in given or ():
        metric, _, text = each.rpartition("=")
        try:
            limit = float(text)
        except ValueError:
            limit = math.nan
        if not (metric and 0 <= limit < math.inf) or (kind == "max_flips" and limit != int(limit)):
            what = "a whole number" if kind == "max_flips" else "a number"
            raise typer.BadParameter(
                f"{each!r:.200}: write {_BOUND_METAVAR}, where LIMIT is {what} of at least 0, for example "
                f"completeness={5 if kind == 'max_flips' else 0.02}",
                param_hint="--" + kind.replace("_", "-"),
            )
        bounds.append(Bound(kind, metric, limit))
    return bounds
