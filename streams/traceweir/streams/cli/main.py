"""The command line `traceweir`. A command imports its modules when it runs, so that `--help` starts quickly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from traceweir.streams.cli.alerts import alerts_app
from traceweir.streams.cli.anchors.commands import anchors_app
from traceweir.streams.cli.command_app import CommandApp, Panel
from traceweir.streams.cli.config.commands import config_app
from traceweir.streams.cli.declared.eval_sets import evaluate
from traceweir.streams.cli.declared.first_steps import demo, score, sessions, up
from traceweir.streams.cli.declared.kafka import broker, dashboard, emit, otlp, size, topics_app, worker
from traceweir.streams.cli.declared.watch import canary, doctor
from traceweir.streams.cli.diff.commands import diff
from traceweir.streams.cli.dlq.commands import dlq_app
from traceweir.streams.cli.embedder import embedder_app
from traceweir.streams.cli.errors import FAILED, exit_code
from traceweir.streams.cli.evalset import evalset_app, migrate
from traceweir.streams.cli.export.commands import export_app
from traceweir.streams.cli.input_options import InputCommand
from traceweir.streams.cli.judge import judge_app
from traceweir.streams.cli.label.commands import label_app
from traceweir.streams.cli.references import references_app
from traceweir.streams.cli.results.commands import results_app
from traceweir.streams.cli.shadow.commands import shadow
from traceweir.streams.cli.standard_streams import discard_stdout, is_stdout_error, open_missing_streams
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.trust import trust_app

app = CommandApp(
    help="Traceweir scores what AI agents do in production, while they do it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)
app.add_typer(topics_app, name="topics", rich_help_panel=Panel.KAFKA)
app.add_typer(config_app, name="config", rich_help_panel=Panel.CONFIGS)
app.add_typer(dlq_app, name="dlq", rich_help_panel=Panel.WATCH)
app.add_typer(embedder_app, name="embedder", rich_help_panel=Panel.CONFIGS)
app.add_typer(judge_app, name="judge", rich_help_panel=Panel.CONFIGS)
app.add_typer(trust_app, name="trust", rich_help_panel=Panel.CONFIGS)
app.add_typer(evalset_app, name="evalset", rich_help_panel=Panel.EVAL_SETS)
app.add_typer(references_app, name="references", rich_help_panel=Panel.EVAL_SETS)
app.add_typer(label_app, name="label", rich_help_panel=Panel.LABELS)
app.add_typer(results_app, name="results", rich_help_panel=Panel.FIRST_STEPS)
app.add_typer(export_app, name="export", rich_help_panel=Panel.KAFKA)
app.add_typer(alerts_app, name="alerts", rich_help_panel=Panel.WATCH)
app.add_typer(anchors_app, name="anchors", rich_help_panel=Panel.WATCH)
app.command(rich_help_panel=Panel.EVAL_SETS)(migrate)
app.command(rich_help_panel=Panel.CONFIGS)(diff)
app.command(rich_help_panel=Panel.CONFIGS)(shadow)
app.command(rich_help_panel=Panel.FIRST_STEPS)(demo)
app.command(rich_help_panel=Panel.FIRST_STEPS)(up)
app.command(rich_help_panel=Panel.WATCH)(doctor)
app.command(rich_help_panel=Panel.KAFKA)(worker)
app.command(rich_help_panel=Panel.KAFKA)(otlp)
app.command(rich_help_panel=Panel.KAFKA)(dashboard)
app.command(rich_help_panel=Panel.KAFKA)(broker)
app.command(rich_help_panel=Panel.KAFKA)(size)
app.command(rich_help_panel=Panel.WATCH)(canary)
app.command(cls=InputCommand, rich_help_panel=Panel.KAFKA)(emit)
app.command(cls=InputCommand, rich_help_panel=Panel.FIRST_STEPS)(score)
app.command(cls=InputCommand, rich_help_panel=Panel.FIRST_STEPS)(sessions)
app.command("eval", rich_help_panel=Panel.EVAL_SETS)(evaluate)


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


if __name__ == "__main__":
    main()
