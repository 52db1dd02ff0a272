"""The demo command: plays once and says whether everything came out as the fleet knows it must."""

from __future__ import annotations

import sys

import orjson
from confluent_kafka import KafkaException
from rich.console import Console
from rich.text import Text

from traceweir.streams.demo.interruption import Interrupted, Interruption
from traceweir.streams.demo.ledger import expected_counts
from traceweir.streams.demo.play import DemoError, Expect, play
from traceweir.streams.demo.view import NoView, view_for
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
            summary.show(console)
        return summary.exit_code


def _print_json(document: dict[str, object]) -> None:
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    sys.stdout.flush()
