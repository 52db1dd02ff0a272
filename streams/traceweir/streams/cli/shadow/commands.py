"""`traceweir shadow`: scores past sessions with another config. This module reads the options; `run` works."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_TIME = "A time (2026-01-31T10:00Z) or a duration before now (-7d)."


def shadow(
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the shadow: a-z, A-Z, 0-9, '-' and '_'.")],
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Evaluation config; a new shadow needs it."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help=f"Only sessions written since then. {_TIME} [default: all]"),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help=f"Only sessions written before. {_TIME} [default: now]")
    ] = None,
    app: Annotated[str | None, typer.Option(metavar="APP", help="Only sessions of this app.")] = None,
    sample: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of the sessions, chosen by their ids, such as 0.1. [default: 1]"),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Most that judges can cost in all, such as 5usd. [default: no limit]"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing, whatever the estimate is.")] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print the estimate, and create nothing.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop all processes of the shadow; it can be resumed.")] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help="Stop the shadow, and remove its scores, its topics and its group.")
    ] = False,
) -> None:
    """Score past sessions again with another config, beside the live workers, into `results.shadow.NAME`.

    Nothing else is written: no live result, no record of `network`, no dead letter. The same command resumes a shadow; run
    it several times, each with its own TRACEWEIR_STATE_DIR, to share the work. Compare with `traceweir diff`.

    Exit code 0: the whole range is scored, or --stop or --drop has done its work. 1: Kafka, a topic or the range is
    unsuitable, nobody agreed to the cost, or the process was stopped. 2: options, config or environment cannot be used.
    130: ended by Ctrl-C or SIGTERM.

    Example: `traceweir shadow --name v2 --config v2.json --from -7d --budget 5usd`
    """
    from traceweir.streams.base.topics import Topics
    from traceweir.streams.lab.shadow.definition import ShadowOptions, read_sample, read_usd
    from traceweir.streams.lab.shadow.errors import ShadowOptionError

    try:
        Topics.of().shadow_results(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--name") from None
    given = [
        option
        for option, value in (
            ("--config", config), ("--from", since), ("--to", until), ("--app", app), ("--sample", sample),
            ("--budget", budget), ("--yes", yes or None), ("--estimate", estimate or None),
        )
        if value is not None
    ]  # fmt: skip
    if stop or drop:
        if (stop and drop) or given:
            others = ", ".join([*(["--drop"] if stop and drop else []), *given])
            raise typer.BadParameter(f"excludes {others}", param_hint="--stop" if stop else "--drop")
        from traceweir.streams.cli.shadow.run import drop_shadow, stop_shadow

        raise typer.Exit(stop_shadow(name) if stop else drop_shadow(name))
    times = _time(since, "--from"), _time(until, "--to")
    if times[0] is not None and times[1] is not None and times[0] >= times[1]:
        raise typer.BadParameter("the range is empty: --from must be earlier than --to", param_hint="--from")
    try:
        share = None if sample is None else read_sample(sample)
    except ShadowOptionError as error:
        raise typer.BadParameter(str(error), param_hint="--sample") from None
    try:
        usd = None if budget is None else read_usd(budget)
    except ShadowOptionError as error:
        raise typer.BadParameter(str(error), param_hint="--budget") from None
    from traceweir.streams.cli.shadow.run import run

    wanted = ShadowOptions(name=name, since=since, until=until, app=app, sample=share, budget_usd=usd)
    raise typer.Exit(run(wanted, config, times, yes=yes, only_estimate=estimate))


def _time(text: str | None, option: str) -> int | None:
    from traceweir.streams.cli.times import time_option

    return time_option(None if text is None else text.removeprefix("-"), option)
