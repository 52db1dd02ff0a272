"""Declares `traceweir demo`, `up`, `score` and `sessions`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.common_options import AsJson, Config
from traceweir.streams.cli.input_options import DEFAULT_FORMAT, FormatName, Inputs, TaskDomain


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Continue until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, without a live view.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the simulated agents: the same seed gives the same records.")] = 7,
    seconds: Annotated[float, typer.Option(min=1, max=1e9, help="Seconds during which the agents emit.")] = 30.0,
    agents_only: Annotated[
        bool,
        typer.Option("--agents-only", help="Run only the agents, on the Kafka that the environment names."),
    ] = False,
    story: Annotated[Path | None, typer.Option("--story", hidden=True)] = None,
) -> None:
    """Run the whole pipeline: an embedded broker, a worker, and simulated agents, for about half a minute.

    Needs only Python. Exit code 0 if every count equals what the agents sent, else 1.

    Example: `traceweir demo --seconds 10 --json`
    """
    if story is not None:
        # A part of `traceweir up --demo`.
        from traceweir.streams.cli.demo.agents import run_story
        from traceweir.streams.cli.up_broker import kafka_settings

        raise typer.Exit(run_story(kafka_settings(), story, seed=seed))
    if agents_only:
        from traceweir.streams.cli.demo.agents import run_agents
        from traceweir.streams.cli.up_broker import kafka_settings

        raise typer.Exit(run_agents(kafka_settings(), keep=keep, seed=seed, seconds=seconds))
    from traceweir.streams.cli.demo.commands import run_demo

    raise typer.Exit(run_demo(keep=keep, as_json=as_json, seed=seed, seconds=seconds))


def up(
    with_demo: Annotated[bool, typer.Option("--demo", help="Let simulated agents send records.")] = False,
    config: Config = None,
    eval_set: Annotated[
        str | None,
        typer.Option(
            "--eval-set",
            metavar="FILE",
            help="Compare sessions with the cases of this eval set, as `traceweir references push` does.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run everything on this machine until Ctrl-C: broker, worker, OTLP endpoint, and the dashboard with its page.

    Prints the address of the page, the two variables that point an agent at it, and the address of Kafka. With
    TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS the parts use that Kafka; otherwise an embedded broker, which keeps nothing on disk, and
    which other commands find. A default port that is taken is replaced by a free one. With `--eval-set` and without
    `--config`, the criteria are those of `traceweir eval`. Exit code 1: a part cannot start, or has ended. 2: the config, the
    eval set or the environment cannot be used.

    Example: `traceweir up --config examples/live.json`
    """
    from traceweir.streams.cli.up.commands import run_up

    run_up(demo=with_demo, config=config, eval_set=eval_set, as_json=as_json)


def score(
    files: Inputs,
    config: Config = None,
    format: FormatName = DEFAULT_FORMAT,  # noqa: A002
    embedder: Annotated[
        str | None,
        typer.Option(help="`none`, `hashing`, `auto`, or a model's name or folder. [default: TRACEWEIR_EMBEDDER]"),
    ] = None,
    task_domain: TaskDomain = "general",
    output_format: Annotated[
        str | None,
        typer.Option(
            metavar="<text|json|mlflow>",
            help="`text`: a table. `json`: one Score per line, in input order. `mlflow`: one assessment of MLflow 3 "
            "per line. [default: text]",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as `--output-format json`.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=256,
            metavar="N",
            help="Number of processes that score. One where criteria ask a judge or an embedding model is used. "
            "[default: one per core for 10,000 documents and more, else 1]",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write all scores to this file too, by its suffix: `.parquet`, `.csv` or `.jsonl`.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Score a file on this machine, without Kafka, as a worker would.

    Without `--config`, the default criteria are on; stderr names them.

    Exit code 0: every document was scored and every threshold was met. 1: a threshold was missed, or a document was
    unusable (stderr names the document and the reason). 2: the file, config, options or environment cannot be used.
    A decision of the gate never misses a threshold, and without `--config` neither does a trace value.

    Example: `traceweir score traces.jsonl --config eval.json --json | jq .value`
    """
    from traceweir.streams.cli.score.commands import ScoreOptions, read_config, score_files
    from traceweir.streams.cli.score.output import OutputFormat

    names = [each.value for each in OutputFormat]
    chosen = output_format or ("json" if as_json else "text")
    if chosen not in names:
        raise typer.BadParameter(
            f"{chosen!r:.80} is not an output format; choose from {', '.join(names)}", param_hint="--output-format"
        )
    if as_json and chosen != "json":
        raise typer.BadParameter(f"--json and --output-format {chosen} exclude each other; remove one of them")
    if out is not None and out.suffix not in (".parquet", ".csv", ".jsonl"):
        raise typer.BadParameter(
            f"{str(out)!r:.200}: the name must end in .parquet, .csv or .jsonl", param_hint="--out"
        )
    plan = read_config(config)
    options = ScoreOptions(format, embedder, task_domain, OutputFormat(chosen), jobs, out)
    raise typer.Exit(score_files(files, plan, options))


def sessions(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Files as for `score`; several files are one input. `-` reads standard input.",
            show_default=False,
        ),
    ] = None,
    format: FormatName = DEFAULT_FORMAT,  # noqa: A002
    task_domain: TaskDomain = "general",
    from_kafka: Annotated[
        bool, typer.Option("--from-kafka", help="Read a session from the sessions topic; needs --session.")
    ] = False,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only this session.", show_default=False)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one Session per line, as JSON on the topic, for programs.")
    ] = False,
) -> None:
    """Print sessions as Traceweir understands them: questions, tool calls, answers, tokens, and what is missing.

    Look here first when a score surprises. Exit code 1: a document was unusable, or the session does not exist. 2: a
    file, an option or the environment cannot be used.

    Example: `traceweir sessions chats.json --format openai-chat`
    """
    if from_kafka == bool(files):
        raise typer.BadParameter("name files, or --from-kafka with --session ID, but not both")
    if from_kafka and session is None:
        raise typer.BadParameter("--from-kafka needs --session ID", param_hint="--session")
    from traceweir.streams.cli.sessions.commands import show_files, show_recorded

    if from_kafka:
        raise typer.Exit(show_recorded(session or "", as_json=as_json))
    raise typer.Exit(show_files(files or [], format, task_domain, session, as_json=as_json))
