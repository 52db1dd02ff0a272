"""`traceweir demo`: runs the demo once and reports whether every count is as expected."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import orjson
from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceweir.schemas.text import printable
from traceweir.streams.cli.demo.interruption import INTERRUPTED, Interrupted, Interruption
from traceweir.streams.cli.demo.ledger import expected_counts, meaning_of
from traceweir.streams.cli.demo.play import DemoError, Expect, play
from traceweir.streams.cli.demo.summary import Summary
from traceweir.streams.cli.demo.view import DemoView, view_for
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError


def run_demo(*, keep: bool, as_json: bool, seed: int, seconds: float, expect: Expect = expected_counts) -> int:
    """Runs the demo and prints its summary.

    Args:
        keep: Continue with new sessions until Ctrl-C, which begins no more of them and prints the summary; a second
            Ctrl-C exits at once.
        as_json: Print only one JSON object on stdout.
        seed: Determines the records that the agents emit.
        seconds: Approximate seconds of emission; at least 8.
        expect: Computes the expected counts of the sent records.

    Returns:
        The exit code: 0 if every count is as expected, 1 if not, 130 after Ctrl-C, which prints the counts so far.
    """
    with Interruption() as interruption:
        console = Console()
        try:
            view = DemoView() if as_json else view_for(console)
            summary = play(seed, seconds, keep=keep, expect=expect, view=view, interruption=interruption)
        except Interrupted as interrupted:
            show_totals(interrupted.totals, console, seed=seed, as_json=as_json)
            return INTERRUPTED
        except (DemoError, KafkaUnreachableError, KafkaException) as error:
            if as_json:
                _print_json({"ok": False, "seed": seed, "problems": [str(error)]})
            else:
                console.print(Text(str(error), "bold red"), soft_wrap=True)
            return 1
        if as_json:
            _print_json(summary.document())
        else:
            show_summary(summary, console)
            console.print(
                Text("The same in a web page: `make up`, or `traceweir up --demo` with the extra [dashboard].")
            )
        return summary.exit_code


def show_totals(totals: Mapping[str, int], console: Console, *, seed: int, as_json: bool) -> None:
    """Prints what an interrupted demo had observed until then; there is nothing to compare it with."""
    if as_json:
        _print_json({"ok": False, "seed": seed, "problems": ["interrupted"], "observed": dict(totals)})
        return
    if not totals:
        console.print(Text("Interrupted before the worker started."))
        return
    table = Table(title="What came out until the interruption", title_justify="left", header_style="bold")
    table.add_column("count")
    table.add_column("observed", justify="right")
    for name, observed in totals.items():
        table.add_row(Text(printable(name)), str(observed))
    console.print(table)


def show_summary(summary: Summary, console: Console) -> None:
    """Prints the summary of a demo as a table."""
    table = Table(title="What came out", title_justify="left", header_style="bold")
    table.add_column("count")
    table.add_column("expected", justify="right")
    table.add_column("observed", justify="right")
    table.add_column("")
    table.add_column("what it counts")
    for name, wanted, observed in summary.rows():
        mark = Text("=", "green") if wanted == observed else Text("≠", "bold red")
        table.add_row(Text(printable(name)), str(wanted), str(observed), mark, Text(printable(meaning_of(name))))
    console.print(table)
    for equation in summary.equations:
        console.print(Text(str(equation), "green" if equation.holds else "bold red"))
    for redaction in summary.redactions:
        state = "published" if redaction.published else "not published"
        console.print(
            Text(
                f"{redaction.trace_id} had {redaction.secrets} secrets and identifiers: {state}, "
                f"{len(redaction.found)} not redacted"
            )
        )
    if not summary.problems:
        console.print(Text(f"All counts are as expected (seed {summary.seed}, {summary.took_s:.0f} s).", "bold green"))
    for problem in summary.problems:
        console.print(Text(problem, "bold red"), soft_wrap=True)
    if summary.worker_log is not None:
        lines = [printable(line, 300) for line in summary.worker_log.splitlines()]
        console.print(Text("\n".join(["the end of the worker's log:", *lines])), soft_wrap=True)


def _print_json(document: dict[str, object]) -> None:
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    sys.stdout.flush()
