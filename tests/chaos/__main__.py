"""Runs any number of chaos rounds from the command line: `python -m tests.chaos --rounds 50 --out chaos.jsonl`."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from rich.console import Console
from rich.status import Status
from tests.chaos.ground import Ground
from tests.chaos.round import play
from tests.chaos.rounds import RoundsFile, faults_found, tables
from tests.chaos.scenario import Broker, Scenario, draw
from tests.chaos.span_round import play_spans
from tests.support.kafka import NEEDS_KAFKA

console = Console(highlight=False, soft_wrap=True)


def main(
    out: Annotated[Path, typer.Option(help="File of finished rounds; the rounds in it are not run again.")],
    seed: Annotated[int, typer.Option(help="Seed of the first round; each next round has the next seed.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds, with those in the file.")] = 50,
    broker: Annotated[
        Literal["kafka", "embedded", "both"], typer.Option(help="The kind of broker for the rounds.")
    ] = "both",
    load: Annotated[float, typer.Option(min=5, help="Seconds of load in a round.")] = 40.0,
    rate: Annotated[int, typer.Option(min=10, help="Records a second.")] = 150,
    logs: Annotated[Path | None, typer.Option(help="Folder for the logs of rounds with faults found.")] = None,
    spans: Annotated[bool, typer.Option("--spans", help="Send OTLP requests to the stage collect.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Only print the table over the file.")] = False,
) -> None:
    """Runs rounds of load and faults, audits each round, and prints a table over all rounds in the file.

    Exit code 1: a record was lost, doubled or different, or a round could not be run.

    Example: `KAFKA_HOME=~/kafka python -m tests.chaos --seed 1 --rounds 50 --out chaos.jsonl --logs chaos-logs`

    Option --spans needs Apache Kafka, a file of its own, and a load of about 100 s: a trace waits for half of that time.
    """
    file = RoundsFile(out)
    if not report:
        signal.signal(signal.SIGTERM, _leave)
        _play(file, range(seed, seed + rounds), broker, load, rate, logs, spans=spans)
    console.print(tables(file.lines))
    raise typer.Exit(any(map(faults_found, file.lines)))


def _play(
    file: RoundsFile, seeds: range, broker: str, load_s: float, rate: int, logs: Path | None, *, spans: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="traceweir-chaos-") as name, Ground(Path(name)) as ground:
        brokers: list[Broker] = [each for each in ground.brokers if broker in (each, "both")]
        if spans:
            brokers = [each for each in brokers if each == "kafka"]
        if not brokers:
            console.print(NEEDS_KAFKA, style="red")
            raise typer.Exit(2)
        if broker != "embedded" and "kafka" not in brokers:
            console.print(f"all rounds run on the embedded broker: {NEEDS_KAFKA}")
        for kind, why in ground.impossible.items():
            console.print(f"skipped: {kind} ({why})")
        for seed in seeds:
            if seed in file.seeds:
                continue
            scenario = draw(
                seed, brokers=brokers, impossible=[*ground.impossible], load_s=load_s, rate=rate, spans=spans
            )
            folder = Path(name) / str(seed)
            folder.mkdir()
            with console.status(str(scenario)) as status:
                try:
                    run = play_spans if spans else play
                    outcome = run(scenario, *ground.of(scenario), folder, partial(show, status, scenario))
                    line = outcome.line()
                except Exception as error:  # noqa: BLE001  # a failed round does not affect the next rounds
                    line = {"seed": seed, "error": f"{type(error).__name__}: {error}"}
            file.append(line)
            found = faults_found(line)
            if found and logs is not None:
                shutil.copytree(
                    folder, logs / str(seed), ignore=shutil.ignore_patterns("state-*", "disk"), dirs_exist_ok=True
                )
            shutil.rmtree(folder, ignore_errors=True)
            console.print(f"{scenario}: {line.get('error') or ('nothing' if not found else f'{found} faults')} found")


def show(status: Status, scenario: Scenario, phase: str) -> None:
    status.update(f"{scenario}: {phase}")


def _leave(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    typer.run(main)
