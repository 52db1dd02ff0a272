"""The demo command: plays once and says whether everything came out as the fleet knows it must."""

from __future__ import annotations

import sys

import orjson
from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceweir.schemas.text import printable
from traceweir.streams.cli.demo_view import view_for
from traceweir.streams.demo.interruption import Interrupted, Interruption
from traceweir.streams.demo.ledger import expected_counts
from traceweir.streams.demo.moment import NoView
from traceweir.streams.demo.play import DemoError, Expect, play
from traceweir.streams.demo.summary import Summary
from traceweir.streams.demo.worker_process import WorkerEndedError
from traceweir.streams.kafka.topic_admin import KafkaUnreachableError

INTERRUPTED = 130


def run_demo(*, keep: bool, as_json: bool, seed: int, seconds: float, expect: Expect = expected_counts) -> int:
    """Run the demo and print its summary.

    Args:
        keep: Go on with new sessions until Ctrl-C, which then ends the emission and gives the summary; a second one ends at once.
        as_json: Print one JSON object on stdout, and nothing else there.
        seed: Decides what the agents emit.
        seconds: How long they work, about; at least 8.
        expect: Says what must come out of what was emitted.

    Returns:
        The exit code: 0 if everything came out as it must, 1 if not, 130 after Ctrl-C.
    """
    with Interruption() as interruption:
        console = Console()
        try:
            view = NoView() if as_json else view_for(console)
            summary = play(seed, seconds, keep=keep, expect=expect, view=view, interruption=interruption)
        except Interrupted:
            return INTERRUPTED
        except (DemoError, WorkerEndedError, KafkaUnreachableError, KafkaException) as error:
            if as_json:
                _print_json({"ok": False, "seed": seed, "problems": [str(error)]})
            else:
                console.print(Text(str(error), "bold red"), soft_wrap=True)
            return 1
        if as_json:
            _print_json(summary.document())
        else:
            show_summary(summary, console)
        return summary.exit_code


def show_summary(summary: Summary, console: Console) -> None:
    """Print the summary of a demo for a person."""
    table = Table(title="What came out", title_justify="left", header_style="bold")
    table.add_column("count")
    table.add_column("expected", justify="right")
    table.add_column("observed", justify="right")
    table.add_column("")
    for name, wanted, there in summary.rows():
        mark = Text("=", "green") if wanted == there else Text("≠", "bold red")
        table.add_row(Text(printable(name)), str(wanted), str(there), mark)
    console.print(table)
    for equation in summary.equations:
        console.print(Text(str(equation), "green" if equation.holds else "bold red"))
    for one in summary.redactions:
        state = "published" if one.published else "not published"
        console.print(
            Text(f"{one.trace_id} carried {one.secrets} secrets and identifiers: {state}, {len(one.found)} left in it")
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
