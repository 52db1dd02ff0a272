"""The command line `traceweir`. A command imports its modules when it runs, so that `--help` starts quickly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from traceweir.streams.base.topics import ALL_STAGES, STAGES, StageName
from traceweir.streams.cli.command_app import CommandApp, Panel
from traceweir.streams.cli.config.commands import config_app
from traceweir.streams.cli.diff.commands import diff
from traceweir.streams.cli.dlq.commands import dlq_app
from traceweir.streams.cli.embedder import embedder_app
from traceweir.streams.cli.errors import FAILED, exit_code
from traceweir.streams.cli.evalset import evalset_app, migrate
from traceweir.streams.cli.export.commands import export_app
from traceweir.streams.cli.input_options import (
    DEFAULT_FORMAT,
    FormatName,
    InputCommand,
    Inputs,
    TaskDomain,
    check_format,
)
from traceweir.streams.cli.judge import judge_app
from traceweir.streams.cli.results.commands import results_app
from traceweir.streams.cli.shadow.commands import shadow
from traceweir.streams.cli.standard_streams import discard_stdout, is_stdout_error, open_missing_streams
from traceweir.streams.cli.terminal import complain

app = CommandApp(
    help="Traceweir scores what AI agents do in production, while they do it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)
topics_app = CommandApp(help="Create and check the topics on a cluster.", no_args_is_help=True)
app.add_typer(topics_app, name="topics", rich_help_panel=Panel.KAFKA)
app.add_typer(config_app, name="config", rich_help_panel=Panel.CONFIGS)
app.add_typer(dlq_app, name="dlq", rich_help_panel=Panel.WATCH)
app.add_typer(embedder_app, name="embedder", rich_help_panel=Panel.CONFIGS)
app.add_typer(judge_app, name="judge", rich_help_panel=Panel.CONFIGS)
app.add_typer(evalset_app, name="evalset", rich_help_panel=Panel.EVAL_SETS)
app.add_typer(results_app, name="results", rich_help_panel=Panel.FIRST_STEPS)
app.add_typer(export_app, name="export", rich_help_panel=Panel.KAFKA)
app.command(rich_help_panel=Panel.EVAL_SETS)(migrate)
app.command(rich_help_panel=Panel.CONFIGS)(diff)
app.command(rich_help_panel=Panel.CONFIGS)(shadow)

Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Evaluation config, such as ADK's test_config.json.")
]
Stages = Annotated[str, typer.Option(help="Stages that this process runs, separated by commas.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
DEFAULT_STAGES = ",".join(STAGES)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and exits the process with its exit code."""
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    open_missing_streams()
    try:
        try:
            result = app(arguments, standalone_mode=True)
        finally:
            sys.stdout.flush()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else FAILED
    except BrokenPipeError:
        # The reader, for example `| head`, has closed the pipe.
        discard_stdout()
        return FAILED
    except OSError as error:
        if is_stdout_error(error):
            discard_stdout()
            complain(f"standard output: cannot be written ({error.strerror}). Redirect the output to another place.")
        else:
            complain(f"the operating system refused an operation: {error}")
        return FAILED
    except MemoryError:
        complain("the memory of this process is not sufficient. Split the input into smaller files.")
        return FAILED
    except Exception as error:
        code = exit_code(error)
        if code is None:
            raise
        complain(str(error))
        return code
    return result or 0


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"traceweir {version('traceweir')}\n")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Reads the options that precede the command."""


@app.command(rich_help_panel=Panel.FIRST_STEPS)
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Continue until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, without a live view.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the simulated agents: the same seed gives the same records.")] = 7,
    seconds: Annotated[float, typer.Option(min=1, max=1e9, help="Seconds during which the agents emit.")] = 30.0,
    agents_only: Annotated[
        bool,
        typer.Option("--agents-only", help="Run only the agents, on the Kafka that the environment names."),
    ] = False,
) -> None:
    """Run the whole pipeline: an embedded broker, a worker, and simulated agents, for about half a minute.

    Needs only Python. Exit code 0 if every count equals what the agents sent, else 1.

    Example: `traceweir demo --seconds 10 --json`
    """
    if agents_only:
        from traceweir.streams.cli.demo.agents_only import run_agents
        from traceweir.streams.cli.up_broker import kafka_settings

        raise typer.Exit(run_agents(kafka_settings(), keep=keep, seed=seed, seconds=seconds))
    from traceweir.streams.cli.demo.commands import run_demo

    raise typer.Exit(run_demo(keep=keep, as_json=as_json, seed=seed, seconds=seconds))


@app.command(rich_help_panel=Panel.FIRST_STEPS)
def up(
    with_demo: Annotated[bool, typer.Option("--demo", help="Let simulated agents send records.")] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Run everything on this machine until Ctrl-C: broker, worker, OTLP endpoint, and the dashboard with its page.

    Prints the address of the page, the two variables that point an agent at it, and the address of Kafka. With
    TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS the parts use that Kafka; otherwise an embedded broker, which keeps nothing on disk, and
    which other commands find. A default port that is taken is replaced by a free one. Exit code 1: a part cannot start, or
    has ended. 2: the config or the environment cannot be used.

    Example: `traceweir up --demo`
    """
    from traceweir.streams.cli.up.commands import run_up

    run_up(demo=with_demo, config=config, as_json=as_json)


@app.command(rich_help_panel=Panel.WATCH)
def doctor(
    stages: Stages = DEFAULT_STAGES,
    config: Config = None,
    minutes: Annotated[
        float, typer.Option(min=0.1, max=10_080, help="How far back the inputs are read, in minutes.")
    ] = 10.0,
    ask: Annotated[
        bool, typer.Option("--ask", help="Also ask each judge of the config one small question, which is paid.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what a worker needs: Kafka and its topics, rights, disk, models and keys; and what agents have sent lately.

    Changes nothing, asks no model without `--ask`, and shows no key. Says per producer which records cannot be read, which traces name no
    session, and which setting turns missing content on. Exit code 1: a check has failed. 2: the config or the environment
    cannot be used.

    Example: `traceweir doctor --config eval.json --stages collect,assemble,score,gate`
    """
    from traceweir.streams.cli.doctor import run_doctor

    run_doctor(_stages(stages), config, minutes, as_json=as_json, ask=ask)


@app.command(rich_help_panel=Panel.KAFKA)
def worker(stages: Stages = DEFAULT_STAGES, config: Config = None) -> None:
    """Assemble, score and gate incoming records until SIGTERM or Ctrl-C.

    The worker logs its criteria at start; without `--config`, the default criteria are on. The environment
    (`TRACEWEIR_*`) sets the address of Kafka and every limit. Exit code 1: Kafka or a topic is unsuitable, or the
    worker failed. 2: options, config or environment cannot be used.

    Example: `TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS=kafka:9092 traceweir worker --stages assemble,score --config eval.json`
    """
    from traceweir.streams.cli.worker import run

    raise typer.Exit(run(_stages(stages), config))


@app.command(rich_help_panel=Panel.KAFKA)
def otlp(as_json: AsJson = False) -> None:
    """Receive OpenTelemetry spans and log records over OTLP, and write them to Kafka, until SIGTERM or Ctrl-C.

    For agents without an OpenTelemetry Collector. A request is acknowledged when Kafka has acknowledged it. The
    environment (`TRACEWEIR_OTLP_*`) sets addresses, token and limits. Exit code 1: Kafka, a topic or a port is unsuitable.
    2: the environment cannot be used.

    Example: `traceweir otlp`; then start agents with `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318`
    """
    from traceweir.streams.cli.otlp import run_otlp

    run_otlp(as_json=as_json)


@app.command(rich_help_panel=Panel.KAFKA)
def dashboard(as_json: AsJson = False) -> None:
    """Store scores, sessions and dead letters in a database, and serve them as web pages and JSON, until Ctrl-C.

    The database is a DuckDB file, or ClickHouse (`TRACEWEIR_STORE`). Each record is stored exactly once, through any restart. The
    environment (`TRACEWEIR_DASHBOARD_*`) sets address and token. Exit code 1: the store or the port cannot be used. 2: the
    environment cannot be used.

    Example: `traceweir dashboard`; then open http://127.0.0.1:4180
    """
    from traceweir.streams.cli.dashboard import run

    run(as_json=as_json)


@app.command(rich_help_panel=Panel.KAFKA)
def broker(as_json: AsJson = False) -> None:
    """Run the embedded broker with all topics until Ctrl-C; for trials only, because it stores nothing on disk.

    The broker keeps its records in memory, about 5 MB per partition, then drops the oldest; it has no transactions.

    Example: `traceweir broker`; in a second terminal run the `export` line that it prints, then `traceweir worker`
    """
    from traceweir.streams.cli.broker import run_broker

    run_broker(as_json=as_json)


@app.command(rich_help_panel=Panel.WATCH)
def canary(
    once: Annotated[bool, typer.Option("--once", help="Send one session, and end.")] = False,
    interval: Annotated[
        float, typer.Option(min=1, max=86_400, metavar="SECONDS", help="Seconds between two sessions.")
    ] = 60,
    timeout: Annotated[
        float, typer.Option(min=1, max=3_600, metavar="SECONDS", help="Seconds from sending a session to its decision.")
    ] = 60,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Serve /metrics on this port.", show_default="nothing is served"),
    ] = None,
) -> None:
    """Send a known session again and again, and wait for its decision: an alarm for every silent stall.

    Its app is `traceweir-canary`, and its trace is private: it never reaches `network`. Exit code 1: with --once, there
    was no decision in time; or the port is taken. 2: the environment cannot be used.

    Example: `traceweir canary --once --timeout 30`
    """
    from traceweir.streams.cli.canary import run

    raise typer.Exit(run(once=once, interval_s=interval, timeout_s=timeout, port=port))


@app.command(cls=InputCommand, rich_help_panel=Panel.KAFKA)
def emit(files: Inputs, format: FormatName = DEFAULT_FORMAT, task_domain: TaskDomain = "general") -> None:  # noqa: A002
    """Send recorded traces, events, evaluation rows, MLflow traces or chat transcripts to Kafka, as agents would have sent them.

    A file can be sent twice: workers drop duplicates. Exit code 1: a document was not sent (stderr names the document
    and the reason), or Kafka did not accept it. 2: the file, options or environment cannot be used.

    Example: `traceweir emit chats.json --format openai-chat --task-domain travel`
    """
    from traceweir.streams.cli.emit import emit_files

    raise typer.Exit(emit_files(files, format, task_domain))


@app.command(cls=InputCommand, rich_help_panel=Panel.FIRST_STEPS)
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
    A decision of the gate never misses a threshold.

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


@app.command(cls=InputCommand, rich_help_panel=Panel.FIRST_STEPS)
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


@app.command("eval", rich_help_panel=Panel.EVAL_SETS)
def evaluate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="EVALSET...",
            help="Eval sets or test files, `FILE:case1,case2` for selected cases, or folders of `*.test.json`.",
            show_default=False,
        ),
    ],
    sessions: Annotated[
        list[str] | None,
        typer.Option(
            "--sessions",
            metavar="FILE",
            help="Recorded sessions, by eval id; each further file is a further run. "
            "[default: `<name>.sessions.json` beside each file]",
            show_default=False,
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            callback=check_format,
            help="Input format of the files of `--sessions`; spans need `otlp`, and then all files are one run. "
            "[default: recognized]",
            show_default=False,
        ),
    ] = None,
    from_kafka: Annotated[
        bool, typer.Option("--from-kafka", help="Read the sessions from the sessions topic, by session id.")
    ] = False,
    match: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CASE=SESSION",
            help="Eval id of a case, and the session id under which it was recorded. Can be repeated.",
        ),
    ] = None,
    config: Config = None,
    num_runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of recorded runs that each case needs; their values are pooled. [default: all]",
            show_default=False,
        ),
    ] = None,
    print_detailed_results: Annotated[
        bool,
        typer.Option("--print-detailed-results", help="Print the expected and the actual invocations."),
    ] = False,
    print_detailed_results_as_adk: Annotated[bool, typer.Option("--print_detailed_results", hidden=True)] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the results as JUnit XML.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one case per line, as JSON.")] = False,
) -> None:
    """Score recorded sessions against eval sets, as `adk eval` does, but without running the agent.

    Without `--config`, the criteria come from `test_config.json`, found as ADK finds it, else from ADK's defaults;
    stderr names the source. Exit code 0: every case is PASSED. 1: a threshold was missed, a case could not be scored, a
    judged criterion has no verdict in any case, or there is no case. 2: a file, config or option cannot be used.

    Example: `traceweir eval trips.evalset.json:rebooking --sessions recorded.jsonl --print-detailed-results`
    """
    from traceweir.streams.cli.eval import eval_files, parsed_matches

    if sessions and from_kafka:
        raise typer.BadParameter(
            "--sessions and --from-kafka exclude each other; remove one of them", param_hint="--from-kafka"
        )
    if format is not None and not sessions:
        raise typer.BadParameter("needs --sessions", param_hint="--format")
    try:
        matches = parsed_matches(match or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--match") from None
    if matches and not (sessions or from_kafka):
        raise typer.BadParameter("needs --sessions or --from-kafka", param_hint="--match")
    result = eval_files(
        files,
        sessions=sessions or (),
        from_kafka=from_kafka,
        format_name=format,
        matches=matches,
        config=config,
        junit=junit,
        num_runs=num_runs,
        # `adk eval` spells it with underscores.
        detailed=print_detailed_results or print_detailed_results_as_adk,
        as_json=as_json,
    )
    raise typer.Exit(result)


@topics_app.command()
def create(stages: Stages = DEFAULT_STAGES, as_json: AsJson = False) -> None:
    """Create missing topics with the right partition count and options; existing topics stay unchanged.

    Exit code 1: an existing topic is misconfigured, or a topic could not be created.

    Example: `TRACEWEIR_PARTITIONS=12 TRACEWEIR_REPLICATION_FACTOR=3 traceweir topics create`
    """
    from traceweir.streams.cli.topics import create_and_report

    raise typer.Exit(create_and_report(_stages(stages), as_json=as_json))


@topics_app.command()
def check(stages: Stages = DEFAULT_STAGES, as_json: AsJson = False) -> None:
    """Report topics that are missing or misconfigured, or do not fit the stored offsets, and what to do.

    Exit code 1: no worker can start. These are warnings: weak replication, short retention, and an input that a worker
    will not continue at its stored offset.

    Example: `traceweir topics check --stages score`
    """
    from traceweir.streams.cli.topics import check_and_report

    raise typer.Exit(check_and_report(_stages(stages), as_json=as_json))


def _stages(text: str) -> list[StageName]:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in ALL_STAGES]
    if unknown:
        raise typer.BadParameter(
            f"{', '.join(map(repr, unknown))} is not a stage; choose from {', '.join(ALL_STAGES)}",
            param_hint="--stages",
        )
    return [stage for stage in ALL_STAGES if stage in names]


if __name__ == "__main__":
    main()
